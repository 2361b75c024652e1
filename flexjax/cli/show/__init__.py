"""Commands that show saved trajectories: plot, view."""
