"""Mutation check of the physics kernels: are deliberate faults found by the quick tests?"""
