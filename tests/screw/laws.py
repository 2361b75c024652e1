"""What must hold in both groups, written once; test_se2 and test_se3 run it and add what is their
own.
"""

import functools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

# Laws are about numbers, not speed: without optimisation XLA compiles them in a fifth of the time.
UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
quick_jit = functools.partial(jax.jit, compiler_options=UNOPTIMISED)

# radians: at zero, where series take over, on both sides of the switch of the series, and close to
# a half turn
ANGLES = (0.0, 1e-9, 1e-5, 0.7, 2.0 - 1e-9, 2.0 + 1e-9, 3.0, np.pi - 1e-6)


@st.composite
def twists(draw, count=3):
    """Rows of six numbers (a group takes what it needs), with an angle below pi."""
    seed = draw(st.integers(0, 2**32 - 1))
    angle = draw(st.sampled_from(ANGLES[:-1]))
    rows = np.random.default_rng(seed).normal(size=(count, 6))
    return rows, angle


def fit(group, row, angle):
    z = np.array(row[: group.DIM])
    z[group.LIN :] *= angle / np.linalg.norm(z[group.LIN :])
    return z


def homogeneous(pose):
    top = jnp.concatenate([pose.rotation, pose.position[:, None]], axis=1)
    bottom = jnp.eye(top.shape[1], dtype=top.dtype)[-1:]
    return jnp.concatenate([top, bottom])


@functools.cache
def residuals(group):
    """All laws as one compiled function: name -> what should be zero."""

    def run(x, y, w):
        a, b, one = group.exp(x), group.exp(y), group.identity(x.dtype)
        ab, back = group.compose(a, b), group.inverse(a)
        h, point = homogeneous, w[: group.LIN]
        h_back = h(back)
        rate = jax.jvp(lambda x: h(group.exp(x)), (x,), (y,))[1]
        ad_rate = jax.jvp(lambda t: group.adjoint(group.exp(t * x)) @ y, (0.0,), (1.0,))[1]
        log_rate = jax.jvp(lambda t: group.log(group.compose(a, group.exp(t * y))), (0.0,), (1.0,))[
            1
        ]
        return {
            "compose": h(ab) - h(a) @ h(b),
            "identity": h(group.compose(a, one)) - h(a) + h(group.compose(one, a)) - h(a),
            "inverse": h(group.compose(a, back)) - h(one),
            "act": group.act(ab, point) - group.act(a, group.act(b, point)),
            "orthogonal": a.rotation @ a.rotation.T - one.rotation,
            "adjoint homomorphism": group.adjoint(ab) - group.adjoint(a) @ group.adjoint(b),
            "adjoint inverse": group.adjoint_inverse(a) @ group.adjoint(a) - jnp.eye(group.DIM),
            "adjoint conjugates": group.hat(group.adjoint(a) @ y) - h(a) @ group.hat(y) @ h_back,
            "power": (group.adjoint(a) @ y) @ group.transport_wrench(a, w) - y @ w,
            "bracket": group.hat(group.ad(x) @ y)
            - group.hat(x) @ group.hat(y)
            + group.hat(y) @ group.hat(x),
            "ad is the rate of Ad": ad_rate - group.ad(x) @ y,
            "ad_star": group.ad_star(x) - group.ad(x).T,
            "log of exp": group.log(a) - x,
            "vee of hat": group.vee(group.hat(x)) - x,
            "dexp is the derivative of exp": group.vee(h_back @ rate) - group.dexp(x) @ y,
            "dexp_inv": group.dexp_inv(x) @ group.dexp(x) - jnp.eye(group.DIM),
            "dexp_inv is the derivative of log": log_rate - group.dexp_inv(x) @ y,
            "rotation log": group.rotation_log(group.rotation_exp(x[group.LIN :])) - x[group.LIN :],
            "rotation of exp": group.rotation_exp(x[group.LIN :]) - a.rotation,
            "pose7": h(group.from_pose7(group.to_pose7(a))) - h(a),
        }

    return quick_jit(run)


@functools.cache
def exponentials(group):
    return quick_jit(
        lambda x: (
            homogeneous(group.exp(x)),
            group.hat(x),
            group.adjoint(group.exp(x)),
            group.ad(x),
        )
    )


@functools.cache
def derivatives(group):
    """Every smooth function of a twist: value, derivative along `s` (forward), <gradient of sum, s>
    (reverse).
    """

    # a dict, not one long vector: XLA fuses what is concatenated, and then compiles ten times as
    # long
    def f(x):
        pose = group.exp(x)
        return {
            "exp": (pose.rotation, pose.position),
            "log": group.log(pose),
            "adjoint_inverse": group.adjoint_inverse(pose),
            "transport_wrench": group.transport_wrench(pose, x),
            "dexp": group.dexp(x),
            "dexp_inv": group.dexp_inv(x),
            "to_pose7": group.to_pose7(pose),
        }

    def run(x, s):
        value, along = jax.jvp(f, (x,), (s,))
        _, pull = jax.vjp(f, x)
        return value, along, pull(jax.tree.map(jnp.ones_like, value))[0] @ s

    return quick_jit(run)


@functools.cache
def second_derivatives(group):
    """Derivative along s; and along s and t (forward over forward) or gradient of <u, that along s>
    (reverse).
    """
    forward = {"dexp": group.dexp, "dexp_inv": group.dexp_inv}
    reverse = {
        "exp": lambda x: homogeneous(group.exp(x)),
        "log of exp": lambda x: group.log(group.exp(x)),
    }

    def run(x, s, t, u):
        found = {
            name: jax.jvp(lambda x, f=f: jax.jvp(f, (x,), (s,))[1], (x,), (t,))
            for name, f in forward.items()
        }
        for name, f in reverse.items():

            def weighted(x, f=f):
                along = jax.jvp(f, (x,), (s,))[1]
                return jnp.sum(u[: along.size].reshape(along.shape) * along), along

            gradient, along = jax.grad(weighted, has_aux=True)(x)
            found[name] = along, gradient
        return found

    return quick_jit(run)


