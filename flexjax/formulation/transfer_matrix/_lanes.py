"""The Riccati sweep over segments with many runs side by side.

XLA turns a loop over one axis into vector instructions, and hardly one over small matrices with the
runs behind them (37 against 170 ns per segment and run), so every number of the small matrices is
an array of its own here, over the runs.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax._rules import ruled
from flexjax.formulation.transfer_matrix._sweep import (
    Elements,
    Solution,
    riccati,
    swept,
    swept_again,
)


class Segments(eqx.Module):
    """What the elements of a chain follow from by products and sums alone: (n,) each.

    ``cos``, ``sin``: of the bodies' angles. ``square``: what is known of the squared spin,
    ``gain``: what it grows by with the angular acceleration. ``reach`` and ``moment`` in body axes;
    forces and torques of loads; the laws of the connections."""

    cos: Float[Array, " n"]
    sin: Float[Array, " n"]
    square: Float[Array, " n"]
    gain: Float[Array, " n"]
    reach_x: Float[Array, " n"]
    reach_y: Float[Array, " n"]
    moment_x: Float[Array, " n"]
    moment_y: Float[Array, " n"]
    mass: Float[Array, " n"]
    spin: Float[Array, " n"]
    force_x: Float[Array, " n"]
    force_y: Float[Array, " n"]
    load: Float[Array, " n"]
    stiffness: Float[Array, " n"]
    torque: Float[Array, " n"]
    free: Float[Array, " n"]
    given: Float[Array, " n"]
    coupling: Float[Array, " n"]
    inertia: Float[Array, " n"]
    pull: Float[Array, " n"]

    def geometry(self, once=lambda *numbers: numbers):
        """(row, column, shift) of the lever, and (row, column, push) of the centre of mass, two
        numbers each; ``once``: what is to be computed by kernels of its own."""

        def seen(x, y):
            X, Y = once(self.cos * x - self.sin * y, self.sin * x + self.cos * y)
            return (
                (-Y, X),
                (-Y - self.gain * X, X - self.gain * Y),
                (-self.square * X, -self.square * Y),
            )

        row, column, push = seen(self.moment_x, self.moment_y)
        return seen(self.reach_x, self.reach_y), (
            row,
            column,
            (push[0] - self.force_x, push[1] - self.force_y),
        )

    def elements(self) -> Elements:
        (row, column, shift), (torques, forces, push) = self.geometry()
        zero = jnp.zeros_like(self.cos)
        mass = [
            jnp.stack([self.mass + zero, zero, forces[0], push[0]], -1),
            jnp.stack([zero, self.mass + zero, forces[1], push[1]], -1),
            jnp.stack([*torques, self.spin + zero, -self.load + zero], -1),
        ]
        return Elements(
            column=jnp.stack(column, -1),
            row=jnp.stack(row, -1),
            shift=jnp.stack(shift, -1),
            mass=jnp.stack(mass, -2),
            stiffness=self.stiffness,
            torque=self.torque,
            free=self.free,
            given=self.given,
            coupling=self.coupling,
            inertia=self.inertia,
            pull=self.pull,
        )


@ruled
def riccati_segments(seg: Segments, root: Float[Array, "3"]) -> Solution:
    return riccati(seg.elements(), root)


def _applied(seg: Segments, e, D, al, behind):
    """The coefficients applied to a solution: what stands on the right-hand side when they
    change."""
    (row, column, shift), (torques, forces, push) = seg.geometry()
    ax, ay, turned = e[:, 0], e[:, 1], e[:, 2]
    ahead = [c * turned + s for c, s in zip(column, shift, strict=True)]
    force = [seg.mass * a + f * turned + p for a, f, p in zip((ax, ay), forces, push, strict=True)]
    moment = (
        torques[0] * ax
        + torques[1] * ay
        + seg.spin * turned
        - seg.load
        + row[0] * behind[:, 0]
        + row[1] * behind[:, 1]
    )
    torque = seg.torque - seg.stiffness * D - seg.coupling * al
    pull = seg.pull - seg.coupling * D - seg.inertia * al
    return jnp.stack(ahead, -1), jnp.stack([*force, moment], -1), torque, seg.given, pull


@riccati_segments.def_jvp
def _riccati_segments_jvp(primals, tangents):
    """As that of `riccati`, without the small matrices' derivatives: in reverse mode these are many
    small kernels."""
    (seg, root), (d, d_root) = primals, tangents
    el = seg.elements()
    known = swept(el, root)
    sol = known.solution
    _, (shift, bias, torque, given, pull) = jax.jvp(
        lambda s: _applied(s, sol.e, sol.turn, known.al, known.behind), (seg,), (d,)
    )
    return sol, swept_again(el, known, shift, bias, torque, given, pull, d_root)


@riccati_segments.def_vmap
def _many(size, batched, seg: Segments, root):
    def behind(x, is_batched):
        # Barriers on both sides: fused with a transposition, neither what is before it nor what is
        # after it becomes vector instructions (a step of 256 runs and 60 segments took 2.9 ms, 1.6
        # with barriers here and in the sweep).
        return _apart(jnp.moveaxis(_apart(x), 0, -1)) if is_batched else x[..., None]

    ones = _hidden_ones(jnp.broadcast_to(seg.cos, (size, seg.cos.shape[-1])))
    seg, root = jax.tree.map(behind, (seg, root), batched)
    (ax, ay, alpha, turn), rows = _sweep(size, seg, root)
    torque = rows[0] * ax + rows[1] * ay + rows[2] * alpha + rows[3]
    # Transposed once: nine kernels of a step would read these in long strides, each four times as
    # long for it.
    ax, ay, alpha, turn, torque = (x.T / ones for x in (ax, ay, alpha, turn, torque))
    return Solution(jnp.stack([ax, ay, alpha], -1), turn, torque)


def _apart(x):
    """Not simplified together with what it is made of; XLA may still compute it again where it is
    used (`_hidden_ones`)."""
    return lax.optimization_barrier(x)


def _hidden_ones(cos):
    """Ones, without XLA's knowledge. Cheap numbers XLA computes again in every kernel that uses
    them, through barriers too, but never a quotient: the sweep inwards has 870 vector instructions
    per four runs without divisions by this (610 against 410 us for 60 segments and 256 runs). Ones
    also where a run has failed (NaN)."""
    return jnp.where(cos > 2.0, 2.0, 1.0).astype(cos.dtype)


def _sweep(size: int, seg: Segments, root):
    """((ax, ay, al, D), rows of n behind the connections), each (n, size)."""
    dtype = root.dtype
    one = _hidden_ones(seg.cos[0, 0])

    def full(x):
        return jnp.broadcast_to(x, (size,))

    def once(*numbers):
        return tuple(full(x) / one for x in numbers)

    def inwards(carry, x: Segments):
        (row, column, shift), (torques, forces, push) = x.geometry(once)
        # One array: a dozen carried apart are copied one by one.
        carried = [carry[k * size : (k + 1) * size] for k in range(12)]
        columns = [carried[3 * k : 3 * k + 3] for k in range(4)]

        def through(by, k, i):
            return columns[0][i] * by[0] + columns[1][i] * by[1] + columns[k][i]

        for k, by in ((2, column), (3, shift)):
            columns[k] = [*once(through(by, k, 0), through(by, k, 1)), through(by, k, 2)]
        own = (
            (x.mass, 0.0, torques[0]),
            (0.0, x.mass, torques[1]),
            (*forces, x.spin),
            (*push, -x.load),
        )
        n = once(
            *(
                c[2] + row[0] * c[0] + row[1] * c[1] + m[2]
                for c, m in zip(columns, own, strict=True)
            )
        )
        turn = _turn(x, n, x.free / (x.stiffness + n[2]))
        columns = [(c[0] + m[0], c[1] + m[1], m2) for c, m, m2 in zip(columns, own, n, strict=True)]
        pressed = columns[2][0], columns[2][1], n[2] + x.coupling
        after = (0.0, 0.0, x.inertia, -x.pull)
        new = [
            c[i] + pressed[i] * w + (a if i == 2 else 0.0)
            for c, w, a in zip(columns, turn, after, strict=True)
            for i in range(3)
        ]
        return jnp.concatenate([full(z) for z in new]), (n, tuple(full(w) for w in turn))

    _, (rows, turns) = lax.scan(inwards, jnp.zeros(12 * size, dtype), seg, reverse=True)

    def outwards(carry, x):
        seg, w = x
        (_, column, shift), _ = seg.geometry()
        ax, ay, al = (
            carry  # three apart: joined, one after the other of their numbers would be computed
        )
        D = w[0] * ax + w[1] * ay + w[2] * al + w[3]
        al = _apart(al + D)
        new = ax + column[0] * al + shift[0], ay + column[1] * al + shift[1], al
        return tuple(full(z) for z in new), (ax, ay, al, D)

    return lax.scan(outwards, tuple(full(z) for z in root), (seg, turns))[1], rows


def _turn(x: Segments, n, soft):
    """D = turn . (e, 1), from the row of n behind the connection."""
    return (
        -n[0] * soft,
        -n[1] * soft,
        -(n[2] + x.coupling) * soft,
        (x.torque - n[3]) * soft + x.given,
    )
