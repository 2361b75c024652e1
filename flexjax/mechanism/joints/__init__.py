"""Joints: geometry, coordinates, hardware, friction, forces and energies."""
