"""Recorded data: experiments, modal data, files, units."""
