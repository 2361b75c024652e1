"""Reports: pages of text, tables, figures and scenes."""
