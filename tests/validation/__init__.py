"""Closed forms and published benchmarks in every formulation: the validation page."""
