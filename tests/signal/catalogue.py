"""One of every signal, with the numbers it depends on: a new signal joins the tests by one line
here.
"""

import jax.numpy as jnp
import numpy as np

import flexjax.drive.signal as fs

TIMES, VALUES = [0.1, 0.5, 1.2, 1.9, 2.5], [0.2, 1.0, 0.5, 2.0, 1.4]
TABLE = np.stack([VALUES, np.sin(VALUES)], 1)

SIGNALS = {
    "constant": fs.constant(0.7),
    "quintic": fs.quintic(0.2, 2.0, 1.5, 0.3),
    "quintic vector": fs.quintic([0.2, 0.0], [2.0, -1.0], 1.5),
    "cycloid": fs.cycloid(0.2, 1.3, 1.5, 0.3),
    "spin_up": fs.spin_up(4.0, 1.5, 0.3),
    "sine": fs.sine(0.8, 1.1, 0.4),
    "polynomial": fs.polynomial([0.3, -1.0, 0.5, 0.2]),
    "step_acceleration": fs.step_acceleration(0.2, 2.0, 1.5, 0.3),
    "trapezoid": fs.trapezoid(0.2, 2.0, 1.5, 0.4, 0.3),
    "ramp": fs.ramp(1.2, 1.5, 0.3),
    "step": fs.step(1.2, 0.9),
    "piecewise_constant": fs.piecewise_constant(TIMES, VALUES),
    "bang_bang": fs.bang_bang(3.0, [0.2, 0.9, 1.7]),
    "cosine": fs.cosine(np.pi / 12, 0.8, 0.3),
    "chirp": fs.chirp(0.5, 1.0, 3.0, 1.5, 0.3, 0.3),
    "spline": fs.spline(TIMES, VALUES),
    "spline clamped vector": fs.spline(TIMES, TABLE, "clamped"),
    "bspline": fs.bspline([0.2, 0.4, 0.9, 1.4], 1.5, 0.3),
    "bspline cubic vector": fs.bspline(TABLE, 2.2, 0.3, degree=3, ends="free"),
    "shape": fs.shape(fs.quintic(0.0, 1.0, 1.5), [1.3, 3.7], "zvd", damping=[0.05, 0.0]),
    "recorded linear": fs.recorded(TIMES, TABLE, "linear"),
    "shift": fs.shift(fs.trapezoid(0.2, 2.0, 1.5, 0.4), 0.35),
    "sum": 2.0 * fs.quintic(0.0, 1.0, 1.5) - fs.bang_bang(3.0, [0.2, 0.9, 1.7]) / 3 + 0.1,
    "stack": fs.stack([fs.quintic(0.0, 1.0, 1.5), fs.cosine(0.3, 0.8), fs.constant(0.2)]),
}

# between the breaks of all of the above, inside and outside
INSTANTS = jnp.asarray([-0.37, 0.15, 0.41, 0.63, 0.83, 1.03, 1.33, 1.61, 1.75, 2.2, 3.3])
