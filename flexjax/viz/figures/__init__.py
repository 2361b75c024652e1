"""Figures: their style, and one function for each kind of plot."""
