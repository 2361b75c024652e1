"""Functions with rules of their own, under every combination of transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax._rules import ruled

X = jnp.array([0.3, 0.7, 1.1])


@ruled
def hidden_sine(x):
    """Its body has no derivative, as an iteration on values without derivatives."""
    return jnp.sin(jax.lax.stop_gradient(x))


@hidden_sine.def_jvp
def _(primals, tangents):
    return hidden_sine(*primals), jnp.cos(primals[0]) * tangents[0]


@ruled
def batched_sine(x, gain):
    return gain * jnp.sin(x)


@batched_sine.def_vmap
def _(size, batched, x, gain):
    """Marked by a hundred, to show which rule ran."""
    x = x if batched[0] else jnp.broadcast_to(x, (size, *x.shape))
    gain = gain if batched[1] else jnp.broadcast_to(gain, (size,))
    return 100 + gain.reshape((size,) + (1,) * (x.ndim - 1)) * jnp.sin(x)


def in_scan(f):
    """Second derivatives through a scan: there jax drops the rules of custom_jvp."""
    return lambda x: jnp.sum(jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])


HESSIANS = {
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "third": lambda f: lambda x: jax.jacfwd(jax.hessian(f))(x)[:, :, 0],
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("how", HESSIANS)
def test_derivatives_of_any_order_keep_the_rule(how, wrap):
    plain = in_scan(jnp.sin)
    for f in (in_scan(hidden_sine), lambda x: jnp.sum(jax.vmap(in_scan(hidden_sine))(x))):
        got = wrap(HESSIANS[how](f))(X)
        np.testing.assert_allclose(got, HESSIANS[how](plain)(X), rtol=1e-12, atol=1e-15)


def test_batching_rule_also_under_derivatives():
    f = jax.vmap(batched_sine, (0, None))
    np.testing.assert_allclose(f(X, 2.0), 100 + 2 * jnp.sin(X), rtol=1e-14)
    np.testing.assert_allclose(batched_sine(X, 2.0), 2 * jnp.sin(X), rtol=1e-14)
    slope = jax.vmap(jax.grad(batched_sine), (0, None))(X, 2.0)
    np.testing.assert_allclose(slope, 2 * jnp.cos(X), rtol=1e-14)
    curve = jax.jit(jax.vmap(jax.jacfwd(jax.grad(batched_sine)), (0, None)))(X, 2.0)
    np.testing.assert_allclose(curve, -2 * jnp.sin(X), rtol=1e-14)
    both = jax.vmap(jax.vmap(batched_sine, (0, None)), (None, 0))(X, X)
    np.testing.assert_allclose(both, 100 + X[:, None] * jnp.sin(X)[None], rtol=1e-14)


def test_zero_tangents_and_static_arguments():
    seen = []

    @ruled
    def power(pair, n):
        return {"out": pair[0] ** n, "count": jnp.asarray(n)}

    def rule(primals, tangents):
        (x, y), n = primals
        seen.append([t is None for t in tangents[0]])
        return power((x, y), n), {"out": n * x ** (n - 1) * tangents[0][0], "count": None}

    power.def_jvp(rule, symbolic_zeros=True)
    assert float(jax.grad(lambda x: power((x, 2.0), 3)["out"])(2.0)) == 12.0
    assert seen == [[False, True]]
    assert jax.jit(lambda x: power((x, 2.0), 3))(2.0) == {"out": 8.0, "count": 3}
