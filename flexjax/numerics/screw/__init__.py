"""Rigid-body motions SE(2) and SE(3): two modules with the same names.

A kinematic chain is written once and runs with either module.
"""

from flexjax.numerics.screw import se2 as se2, se3 as se3
from flexjax.numerics.screw._dimension import Plane as Plane, Space as Space, along as along
