"""Rigid motions of the plane and of space: two modules with the same names, so that a chain is written once."""

from flexjax.numerics.screw import se2 as se2, se3 as se3
