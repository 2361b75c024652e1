"""B-splines and input shapers against closed forms."""

import numpy as np
import pytest
import scipy.interpolate

import flexjax as fx
import flexjax.drive.signal as fs
from tests.signal.test_formulas import sample

TS = np.linspace(-0.2, 1.6, 37)


def test_two_values_from_rest_to_rest_are_the_quintic():
    found, wanted = sample(fs.bspline([0.3, 1.1], 1.5), TS), sample(fs.quintic(0.3, 1.1, 1.5), TS)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_bspline_against_scipy(degree):
    values = np.random.default_rng(degree).normal(size=(8, 2))
    pieces = 8 - degree
    knots = np.concatenate([np.zeros(degree), np.arange(pieces + 1.0), np.full(degree, pieces)])
    wanted = scipy.interpolate.BSpline(knots * 1.5 / pieces, values, degree)
    ts = np.linspace(0.0, 1.5 - 1e-9, 31)
    for k, found in enumerate(sample(fs.bspline(values, 1.5, degree=degree, ends="free"), ts)):
        np.testing.assert_allclose(found, wanted(ts, k), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_bspline_starts_and_ends_at_rest(degree):
    signal = fs.bspline([0.2, 3.0, -1.0, 0.7], 1.5, degree=degree)
    value, velocity, acceleration = sample(signal, np.array([0.0, 1e-9, 1.5 - 1e-9, 1.5, 2.0]))
    np.testing.assert_allclose(value, [0.2, 0.2, 0.7, 0.7, 0.7], atol=1e-9)
    assert np.max(np.abs(velocity)) < 1e-7 and np.max(np.abs(acceleration)) < 1e-5


def remaining(shaped, f, z):
    """Vibration of a mode after a shaped step, as a share of that after the plain step."""
    w, t, a = 2 * np.pi * f, np.asarray(shaped.delays), np.asarray(shaped.weights)
    return abs(np.sum(a * np.exp((z * w + 1j * w * np.sqrt(1 - z**2)) * (t - t.max()))))


@pytest.mark.parametrize("z", [0.0, 0.1])
def test_shapers_cancel_their_modes(z):
    step, f, h = fs.constant(1.0), 2.0, 1e-5
    zv, zvd, ei = (fx.shape(step, f, kind, damping=z) for kind in ("zv", "zvd", "ei"))
    for shaped, periods in ((zv, 0.5), (zvd, 1.0), (ei, 1.0)):
        assert np.isclose(np.sum(shaped.weights), 1.0) and np.all(np.asarray(shaped.weights) > 0)
        assert np.isclose(shaped.lengthens, periods / (f * np.sqrt(1 - z**2)))
    assert remaining(zv, f, z) < 1e-12 and remaining(zvd, f, z) < 1e-12
    # ZVD: the vibration of a mode with another frequency is of second order.
    assert remaining(zv, f * (1 + h), z) > 1e-6 > 1e-8 > remaining(zvd, f * (1 + h), z)
    share = remaining(ei, f, z)
    assert np.isclose(share, 0.05) if z == 0 else 0 < share < 0.05


def test_ei_is_insensitive_over_a_wider_band():
    shapers = [fx.shape(fs.constant(1.0), 1.0, kind) for kind in ("zv", "zvd", "ei")]
    band = np.linspace(0.6, 1.4, 801)
    widths = [np.sum([remaining(s, f, 0.0) <= 0.0501 for f in band]) for s in shapers]
    assert widths[0] < widths[1] < widths[2]


def test_several_modes():
    shaped = fx.shape(fs.quintic(0.0, 1.0, 0.5), [1.3, 4.0], damping=[0.02, 0.0])
    assert shaped.delays.shape == (4,)
    assert remaining(shaped, 1.3, 0.02) < 1e-12 and remaining(shaped, 4.0, 0.0) < 1e-12
    end = 0.5 + float(shaped.lengthens)
    assert np.isclose(shaped(end), 1.0) and not np.isclose(shaped(end - 0.05), 1.0)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(modes=-1.0), "modes = .*expected positive frequencies"),
        (dict(modes=[]), "expected one frequency or several"),
        (dict(modes=1.0, kind="zvdd"), "kind = zvdd"),
        (dict(modes=1.0, damping=1.2), "damping = .*expected ratios"),
        (dict(modes=[1.0, 2.0], damping=[0.1]), "shape of damping"),
        (dict(modes=1.0, kind="ei", vibration=1.5), "vibration = 1.5"),
        (dict(signal=1.0, modes=1.0), "signal = float; expected a signal"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        fx.shape(**({"signal": fs.constant(1.0)} | arguments))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(values=[1.0]), "at least 2 rows"),
        (dict(values=[1.0, 2.0], ends="free"), "at least 6 rows"),
        (dict(values=[1.0, 2.0], degree=7), "degree = 7"),
        (dict(values=[1.0, np.nan]), "finite"),
        (dict(values=[1.0, 2.0], ends="fixed"), "ends = fixed"),
    ],
)
def test_bspline_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        fx.bspline(**arguments, duration=1.0)
