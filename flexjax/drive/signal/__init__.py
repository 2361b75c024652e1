"""Inputs in time with exact derivatives and known breaks."""

from flexjax.drive.signal._base import (
    AbstractSignal as AbstractSignal,
    Constant as Constant,
    Scaled as Scaled,
    Sum as Sum,
    constant as constant,
)
from flexjax.drive.signal._bspline import BSpline as BSpline, bspline as bspline
from flexjax.drive.signal._combine import (
    Shifted as Shifted,
    Stacked as Stacked,
    shift as shift,
    stack as stack,
)
from flexjax.drive.signal._shaper import Shaped as Shaped, shape as shape
from flexjax.drive.signal._smooth import (
    Cycloid as Cycloid,
    Polynomial as Polynomial,
    Quintic as Quintic,
    Sine as Sine,
    SpinUp as SpinUp,
    cycloid as cycloid,
    polynomial as polynomial,
    quintic as quintic,
    sine as sine,
    spin_up as spin_up,
)
from flexjax.drive.signal._spline import (
    Hermite as Hermite,
    Polyline as Polyline,
    Spline as Spline,
    prepare as prepare,
    recorded as recorded,
    spline as spline,
)
from flexjax.drive.signal._switched import (
    BangBang as BangBang,
    PiecewiseConstant as PiecewiseConstant,
    Ramp as Ramp,
    StepAcceleration as StepAcceleration,
    Trapezoid as Trapezoid,
    bang_bang as bang_bang,
    piecewise_constant as piecewise_constant,
    ramp as ramp,
    step as step,
    step_acceleration as step_acceleration,
    trapezoid as trapezoid,
)
from flexjax.drive.signal._ties import separate as separate
from flexjax.drive.signal._wave import (
    Chirp as Chirp,
    Cosine as Cosine,
    chirp as chirp,
    cosine as cosine,
)
