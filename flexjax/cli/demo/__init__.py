"""The tour that `flexjax demo` gives."""
