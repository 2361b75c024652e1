"""Structured linear algebra: blocks, chains, Krylov iterations, batches."""
