"""Sine and cosine as polynomials against the C library's, and their derivatives by both modes."""

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.numerics.screw._trig import sincos


def test_sine_and_cosine(record_number):
    rng = np.random.default_rng(0)
    quarters = np.pi / 4 * np.arange(-40, 41)
    x = np.concatenate(
        [
            np.linspace(-10.0, 10.0, 100_001),
            1e4 * rng.normal(size=10_000),
            quarters,
            np.nextafter(quarters, 100.0),
            [0.0, 1e5, -1e5],
        ]
    )
    s, c = jax.jit(sincos)(jnp.asarray(x))
    record_number(
        "sine and cosine against the C library",
        max(np.max(np.abs(s - np.sin(x))), np.max(np.abs(c - np.cos(x)))),
        4e-16,
    )
    small = 10.0 ** -np.arange(1.0, 300.0, 7.0)
    record_number(
        "sine of small angles, relative",
        np.max(np.abs(np.asarray(sincos(jnp.asarray(small))[0]) / np.sin(small) - 1)),
        4e-16,
    )
    assert float(sincos(jnp.zeros(()))[0]) == 0.0 and float(sincos(jnp.zeros(()))[1]) == 1.0
    assert all(np.isnan(y) for y in sincos(jnp.asarray(np.nan)))
    assert sincos(jnp.ones(2, jnp.float32))[0].dtype == jnp.float32


def test_derivatives():
    x = jnp.linspace(-4.0, 4.0, 9)
    for k, (value, slope) in enumerate(((np.sin(x), np.cos(x)), (np.cos(x), -np.sin(x)))):
        first = jax.vmap(jax.grad(lambda x, k=k: sincos(x)[k]))
        np.testing.assert_allclose(first(x), slope, atol=4e-16)
        np.testing.assert_allclose(
            jax.vmap(jax.jacfwd(jax.grad(lambda x, k=k: sincos(x)[k])))(x), -value, atol=1e-15
        )
