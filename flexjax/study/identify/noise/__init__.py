"""Noise that is not white, and noise of measured motions, as parameters of a fit."""
