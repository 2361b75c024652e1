"""Commands about robot files: new, check, describe, examples, schema."""
