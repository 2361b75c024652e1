"""The tour of `flexjax demo`."""
