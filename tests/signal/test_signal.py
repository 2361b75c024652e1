"""Every signal: derivatives in time and in all its numbers, breaks, `at`, dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax.drive.signal as fs
from tests.screw.laws import quick_jit
from tests.signal.catalogue import INSTANTS, SIGNALS

each = pytest.mark.parametrize("name", SIGNALS)
GRID = np.linspace(-0.5, 3.5, 2001)
MEETINGS = np.array([0.0, 0.3, 1.8])  # where smooth pieces of the catalogue meet
NEAR = 1e-7


@quick_jit
def study(signal, direction, ts, at):
    """All parts at all times; along a change of the numbers; gradient of their sum; along time.

    One program for all tests of a signal, since compiling is what they cost.
    """

    def run(s, shift):
        return jax.vmap(s.evaluate)(ts + shift, at)

    still, resting = jnp.zeros_like(ts), jax.tree.map(jnp.zeros_like, signal)
    values, linear = jax.linearize(run, signal, still)
    reverse, _ = jax.linear_transpose(linear, signal, still)(jax.tree.map(jnp.ones_like, values))
    return values, linear(direction, still), reverse, linear(resting, jnp.ones_like(ts))


def times(signal):
    """Instants, where smooth pieces meet, the breaks, shortly before and after them; a grid."""
    b = np.asarray(signal.breaks())
    return np.concatenate([INSTANTS, MEETINGS, b, b - NEAR, b + NEAR, GRID])


def look(signal, direction=None, at=None, ts=None):
    """`study` as numpy arrays: every slice of a jax array would be compiled."""
    ts = times(signal) if ts is None else ts
    direction = jax.tree.map(np.ones_like, signal) if direction is None else direction
    return jax.tree.map(np.asarray, study(signal, direction, ts, ts if at is None else at))


@each
def test_velocity_and_acceleration_are_the_derivatives(name):
    (value, velocity, acceleration), _, _, (d_value, d_velocity, _) = look(SIGNALS[name])
    assert value.shape == velocity.shape == acceleration.shape
    n = INSTANTS.size
    assert np.allclose(velocity[:n], d_value[:n], rtol=1e-12, atol=1e-12)
    assert np.allclose(acceleration[:n], d_velocity[:n], rtol=1e-12, atol=1e-11)


@each
def test_jumps_are_in_breaks_and_nowhere_else(name):
    signal = SIGNALS[name]
    breaks = np.asarray(signal.breaks())
    assert breaks.ndim == 1 and breaks.dtype == np.float64
    parts = [np.asarray(p).reshape(p.shape[0], -1) for p in look(signal)[0]]
    half = 0.5 * (GRID[1] - GRID[0])
    near = np.abs(GRID[:-1, None] + half - breaks[None]).min(axis=1, initial=np.inf) < 1.01 * half
    jumps = [np.abs(np.diff(p[-GRID.size :], axis=0)).max(axis=1)[~near] for p in parts]
    # a smooth part moves by its rate times 2e-3; by far the largest rate is that of the chirp's
    # acceleration
    assert all(j.max() < (9.0 if name == "chirp" else 0.6) for j in jumps)
    start = INSTANTS.size + MEETINGS.size + breaks.size
    before, after = ([p[k : k + breaks.size] for p in parts] for k in (start, start + breaks.size))
    if breaks.size:
        differences = [np.abs(b - a).max(axis=1) for a, b in zip(before, after, strict=True)]
        assert np.min(np.sum(differences, axis=0)) > 1e-2


@each
def test_at_picks_the_piece(name):
    """Exactly on a break, `at` shortly before or after it gives the limit of that piece, in all
    three parts.
    """
    signal = SIGNALS[name]
    ts, n = times(signal), signal.breaks().size
    start = INSTANTS.size + MEETINGS.size
    limits, _, _, _ = look(signal)
    for side, offset in ((n, -0.02), (2 * n, 0.02)):
        at = ts.copy()
        at[start : start + n] += offset
        found, _, _, _ = look(signal, at=at)
        for f, limit in zip(found, limits, strict=True):
            assert np.allclose(
                f[start : start + n], limit[start + side : start + side + n], rtol=1e-4, atol=1e-4
            )
    # a step that lies between breaks: nothing depends on which of its points picks the piece
    nudged, _, _, _ = look(signal, at=np.where(np.arange(ts.size) < INSTANTS.size, ts + 1e-3, ts))
    for a, b in zip(nudged, limits, strict=True):
        assert np.array_equal(a[: INSTANTS.size], b[: INSTANTS.size])


@each
def test_gradients_in_every_number(name):
    """Forward = reverse = finite differences, in each leaf on its own; no NaN, not even where
    pieces meet.
    """
    signal = SIGNALS[name]
    leaves, structure = jax.tree.flatten(signal)
    assert all(
        isinstance(x, jax.Array) and x.dtype == jnp.float64 and not x.weak_type for x in leaves
    )
    leaves = [np.asarray(x) for x in leaves]
    rng, h, n, ts = np.random.default_rng(0), 1e-4, INSTANTS.size, times(signal)
    for k in range(len(leaves)):
        zeros = [np.zeros(x.shape) for x in leaves]
        zeros[k] = rng.normal(size=leaves[k].shape)
        direction = jax.tree.unflatten(structure, zeros)
        values, forward, reverse, _ = look(signal, direction)
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((values, forward, reverse)))
        back = sum(np.sum(g * z) for g, z in zip(jax.tree.leaves(reverse), zeros, strict=True))
        assert np.isclose(back, sum(np.sum(f) for f in forward), rtol=1e-9, atol=1e-9)
        shifts = [
            [x + c * h * d for x, d in zip(leaves, zeros, strict=True)] for c in (-2, -1, 1, 2)
        ]
        moved = [jax.tree.unflatten(structure, shifted) for shifted in shifts]
        around = [look(m, direction, ts=ts)[0] for m in moved]
        for found, *x in zip(forward, *around, strict=True):
            assert np.allclose(
                found[:n], (8 * (x[2] - x[1]) - (x[3] - x[0]))[:n] / (12 * h), rtol=1e-7, atol=1e-6
            )


@each
def test_float32_stays_float32(name):
    signal = jax.tree.map(lambda x: x.astype(jnp.float32), SIGNALS[name])
    out = jax.eval_shape(signal.evaluate, jax.ShapeDtypeStruct((), jnp.float32))
    assert {x.dtype for x in jax.tree.leaves((out, jax.eval_shape(signal.breaks)))} == {
        jnp.dtype("float32")
    }


def test_prepare_solves_splines_anywhere_in_a_tree():
    tree = {
        "a": [2.0 * SIGNALS["spline"], SIGNALS["quintic"]],
        "b": fs.spline([0.0, 2.0, 3.0], [0.0, 1.0, 2.0], "natural"),
    }
    assert "Spline" not in repr(jax.eval_shape(fs.prepare, tree))

    @quick_jit
    def both(tree):
        def loss(tree, ready):
            tree = ready(tree)
            return sum(s.evaluate(1.0)[0] for s in (*tree["a"], tree["b"]))

        return [jax.value_and_grad(loss)(tree, ready) for ready in (fs.prepare, lambda t: t)]

    one, two = both(tree)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert np.allclose(x, y, rtol=1e-12, atol=1e-14)
