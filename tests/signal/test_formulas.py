"""The curves of the papers, the errors, one trace for all numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

import flexjax.drive.signal as fs
from tests.screw.laws import quick_jit


@quick_jit
def sample(signal, ts):
    return jax.vmap(signal.evaluate)(ts)


@quick_jit
def call(signal, ts):
    return signal(ts)


def test_quintic_of_paper_004():
    t = np.linspace(0.0, 2.5, 6)
    value, _, _ = sample(fs.quintic(0.0, 2.0, 2.5), t)
    assert np.allclose(
        value, 2.0 * t**3 / 2.5**3 * (10 - 15 * t / 2.5 + 6 * t**2 / 2.5**2), atol=1e-15
    )
    ends = sample(fs.quintic(0.5, 2.0, 2.5, 1.0), np.array([0.9, 1.0, 3.5, 9.0]))
    assert (
        np.allclose(ends[0], [0.5, 0.5, 2.0, 2.0]) and not np.any(ends[1]) and not np.any(ends[2])
    )


def test_step_acceleration_of_paper_004():
    signal = fs.step_acceleration(0.0, 2.0, 2.5)
    value, velocity, acceleration = sample(signal, np.array([0.0, 1.0, 1.25, 2.0, 2.5, 3.0]))
    a = 4 * 2.0 / 2.5**2
    assert np.allclose(acceleration, [a, a, -a, -a, 0.0, 0.0]) and np.allclose(
        signal.breaks(), [0.0, 1.25, 2.5]
    )
    assert np.allclose(value, [0.0, 0.5 * a, 1.0, 2.0 - 0.125 * a, 2.0, 2.0])
    assert np.allclose(velocity, [0.0, a, 1.25 * a, 0.5 * a, 0.0, 0.0])


def test_cosine_of_paper_002():
    value, velocity, acceleration = sample(
        fs.cosine(np.pi / 12, 0.8), np.array([0.0, 0.2, 0.4, 1.0])
    )
    assert np.allclose(value, [0.0, np.pi / 12, np.pi / 6, np.pi / 6])
    assert (
        np.allclose(velocity, [0.0, np.pi / 12 * 2 * np.pi / 0.8, 0.0, 0.0])
        and acceleration[-1] == 0.0
    )


def test_spin_up_of_paper_003():
    speed, T = 4.0, 15.0
    t = np.array([0.0, 3.0, 14.999999, 15.0, 20.0])
    value, velocity, _ = sample(fs.spin_up(speed, T), t)
    early = speed / T * (t**2 / 2 + (T / (2 * np.pi)) ** 2 * (np.cos(2 * np.pi * t / T) - 1))
    assert np.allclose(value, np.where(t < T, early, speed * (t - T / 2)), atol=1e-13)
    assert np.allclose(velocity[-2:], speed)


def test_bang_bang_and_steps():
    t = np.array([-0.1, 0.0, 0.4, 0.5, 0.9, 1.0, 2.0])
    value, velocity, acceleration = sample(fs.bang_bang(3.0, [0.0, 0.5, 1.0]), t)
    assert (
        np.array_equal(value, [0, 3, 3, -3, -3, 0, 0])
        and not np.any(velocity)
        and not np.any(acceleration)
    )
    same, _, _ = sample(fs.piecewise_constant([0.0, 0.5, 1.0], [3.0, -3.0, 0.0]), t)
    assert np.array_equal(value, same)
    assert np.array_equal(sample(fs.step(2.0, 0.5), t)[0], [0, 0, 0, 2, 2, 2, 2])
    assert np.allclose(sample(fs.ramp(2.0, 1.0), t)[0], [0, 0, 0.8, 1, 1.8, 2, 2])


def test_trapezoid_cruises_and_arrives():
    value, velocity, _ = sample(
        fs.trapezoid(1.0, 4.0, 2.0, 0.5), np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    )
    assert np.allclose(value, [1.0, 1.5, 2.5, 3.5, 4.0]) and np.allclose(
        velocity, [0.0, 2.0, 2.0, 2.0, 0.0]
    )


@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped"])
@pytest.mark.parametrize("knots", [2, 3, 6])
def test_spline_against_scipy(ends, knots):
    times = np.cumsum([0.2, 0.5, 0.3, 0.9, 0.4, 0.6])[:knots]
    values = np.stack([np.sin(3 * times), times**2], 1)
    ts = np.linspace(times[0], times[-1] - 1e-9, 23)
    expected = scipy.interpolate.CubicSpline(times, values, bc_type=ends)
    for k, found in enumerate(sample(fs.spline(times, values, ends), ts)):
        assert np.allclose(found, expected(ts, k), rtol=1e-10, atol=1e-10)


def test_recorded_chooses_the_curve():
    assert isinstance(fs.recorded([0.0, 1.0], [0.0, 1.0]), fs.Spline)
    assert isinstance(fs.recorded([0.0, 1.0], [0.0, 1.0], "linear"), fs.Polyline)


def test_calls_and_operators():
    a, b = fs.quintic(0.0, 1.0, 2.0), fs.sine(1.0, 0.5)
    ts = np.linspace(0.0, 2.0, 6).reshape(2, 3)
    assert call(a, 0.5).shape == () and call(fs.stack([a, b]), ts).shape == (2, 3, 2)
    va, vb = call(a, ts), call(b, ts)
    for combined, expected in (
        (2.0 * a, 2.0 * va),
        (np.float64(2.0) * a, 2.0 * va),
        (jnp.asarray(2.0) * a, 2.0 * va),
        (a - b + 1.0, va - vb + 1.0),
        (1.0 - a / 4.0, 1.0 - 0.25 * va),
        (fs.shift(a, 0.5), call(a, ts - 0.5)),
    ):
        assert np.allclose(call(combined, ts), expected, atol=1e-15)
    with pytest.raises(TypeError, match="product of two signals"):
        a * b


def test_changed_numbers_do_not_retrace():
    traces = []

    @jax.jit
    def run(signal, t):
        traces.append(None)
        return signal.evaluate(t)[0]

    for numbers in (
        (0.0, 1.0, 2.0),
        (0, 1, 2),
        (0.5, 1, np.float64(3)),
        (jnp.asarray(0.1), np.pi, jnp.ones(())),
    ):
        run(
            2.0 * fs.quintic(*numbers) + fs.spline([0, 1, numbers[2] + 1], [0, 1, 2]),
            jnp.asarray(0.3),
        )
    assert len(traces) == 1


def test_a_signal_can_be_made_inside_a_trace():
    """As an optimiser does it: traced numbers are not checked, and the gradient is that of the
    curve.
    """
    speed = jax.jit(jax.grad(lambda T: fs.quintic(0.0, 1.0, T).evaluate(0.5)[0]))(2.0)
    u = 0.25
    assert np.isclose(speed, -u / 2.0 * 30 * u**2 * (1 - u) ** 2)
    assert np.isfinite(jax.jit(lambda T: fs.trapezoid(0.0, 1.0, T, 0.25 * T).evaluate(0.5)[0])(2.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: fs.quintic(0, 1, 0.0),
            r"quintic: duration = 0.0, expected a positive time.*Give duration > 0",
        ),
        (lambda: fs.quintic(0, np.nan, 1.0), r"quintic: end = nan, expected finite numbers.*NaN"),
        (
            lambda: fs.quintic([0, 1], [0, 1, 2], 1.0),
            r"shapes of start and end = .*expected equal shapes",
        ),
        (
            lambda: fs.quintic(0, 1, [1.0, 2.0]),
            r"shape of duration = \[2\], expected \(\).*use stack",
        ),
        (lambda: fs.step_acceleration(0, 1, -1.0), r"step_acceleration: duration = -1.0"),
        (
            lambda: fs.trapezoid(0, 1, 1.0, 0.6),
            r"trapezoid: ramp = 0.6, expected at most half of duration = 1.0",
        ),
        (lambda: fs.cosine(1, 0.0), r"cosine: period = 0.0"),
        (lambda: fs.cycloid(0, 1, -2.0), r"cycloid: duration = -2.0"),
        (lambda: fs.spin_up(1, np.inf), r"spin_up: duration = inf, expected finite"),
        (
            lambda: fs.bang_bang(1, [0.0]),
            r"bang_bang: shape of times = \[1\], expected \(n,\) with n >= 2",
        ),
        (
            lambda: fs.bang_bang(1, [0.0, 1.0, 0.5]),
            r"times\[1:3\] = \[1.0, 0.5\], expected increasing.*Sort",
        ),
        (lambda: fs.piecewise_constant([0, 1], [1.0]), r"shape of values = \[1\], expected 2 rows"),
        (
            lambda: fs.spline([0, 1, 1], [0, 1, 2]),
            r"spline: times\[1:3\] = \[1.0, 1.0\], expected increasing",
        ),
        (lambda: fs.spline([0, 1], [0, 1], "free"), r"spline: ends = free, expected 'not-a-knot'"),
        (lambda: fs.recorded([0, 1], [0, np.nan], "linear"), r"recorded: values = .*nan"),
        (lambda: fs.recorded([0, 1], [0, 1], "nearest"), r"recorded: method = nearest"),
        (lambda: fs.polynomial(1.0), r"polynomial: shape of coefficients"),
        (lambda: fs.shift(fs.constant(1), np.nan), r"shift: delay = nan"),
        (
            lambda: fs.stack([1.0]),
            r"stack: signals = \['float'\], expected at least one signal.*constant",
        ),
        (lambda: fs.constant(np.nan), r"constant: value = nan"),
    ],
)
def test_refusals_say_what_to_fix(make, message):
    with pytest.raises(ValueError, match=message):
        make()
