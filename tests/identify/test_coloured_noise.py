"""Noise of sensors as an autoregression: its estimate, whitened residuals, and the intervals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

import flexjax as fx
from flexjax.study.identify.noise._colour import colour_of, reflections_of
from flexjax.study.identify.noise._reml import Linear, restricted_likelihood
from flexjax.study.identify.uncertainty._ar import refuse_ar
from tests.identify.cases import JOINT_FREE, filled, joint_arm, joint_record

A = np.array([1.2, -0.5])  # of r_t = 1.2 r_(t-1) - 0.5 r_(t-2) + e_t


def drawn(n: int, a: np.ndarray, seed: int = 0) -> np.ndarray:
    """Noise of standard deviation one; the first samples, before it is stationary, are left out."""
    e = np.random.default_rng(seed).normal(size=n + 500)
    r = lfilter([1.0], np.concatenate([[1.0], -a]), e)
    return (r / np.std(r))[500:]


def test_an_autoregression_is_recovered_also_with_gaps():
    r = drawn(20_000, A)
    r[1000:1010] = np.nan
    r[5000] = np.nan
    whole = colour_of(reflections_of([r[:9000], r[9000:]], 2)[None])
    np.testing.assert_allclose(whole.coefficients[0, 2], A, atol=0.03)
    assert np.all(np.abs(reflections_of([np.arange(9.0)], 3)) < 1)
    assert not np.any(reflections_of([], 2)) and not np.any(reflections_of([np.zeros(9)], 2))


def test_whitened_residuals_are_white_and_keep_their_size():
    r = np.stack([drawn(5000, A), drawn(5000, np.array([0.9, 0.0]), 1)], -1)[None]
    weight = np.ones_like(r)
    weight[0, 2000:2003] = 0.0
    colour = colour_of(np.stack([reflections_of([x], 2) for x in r[0].T]))
    e = np.asarray(colour.whitened(jnp.asarray(r * weight), jnp.asarray(weight)))[0]
    assert not np.any(e[2000:2003])
    for own in e.T:
        assert abs(np.std(own) - 1) < 0.05
        assert abs(own[1:] @ own[:-1]) < 0.05 * (own @ own)
    # Behind a gap the first sample is alone, the second has one before it.
    table, gain = colour.coefficients[0], colour.gains[0]
    np.testing.assert_allclose(e[2003, 0], r[0, 2003, 0], rtol=1e-12)
    two = (r[0, 2004, 0] - table[1, 0] * r[0, 2003, 0]) * gain[1]
    np.testing.assert_allclose(e[2004, 0], two, rtol=1e-12)
    e = jnp.asarray(np.random.default_rng(2).normal(size=(3, 50, 2)))
    noise = np.asarray(colour.coloured(e))
    np.testing.assert_allclose(colour.whitened(jnp.asarray(noise), jnp.ones_like(e)), e, atol=1e-12)
    white = colour_of(np.zeros((2, 2)))
    assert np.array_equal(white.whitened(r * weight, weight), r * weight)


def test_data_without_equal_steps_are_refused():
    ts = 0.01 * np.arange(20.0)
    late = np.where(ts > 0.1, ts + 0.004, ts)
    even, uneven = (fx.Experiment(t, {"angle": 0 * t}) for t in (ts, late))
    slow = fx.Experiment(2 * ts, {"angle": 0 * ts})
    with pytest.raises(ValueError, match=r"step of 0.014 s at row 11 .*Read it with resample"):
        refuse_ar(1, [uneven], None, "lm")
    with pytest.raises(ValueError, match=r"angle has steps of 0.01 s .* and 0.02 s"):
        refuse_ar(1, [even, slow], None, "lm")
    with pytest.raises(ValueError, match="ar: -1; expected a whole number"):
        refuse_ar(-1, [even], None, "lm")
    with pytest.raises(ValueError, match="ar: 1 with a band"):
        refuse_ar(1, [even], (0.0, 5.0), "lm")


@pytest.mark.slow
def test_restricted_likelihood_covers_a_slow_parameter(record_number):
    """A trend in 201 samples with a correlation of 0.9: some ten independent ones.

    Burg's estimate from the residuals alone gives intervals that are too narrow.
    """
    ts = np.linspace(0.0, 1.0, 201)
    J = np.stack([np.sin(2 * np.pi * 1.3 * ts), ts**2, np.sin(2 * np.pi * 15 * ts + 1)], -1)
    weight, none = jnp.ones((1, 201, 1)), jnp.zeros((0, 4))
    inside = []
    for seed in range(60):
        r = drawn(201, np.array([0.9]), seed)
        left = r - J @ np.linalg.lstsq(J, r, rcond=None)[0]
        rows = jnp.asarray(np.concatenate([J, r[:, None]], -1)[None, :, None])
        data = Linear((rows,), (weight,), none, none, (), ((0,),))
        start, size = reflections_of([left], 1)[None], np.array([left.std()])
        noise = restricted_likelihood(data, start, size, np.zeros(1, bool))
        whitened = jax.vmap(colour_of(noise.reflections).whitened, (-1, None), -1)(rows, weight)
        white = np.asarray(whitened)[0, :, 0] / noise.sizes
        covariance = np.linalg.inv(white[:, :3].T @ white[:, :3])
        z = covariance @ white[:, :3].T @ white[:, 3]
        half = stdtrit(noise.freedom, 0.975) * np.sqrt(np.diag(covariance))
        inside.append(np.abs(z) < half)
    record_number("coverage of a trend in AR(1) noise", np.mean(inside), (0.90, 0.99), "in")


@pytest.fixture(scope="module")
def inside() -> np.ndarray:
    """Share of the intervals that contain the truth.

    Readings have 2 % noise whose samples are correlated by 0.9, of 100 seeds.
    """
    model = fx.RigidArm().bind(joint_arm())
    clean = filled(joint_record(), model, free=JOINT_FREE)
    truth, found = np.array([40.0, 0.05, 0.3]), []
    for seed in range(100):
        noise = {
            s: 0.02 * v.std() * drawn(len(v), np.array([0.9]), 2 * seed + k)
            for k, (s, v) in enumerate(clean.sensors.items())
        }
        noisy = {s: v + noise[s] for s, v in clean.sensors.items()}
        record = dataclasses.replace(clean, sensors=noisy)
        low, high = fx.identify(model, record, JOINT_FREE, dt=0.01, ar=1).intervals().T
        found.append((low <= truth) & (truth <= high))
    return np.mean(found, axis=0)


@pytest.mark.slow
def test_intervals_hold_where_the_noise_is_not_white(inside, record_number):
    # The mass is seen in the slow part of the motion, for which these are some ten samples.
    for name, share in zip(JOINT_FREE, inside, strict=True):
        record_number(f"coverage of {name}, AR(1) noise", share, (0.90, 0.99), relation="in")
