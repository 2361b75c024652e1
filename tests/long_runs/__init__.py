"""Runs of many steps: drift of energy, constraints and memory, and repetition."""
