"""Floating-frame chains: bodies and flexible links along a serial arm, eliminated in O(n)."""

from flexjax.mechanism.chain._coordinates import chain_start as chain_start
from flexjax.mechanism.chain._observe import (
    chain_outputs as chain_outputs,
    ran_off_link as ran_off_link,
)
from flexjax.mechanism.chain._term import ChainTerm as ChainTerm
from flexjax.mechanism.chain.equations._condense import Condensed as Condensed, condense as condense
from flexjax.mechanism.chain.equations._recursion import (
    Factors as Factors,
    Loads as Loads,
    factorise as factorise,
    solve as solve,
)
from flexjax.mechanism.chain.geometry._kinematics import (
    Kinematics as Kinematics,
    kinematics as kinematics,
)
from flexjax.mechanism.chain.geometry._layout import (
    Layout as Layout,
    serial_layout as serial_layout,
)
from flexjax.mechanism.chain.geometry._links import (
    AbstractLinks as AbstractLinks,
    AbstractSlidingLinks as AbstractSlidingLinks,
    Bent as Bent,
    Eta as Eta,
    Mass as Mass,
    MotionPair as MotionPair,
    Tip as Tip,
    Twists as Twists,
    sliding_links as sliding_links,
)
from flexjax.mechanism.chain.geometry._parameters import (
    Parameters as Parameters,
    chain_parameters as chain_parameters,
)
from flexjax.mechanism.chain.geometry._point_links import (
    AbstractPointLinks as AbstractPointLinks,
    point_link_refusals as point_link_refusals,
    point_masses as point_masses,
)