def check_laws(group, rows):
    (x, y, w), angle = rows
    x = fit(group, x, angle)
    found = jax.tree.map(np.asarray, residuals(group)(x, fit(group, y, 1.1), w[: group.DIM]))
    bad = {name: float(np.abs(r).max()) for name, r in found.items() if not np.abs(r).max() < 2e-13}
    assert not bad
    pose, hat, adjoint, ad = map(np.asarray, exponentials(group)(x))
    assert np.abs(pose - scipy.linalg.expm(hat)).max() < 1e-13
    assert np.abs(adjoint - scipy.linalg.expm(ad)).max() < 1e-13


class Laws:
    """Subclass with `group = se2` or `se3`."""

    group = None

    @pytest.mark.parametrize("angle", ANGLES)
    def test_forward_reverse_and_finite_differences_agree(self, angle):
        f = derivatives(self.group)
        x = fit(self.group, np.array([0.3, -0.8, 0.5, 0.6, -0.2, 0.9]), angle)
        # near a half turn log jumps: stay on this side of it
        h, tolerance = (1e-3, 1e-9) if angle < 3.1 else (2e-7, 1e-5)
        for s in np.random.default_rng(4).normal(size=(3, self.group.DIM)):
            _, forward, reverse = jax.tree.map(np.asarray, f(x, s))
            assert np.isclose(
                sum(np.sum(d) for d in jax.tree.leaves(forward)), reverse, rtol=1e-12, atol=1e-12
            )
            around = [jax.tree.map(np.asarray, f(x + k * h * s, s)[0]) for k in (-2, -1, 1, 2)]
            for d, a, b, c, e in zip(*map(jax.tree.leaves, (forward, *around)), strict=True):
                # fourth order, so that the check resolves 1e-9
                assert np.abs(d - (8 * (c - b) - (e - a)) / (12 * h)).max() < tolerance

    @pytest.mark.parametrize("size", [0.0, 1e-9])
    def test_first_and_second_derivatives_at_zero(self, size):
        """Against exp = 1 + x + x^2/2, dexp = 1 - ad/2 + ad^2/6, dexp_inv = 1 + ad/2 + ad^2/12."""
        g, rng = self.group, np.random.default_rng(5)
        s, t = rng.normal(size=(2, g.DIM))
        u = rng.normal(size=36)
        found = jax.tree.map(np.asarray, second_derivatives(g)(size * np.ones(g.DIM), s, t, u))
        hat, ad = ([np.asarray(f(jnp.asarray(e))) for e in np.eye(g.DIM)] for f in (g.hat, g.ad))

        def form(matrices, a, b):
            a, b = np.tensordot(a, matrices, 1), np.tensordot(b, matrices, 1)
            return a @ b + b @ a

        weights = u[: hat[0].size].reshape(hat[0].shape)
        expected = {
            "exp": (
                np.tensordot(s, hat, 1),
                np.array([np.sum(weights * form(hat, s, e)) / 2 for e in np.eye(g.DIM)]),
            ),
            "dexp": (-np.tensordot(s, ad, 1) / 2, form(ad, s, t) / 6),
            "dexp_inv": (np.tensordot(s, ad, 1) / 2, form(ad, s, t) / 12),
            "log of exp": (s, np.zeros(g.DIM)),
        }
        for name, (first, second) in expected.items():
            assert np.abs(found[name][0] - first).max() < 1e-14 + 30 * size, name
            assert np.abs(found[name][1] - second).max() < 1e-13 + 100 * size, name

    @pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, 2.5])
    def test_float32_in_float32_out(self, angle):
        f = derivatives(self.group)
        x = fit(self.group, np.array([0.3, -0.8, 0.5, 0.6, -0.2, 0.9]), angle)
        s = np.ones(self.group.DIM)
        pairs = zip(
            *map(jax.tree.leaves, (f(x.astype(np.float32), s.astype(np.float32)), f(x, s))),
            strict=True,
        )
        for found, expected in pairs:
            assert found.dtype == jnp.float32
            assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)

    def test_every_function_keeps_the_dtype(self):
        g = self.group
        pose = g.identity(jnp.float32)
        twist = jax.ShapeDtypeStruct((g.DIM,), jnp.float32)
        calls = [
            (g.compose, pose, pose),
            (g.inverse, pose),
            (g.act, pose, jax.ShapeDtypeStruct((g.LIN,), jnp.float32)),
        ]
        calls += [(f, pose) for f in (g.log, g.adjoint, g.adjoint_inverse, g.to_pose7)]
        calls += [(f, twist) for f in (g.exp, g.ad, g.ad_star, g.dexp, g.dexp_inv, g.hat)]
        calls += [
            (g.transport_wrench, pose, twist),
            (g.from_pose7, jax.ShapeDtypeStruct((7,), jnp.float32)),
        ]
        for f, *args in calls:
            leaves = jax.tree.leaves(jax.eval_shape(f, *args))
            assert all(leaf.dtype == jnp.float32 and not leaf.weak_type for leaf in leaves), (
                f.__name__
            )
        assert jax.tree.leaves(g.identity())[0].dtype == jnp.float64
