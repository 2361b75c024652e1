"""Modes, equilibria, linear models, inverse dynamics, comparisons and checks of gradients."""
