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
from flexjax.numerics.beam._polynomial import (
    CUBIC as CUBIC,
    LINEAR as LINEAR,
    QUINTIC as QUINTIC,
    ShapeSet as ShapeSet,
    coefficient_matrix as coefficient_matrix,
    derivative_matrix as derivative_matrix,
    differentiate as differentiate,
    hilbert as hilbert,
    product_integrals as product_integrals,
    shift_matrix as shift_matrix,
)
