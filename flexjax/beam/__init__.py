"""Sections and mass along a link, quadrature, shape functions."""

from flexjax.beam._bspline import bspline_cubics as bspline_cubics
from flexjax.beam._hermite import BAND as BAND, Cubics as Cubics, hermite_cubics as hermite_cubics
from flexjax.beam._modal import ShapeFunctions as ShapeFunctions, shape_functions as shape_functions
from flexjax.beam._properties import (
    BeamProperties as BeamProperties,
    beam_properties as beam_properties,
    link_quadrature as link_quadrature,
)
from flexjax.beam._rigid import centreline_pose as centreline_pose, rigid_inertia as rigid_inertia
