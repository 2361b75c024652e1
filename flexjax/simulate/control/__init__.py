"""Linear models for other programs. Imports nothing of the simulation."""
