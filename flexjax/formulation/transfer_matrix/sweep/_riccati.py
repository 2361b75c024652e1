"""The elements of a planar chain, and the Riccati sweep over them.

Unknowns at a cut: e = (ax, ay, al), or positions and angle in the published form, and f = (qx, qy,
n): force and torque of the inboard on the outboard part (n = -m of the paper). With f instead of
the paper's order and sign, f = S e + p has a symmetric positive definite S at the acceleration
level. Element i is a connection (hinge, spring, motor) followed by a rigid body:

    connection   e += (0, 0, D)
                 n = torque - stiffness D - coupling al_I  where D is free,  D = given  where rigid
                 n_I = n + coupling D + inertia al_I - rotor_torque  (of a motor, inboard)
    body         e_O = e_I + column al_I + shift
                 q_I = q_O + ...,   n_I = n_O + row . q_O + ...,   both + [mass | bias] (e_I, 1)
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float

from flexjax._rules import ruled

KEPT = "transfer_matrix_sweep"  # what reverse mode stores of a step; it recomputes the rest


class Elements(eqx.Module):
    """Coefficients of one step, stacked over the n elements from root to tip."""

    column: Float[Array, "n 2"]
    row: Float[Array, "n 2"]
    shift: Float[Array, "n 2"]
    mass: Float[Array, "n 3 4"]  # with the bias as last column
    stiffness: Float[Array, " n"]
    torque: Float[Array, " n"]
    free: Float[Array, " n"]  # 1, or 0 where the connection is rigid
    given: Float[Array, " n"]  # D of rigid connections
    coupling: Float[Array, " n"]
    inertia: Float[Array, " n"]
    rotor_torque: Float[Array, " n"]


class Solution(eqx.Module):
    """Result of a sweep: e at the inboard point of each body (behind its connection), D of each
    connection, and the torque n on the body."""

    e: Float[Array, "n 3"]
    rotation: Float[Array, " n"]
    torque: Float[Array, " n"]


def body_maps(el: Elements) -> tuple[Array, Array]:
    """Bodies as matrices: (n, 4, 4) with (e, 1)_O = right (e, 1)_I, and (n, 3, 3) that takes f_O
    inboard."""
    zero, one = jnp.zeros_like(el.torque), jnp.ones_like(el.torque)

    def matrix(rows):
        return jnp.stack([jnp.stack(r, 1) for r in rows], 1)

    (cx, cy), (rx, ry), (sx, sy) = ((v[:, 0], v[:, 1]) for v in (el.column, el.row, el.shift))
    right = matrix(
        [[one, zero, cx, sx], [zero, one, cy, sy], [zero, zero, one, zero], [zero, zero, zero, one]]
    )
    return right, matrix([[one, zero, zero], [zero, one, zero], [rx, ry, one]])


def _swept(el: Elements, root: Float[Array, "3"]) -> tuple[Array, Array]:
    """(n, 3, 4) [S | p] behind each connection, by a scan from the tip, and (n, 3) e in front of
    it, by a scan from the root. All arrays may have the runs of a batch as last axis.

    The carry is one array [S | p], and the body three products and one division, which XLA fuses
    into few kernels.
    """
    right, left = body_maps(el)
    dtype = root.dtype

    def fixed(*numbers):
        return jnp.asarray(numbers, dtype).reshape((-1,) + (1,) * (root.ndim - 1))

    last, third, unit = fixed(0.0, 0.0, 0.0, 1.0), fixed(0.0, 0.0, 1.0), fixed(0.0, 0.0, 1.0, 0.0)
    hinge = jnp.stack([el.stiffness, el.torque, el.free, el.given, el.coupling], 1)
    # The rotor's coupling acts in row and column of al alike; where no connection has one these are
    # zeros.
    after = (
        third[None, :, None]
        * (el.inertia[:, None] * unit[None] - el.rotor_torque[:, None] * last[None])[:, None]
    )

    def inwards(Z, x):
        right, left, mass, hinge, after = x
        X = jnp.sum(Z[:, :, None] * right[None], axis=1)
        X = jnp.sum(left[:, :, None] * X[None], axis=1) + mass
        soft = hinge[2] / (hinge[0] + X[2, 2])
        w = (last * hinge[1][None] - X[2] - hinge[4][None] * unit) * soft[None] + last * hinge[3][
            None
        ]
        return X + (X[:, 2] + hinge[4][None] * third)[:, None] * w[None] + after, X

    start = jnp.zeros((3, 4, *root.shape[1:]), dtype)
    _, X = lax.scan(inwards, start, (right, left, el.mass, hinge, after), reverse=True)
    rotation = rotation_rows(el, X[:, 2])
    # Outwards: connection and body as one affine map, made outside the scan.
    step = right[:, :3, :3] + right[:, :3, 2:3] * rotation[:, None, :3]
    shift = right[:, :3, 3] + right[:, :3, 2] * rotation[:, 3:]

    def outwards(e, x):
        A, b = x
        return jnp.sum(A * e[None], axis=1) + b, e

    return X, lax.scan(outwards, root, (step, shift))[1]


@ruled
def _sweep_one(el: Elements, root: Float[Array, "3"]) -> tuple[Array, Array]:
    return _swept(el, root)


@_sweep_one.def_vmap
def _sweep_many(size: int, batched: Any, el: Elements, root: Float[Array, "3"]):
    """The runs as last axis, which fills the vectors of the processor; vmap puts them in front."""

    def behind(x, is_batched):
        return (
            jnp.moveaxis(x, 0, -1)
            if is_batched
            else jnp.broadcast_to(x[..., None], (*x.shape, size))
        )

    X, e = _swept(*jax.tree.map(behind, (el, root), batched))
    return jnp.moveaxis(X, -1, 0), jnp.moveaxis(e, -1, 0)


@ruled
def riccati(el: Elements, root: Float[Array, "3"]) -> Solution:
    """f = S e + p swept from the tip, e from the root: linear cost, no loss of digits.

    Its derivative is the same linear system with another right-hand side: the matrices S are those
    of the value, and only vectors are swept again.
    """
    X, e = _sweep_one(el, root)
    return finish(X[:, 2], rotation_rows(el, X[:, 2]), e)


class Swept(NamedTuple):
    """A sweep with what its derivative needs: [S | p] behind each connection, D as a row on (e, 1)
    in front of it, al there, and the force (n, 2) on the part outboard of each body."""

    solution: Solution
    X: Array
    rotation: Array
    al: Array
    behind: Array


def swept(el: Elements, root: Float[Array, "3"]) -> Swept:
    X, e_in = checkpoint_name(_sweep_one(el, root), KEPT)
    rotation = rotation_rows(el, X[:, 2])
    sol = finish(X[:, 2], rotation, e_in)
    force = jnp.sum(X[1:, :2, :3] * sol.e[1:, None], axis=2) + X[1:, :2, 3]
    return Swept(
        sol, X, rotation, e_in[:, 2], jnp.concatenate([force, jnp.zeros((1, 2), root.dtype)])
    )


@riccati.def_jvp
def _riccati_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    (el, root), (d, d_root) = primals, tangents
    known = swept(el, root)
    e, D, al = known.solution.e, known.solution.rotation, known.al
    # Changes of the right-hand sides by the perturbed coefficients, at the solution.
    shift = d.shift + d.column * e[:, 2:]
    bias = jnp.sum(d.mass[:, :, :3] * e[:, None], axis=2) + d.mass[:, :, 3]
    bias = bias + jnp.stack(
        [jnp.zeros_like(D), jnp.zeros_like(D), jnp.sum(d.row * known.behind, axis=1)], -1
    )
    torque = d.torque - d.stiffness * D - d.coupling * al
    rotor_torque = d.rotor_torque - d.coupling * D - d.inertia * al
    return known.solution, swept_again(
        el, known, shift, bias, torque, d.given, rotor_torque, d_root
    )


def swept_again(
    el: Elements,
    known: Swept,
    shift: Array,
    bias: Array,
    torque: Array,
    given: Array,
    rotor_torque: Array,
    root: Float[Array, "3"],
) -> Solution:
    """The sweep with the matrices [S | .] of an earlier one and other right-hand sides.

    Every entry is an array of its own: batches of tangents would otherwise be sums over small axes,
    which XLA does not vectorise.
    """
    S, rotation = known.X[:, :, :3], known.rotation
    (cx, cy), (rx, ry) = el.column.T, el.row.T
    response = [S[:, 0, 2], S[:, 1, 2], S[:, 2, 2] + el.coupling]
    soft = el.free / (el.stiffness + S[:, 2, 2])
    # What is behind the connection outboard of each body, by the shift of that body.
    behind = [
        [S[:, i, j] + response[i] * rotation[:, j] for j in (0, 1)]  # inertia acts on al alone
        for i in range(3)
    ]
    outer = [[jnp.concatenate([x[1:], jnp.zeros_like(x[:1])]) for x in row] for row in behind]
    carried = [row[0] * shift[:, 0] + row[1] * shift[:, 1] for row in outer]
    level = rx * carried[0] + ry * carried[1] + carried[2]
    source = [carried[0] + bias[:, 0], carried[1] + bias[:, 1], level + bias[:, 2]]
    # p_i = close (left p_(i+1) + source) + response (soft torque + given) - rotor_torque, with
    # close = 1 - soft response (0, 0, 1)
    drop = [soft * r for r in response]
    known_turn = soft * torque + given
    c = [s - d * source[2] + r * known_turn for s, d, r in zip(source, drop, response, strict=True)]
    c[2] = c[2] - rotor_torque

    def inwards(p, x):
        (rx, ry), drop, c = x
        n = rx * p[0] + ry * p[1] + p[2]
        left = (p[0], p[1], n)
        return tuple(v - d * n + k for v, d, k in zip(left, drop, c, strict=True)), n

    zero = jnp.zeros_like(root[0])
    _, n = lax.scan(inwards, (zero, zero, zero), ((rx, ry), drop, c), reverse=True)
    n = n + source[2]
    start = soft * (torque - n) + given  # D where e in front of the connection is zero

    def outwards(e, x):
        (cx, cy), (sx, sy), row, start = x
        D = row[0] * e[0] + row[1] * e[1] + row[2] * e[2] + start
        al = e[2] + D
        return (e[0] + cx * al + sx, e[1] + cy * al + sy, al), (e[0], e[1], al, D)

    rows = tuple(rotation[:, j] for j in range(3))
    _, (ax, ay, al, D) = lax.scan(outwards, tuple(root), ((cx, cy), tuple(shift.T), rows, start))
    n = n + S[:, 2, 0] * ax + S[:, 2, 1] * ay + S[:, 2, 2] * al
    return Solution(jnp.stack([ax, ay, al], -1), D, n)


def rotation_rows(el: Elements, rows: Array) -> Array:
    """(n, 4): D = rotation . (e, 1), from the rows of n behind the connections."""
    soft = el.free / (el.stiffness + rows[:, 2])
    known = jnp.stack([rows[:, 2] + el.coupling, rows[:, 3] - el.torque], 1)
    w = -soft[:, None] * jnp.concatenate([rows[:, :2], known], axis=1)
    return jnp.concatenate([w[:, :3], (w[:, 3] + el.given)[:, None]], axis=1)


def finish(rows: Array, rotation: Array, e: Array) -> Solution:
    D = jnp.sum(rotation[:, :3] * e, axis=1) + rotation[:, 3]
    e = jnp.concatenate([e[:, :2], (e[:, 2] + D)[:, None]], axis=1)
    return Solution(e, D, jnp.sum(rows[:, :3] * e, axis=1) + rows[:, 3])
