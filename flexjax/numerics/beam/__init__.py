"""Shape functions of beams and their quadrature."""

from flexjax.numerics.beam._bspline import bspline_cubics as bspline_cubics
from flexjax.numerics.beam._hermite import (
    Cubics as Cubics,
    hermite_cubics as hermite_cubics,
    interpolation as interpolation,
)
from flexjax.numerics.beam._modal import (
    ShapeFunctions as ShapeFunctions,
    shape_functions as shape_functions,
)
