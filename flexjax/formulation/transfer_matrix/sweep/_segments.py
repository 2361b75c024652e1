"""The Riccati sweep over segments, and its form for a batch of runs.

XLA vectorises a loop over one axis, but hardly one over small matrices with the runs as last axis.
So every entry of the small matrices is an array over the runs here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax._rules import ruled
from flexjax.formulation.transfer_matrix.sweep._riccati import (
    Elements,
    Solution,
    riccati,
    swept,
    swept_again,
)
from flexjax.numerics.screw._trig import sincos


class Segments(eqx.Module):
    """Parameters from which the elements of a chain follow by products and sums: (n,) each.

    ``cos``, ``sin``: of the angles of the bodies. ``square``: the known part of the squared angular
    velocity; ``gain``: its derivative with respect to the angular acceleration. ``reach`` and
    ``moment`` are in body axes. ``force`` and ``load``: forces and torques of loads. The rest are
    the laws of the connections.
    """

    cos: Float[Array, " n"]
    sin: Float[Array, " n"]
    square: Float[Array, " n"]
    gain: Float[Array, " n"]
    reach_x: Float[Array, " n"]
    reach_y: Float[Array, " n"]
    moment_x: Float[Array, " n"]
    moment_y: Float[Array, " n"]
    mass: Float[Array, " n"]
    rotary: Float[Array, " n"]
    force_x: Float[Array, " n"]
    force_y: Float[Array, " n"]
    load: Float[Array, " n"]
    stiffness: Float[Array, " n"]
    torque: Float[Array, " n"]
    free: Float[Array, " n"]
    given: Float[Array, " n"]
    coupling: Float[Array, " n"]
    inertia: Float[Array, " n"]
    rotor_torque: Float[Array, " n"]

    def geometry(self, once: Callable[..., Any] = lambda *numbers: numbers):
        """(row, column, shift) of the lever and (row, column, inertial force) of the centre of
        mass, two components each; ``once`` marks values that get a kernel of their own."""

        def rotated(x: Array, y):
            X, Y = once(self.cos * x - self.sin * y, self.sin * x + self.cos * y)
            return (
                (-Y, X),
                (-Y - self.gain * X, X - self.gain * Y),
                (-self.square * X, -self.square * Y),
            )

        row, column, inertial = rotated(self.moment_x, self.moment_y)
        return rotated(self.reach_x, self.reach_y), (
            row,
            column,
            (inertial[0] - self.force_x, inertial[1] - self.force_y),
        )

    def elements(self) -> Elements:
        (row, column, shift), (torques, forces, inertial) = self.geometry()
        zero = jnp.zeros_like(self.cos)
        mass = [
            jnp.stack([self.mass + zero, zero, forces[0], inertial[0]], -1),
            jnp.stack([zero, self.mass + zero, forces[1], inertial[1]], -1),
            jnp.stack([*torques, self.rotary + zero, -self.load + zero], -1),
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
            rotor_torque=self.rotor_torque,
        )


@ruled
def riccati_segments(seg: Segments, root: Float[Array, "3"]) -> Solution:
    return riccati(seg.elements(), root)


def _applied(seg: Segments, e: Array, D: Array, al: Array, behind: Array):
    """The coefficients applied to a solution: their change is a change of the right-hand side."""
    (row, column, shift), (torques, forces, inertial) = seg.geometry()
    ax, ay, alpha = e[:, 0], e[:, 1], e[:, 2]
    ahead = [c * alpha + s for c, s in zip(column, shift, strict=True)]
    force = [
        seg.mass * a + f * alpha + p for a, f, p in zip((ax, ay), forces, inertial, strict=True)
    ]
    moment = (
        torques[0] * ax
        + torques[1] * ay
        + seg.rotary * alpha
        - seg.load
        + row[0] * behind[:, 0]
        + row[1] * behind[:, 1]
    )
    torque = seg.torque - seg.stiffness * D - seg.coupling * al
    rotor_torque = seg.rotor_torque - seg.coupling * D - seg.inertia * al
    return jnp.stack(ahead, -1), jnp.stack([*force, moment], -1), torque, seg.given, rotor_torque


@riccati_segments.def_jvp
def _riccati_segments_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    """As that of `riccati`, without derivatives of the small matrices, which are many small kernels
    in reverse mode."""
    (seg, root), (d, d_root) = primals, tangents
    el = seg.elements()
    known = swept(el, root)
    sol = known.solution
    _, (shift, bias, torque, given, rotor_torque) = jax.jvp(
        lambda s: _applied(s, sol.e, sol.rotation, known.al, known.behind), (seg,), (d,)
    )
    return sol, swept_again(el, known, shift, bias, torque, given, rotor_torque, d_root)


@riccati_segments.def_vmap
def _many(size: int, batched: Any, seg: Segments, root: Float[Array, "3"]):
    def behind(x: Array, is_batched):
        # Barriers on both sides: fused with a transposition, neither the code before it nor that
        # after it is vectorised.
        return _barrier(jnp.moveaxis(_barrier(x), 0, -1)) if is_batched else x[..., None]

    ones = _opaque_ones(jnp.broadcast_to(seg.cos, (size, seg.cos.shape[-1])))
    seg, root = jax.tree.map(behind, (seg, root), batched)
    (ax, ay, alpha, rotation), rows = _sweep(size, seg, root)
    torque = rows[0] * ax + rows[1] * ay + rows[2] * alpha + rows[3]
    # Transposed once: otherwise nine kernels of a step read these in long strides.
    ax, ay, alpha, rotation, torque = (x.T / ones for x in (ax, ay, alpha, rotation, torque))
    return Solution(jnp.stack([ax, ay, alpha], -1), rotation, torque)


def _barrier(x: Array):
    """Keeps XLA from fusing ``x`` with its operands; it may still recompute it in its consumers."""
    return lax.optimization_barrier(x)


def _opaque_ones(cos: Array):
    """Opaque ones: dividing by them keeps XLA from recomputing cheap values in every consumer.

    They are one also where a run has failed (NaN).
    """
    return jnp.where(cos > 2.0, 2.0, 1.0).astype(cos.dtype)


def _sweep(size: int, seg: Segments, root: Any):
    """((ax, ay, al, D), rows of n behind the connections), each (n, size)."""
    dtype = root.dtype
    one = _opaque_ones(seg.cos[0, 0])

    def full(x: Array):
        return jnp.broadcast_to(x, (size,))

    def once(*numbers):
        return tuple(full(x) / one for x in numbers)

    def inwards(carry, x: Segments):
        (row, column, shift), (torques, forces, inertial) = x.geometry(once)
        # One array: twelve separate carries are copied one by one.
        carried = [carry[k * size : (k + 1) * size] for k in range(12)]
        columns = [carried[3 * k : 3 * k + 3] for k in range(4)]

        def through(by, k, i):
            return columns[0][i] * by[0] + columns[1][i] * by[1] + columns[k][i]

        for k, by in ((2, column), (3, shift)):
            columns[k] = [*once(through(by, k, 0), through(by, k, 1)), through(by, k, 2)]
        own = (
            (x.mass, 0.0, torques[0]),
            (0.0, x.mass, torques[1]),
            (*forces, x.rotary),
            (*inertial, -x.load),
        )
        n = once(
            *(
                c[2] + row[0] * c[0] + row[1] * c[1] + m[2]
                for c, m in zip(columns, own, strict=True)
            )
        )
        rotation = _rotation(x, n, x.free / (x.stiffness + n[2]))
        columns = [(c[0] + m[0], c[1] + m[1], m2) for c, m, m2 in zip(columns, own, n, strict=True)]
        response = columns[2][0], columns[2][1], n[2] + x.coupling
        after = (0.0, 0.0, x.inertia, -x.rotor_torque)
        new = [
            c[i] + response[i] * w + (a if i == 2 else 0.0)
            for c, w, a in zip(columns, rotation, after, strict=True)
            for i in range(3)
        ]
        return jnp.concatenate([full(z) for z in new]), (n, tuple(full(w) for w in rotation))

    _, (rows, rotations) = lax.scan(inwards, jnp.zeros(12 * size, dtype), seg, reverse=True)

    def outwards(carry: Any, x: Any):
        seg, w = x
        (_, column, shift), _ = seg.geometry()
        ax, ay, al = carry  # separate arrays: joined, XLA would not vectorise them
        D = w[0] * ax + w[1] * ay + w[2] * al + w[3]
        al = _barrier(al + D)
        new = ax + column[0] * al + shift[0], ay + column[1] * al + shift[1], al
        return tuple(full(z) for z in new), (ax, ay, al, D)

    return lax.scan(outwards, tuple(full(z) for z in root), (seg, rotations))[1], rows


def _rotation(x: Segments, n: Sequence[Array], soft: Array):
    """D = rotation . (e, 1), from the row of n behind the connection."""
    return (
        -n[0] * soft,
        -n[1] * soft,
        -(n[2] + x.coupling) * soft,
        (x.torque - n[3]) * soft + x.given,
    )


@ruled
def cos_sin(angle: Array) -> tuple[Array, Array]:
    """(cos, sin). Batches in double precision use polynomials: XLA calls a function for each
    number, which takes four times as long. For the few angles of one arm that is no loss."""
    return jnp.cos(angle), jnp.sin(angle)


@cos_sin.def_jvp
def _cos_sin_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    c, s = cos_sin(*primals)
    return (c, s), (-s * tangents[0], c * tangents[0])


@cos_sin.def_vmap
def _cos_sin_many(size: int, batched: Any, angle: Array):
    return (sincos(angle)[::-1]) if angle.dtype == jnp.float64 else (jnp.cos(angle), jnp.sin(angle))
