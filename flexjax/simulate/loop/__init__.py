"""The time loop: the grid of steps, jumps of prescribed rates, and the scan over the steps."""
