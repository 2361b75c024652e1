"""Equations of motion of a chain: inertia, forces, and their elimination in O(n)."""
