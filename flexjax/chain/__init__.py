"""Floating-frame chains: bodies along a serial arm, joints as screws, elimination from tip to base at a cost linear in their number."""

from flexjax.chain._kinematics import Kinematics as Kinematics, kinematics as kinematics
from flexjax.chain._layout import Layout as Layout, serial_layout as serial_layout, serial_refusals as serial_refusals
from flexjax.chain._parameters import Parameters as Parameters, chain_parameters as chain_parameters
from flexjax.chain._recursion import factorise as factorise, solve as solve
from flexjax.chain._term import ChainTerm as ChainTerm
