"""Noise of sensors that is not white: autoregressions, and how well data determine them."""
