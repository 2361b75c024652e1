"""The published form: dense tensors of eqs. (12)-(14) and the matrices of eq. (22).

    M u'' + D u' + (K + K_s(u)) u = f   for a given motion of the joint frame and given lengths.

The time loop does not use them; they serve for reading, export and checks. With the shape operators
F (translation) and R (rotation), and B = DF/Dt, C = D2F/Dt2 along the material:
    M = int F^T F,   D = 2 int F^T (B + W F),   K = int F^T (C + 2 W B + (W' + W^2) F),
    f = - int F^T (a_O + (W' + W^2) x e1 + (2 W v + v') e1)
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Scalar, Vector3, Velocities
from flexjax.formulation.moving_beam._carrier import frames, twists
from flexjax.formulation.moving_beam._chain import MovingBeamTerm
from flexjax.formulation.moving_beam.beam._shapes import (
    SPATIAL,
    Shapes,
    along_axis,
    field_rows,
    length_powers,
    shape_matrices,
)
from flexjax.formulation.moving_beam.beam._strain import (
    LETTERS,
    STIFFNESSES,
    Couplings,
    Term,
    scaled,
    strain_energy,
    tables,
)
from flexjax.numerics.beam import derivative_matrix, hilbert, product_integrals, shift_matrix
from flexjax.numerics.screw._quaternion import skew
from flexjax.numerics.term import Instant

ElementUnknowns = Float[Array, " u"]


def dense_tensor(term: Term, shapes: Shapes = SPATIAL) -> np.ndarray:
    """The product-integral tensor D of a term, exact (Fractions): eqs. (12)-(14)."""
    return product_integrals(
        tuple((shapes.fields[LETTERS[x][0]], LETTERS[x][1]) for x in term.letters)
    )


def dense_energy(
    terms: tuple[Term, ...],
    y: ElementUnknowns,
    length: Scalar,
    stiffness: Float[Array, "4"],
    shapes: Shapes = SPATIAL,
) -> Scalar:
    """Strain energy of one element by the dense tensors."""
    rows, total = field_rows(shapes), jnp.zeros((), y.dtype)
    h = y * length ** jnp.asarray(length_powers(shapes))
    for t in terms:
        D = jnp.asarray(dense_tensor(t, shapes).astype(float))
        for x in t.letters:
            D = jnp.tensordot(h[np.array(rows[LETTERS[x][0]])], D, axes=(0, 0))
        weight = float(t.factor) * stiffness[STIFFNESSES.index(t.stiffness)]
        total = total + weight * length ** (1 - t.derivatives) * D
    return total


class Matrices(eqx.Module):
    """Of eq. (22), over the elastic unknowns of the arm.

    ``K_strain`` depends on the state and is symmetric, and K_strain u = dV/du.
    """

    M: Float[Array, "n n"]
    D: Float[Array, "n n"]
    K: Float[Array, "n n"]
    K_strain: Float[Array, "n n"]
    f: Float[Array, " n"]


class Reference(eqx.Module):
    """Motion of the joint frame in its own axes; the acceleration is less gravity."""

    acceleration: Vector3
    omega: Vector3
    omega_rate: Vector3


class Flow(eqx.Module):
    """Value, rate and second rate of start, length and travel of a layer along the axis.

    The value of the travel is not used.
    """

    start: Vector3
    length: Vector3
    travel: Vector3


def _operators(shapes: Shapes, l: Scalar) -> tuple[Array, Array]:
    """Translation (moving, 3, u) and rotation (rotating, 3, u) of a section, polynomials in xi."""
    U, twist = shape_matrices(shapes)
    S = scaled(shapes, jnp.ones((1, shapes.size), l.dtype), l[None])[0]
    F = jnp.asarray(U.transpose(1, 2, 0), l.dtype) * S[None, None, :]
    slope = jnp.tensordot(jnp.asarray(derivative_matrix(shapes.moving), l.dtype), F, 1) / l
    # Only the slopes of bending rotate a section, and they fit.
    k = shapes.rotating
    slope = jnp.pad(slope, ((0, max(0, k - shapes.moving)), (0, 0), (0, 0)))[:k]
    alpha = jnp.asarray(twist.T, l.dtype) * S[None, :]
    return F, jnp.stack([alpha, -slope[:, 2], slope[:, 1]], axis=1)


def _material_rates(operator: Callable[[Array], Array], flow: Flow) -> tuple[Array, Array, Array]:
    """F, B = DF/Dt and C = D2F/Dt2 of an operator that depends on l and on xi."""

    def passing(P, start_rate, l, length_rate, travel_rate):
        derivative, shift = (f(P.shape[0]) for f in (derivative_matrix, shift_matrix))
        slope = jnp.tensordot(jnp.asarray(derivative, P.dtype), P, 1) / l
        shifted = jnp.tensordot(jnp.asarray(shift, P.dtype), slope, 1)
        return (travel_rate - start_rate) * slope - length_rate * shifted

    def first(l, length_rate, start_rate, travel_rate):
        F, F_rate = jax.jvp(operator, (l,), (length_rate,))
        return F_rate + passing(F, start_rate, l, length_rate, travel_rate)

    l, ld, ldd = flow.length
    _, Xd, Xdd = flow.start
    _, v, vd = flow.travel
    B, B_rate = jax.jvp(first, (l, ld, Xd, v), (ld, ldd, Xdd, vd))
    return operator(l), B, B_rate + passing(B, Xd, l, ld, v)


def element_inertia(
    shapes: Shapes, flow: Flow, ref: Reference, rhoA: Scalar, rhoI: Vector3
) -> tuple[Array, Array, Array, Array]:
    """M, D, K, f of one layer of one element."""
    l, dtype = flow.length[0], rhoA.dtype
    W, Wd = skew(ref.omega), skew(ref.omega_rate)
    A = Wd + W @ W
    F, B, C = _material_rates(lambda l: _operators(shapes, l)[0], flow)
    R, RB, RC = _material_rates(lambda l: _operators(shapes, l)[1], flow)
    n, k = shapes.moving, shapes.rotating
    H4, H3 = jnp.asarray(hilbert(n, n), dtype), jnp.asarray(hilbert(k, k), dtype)

    def rotated(m, P):
        return jnp.einsum("ab,pbu->pau", m, P)

    def moved(P):
        return rhoA * l * jnp.einsum("pci,pq,qc...->i...", F, H4, P)

    def spun(P):
        return l * jnp.einsum("pci,pq,c,qc...->i...", R, H3, rhoI, P)

    e1 = jnp.zeros(3, dtype).at[0].set(1.0)
    here, there = (jnp.asarray(x, dtype) for x in along_axis(n))
    place = flow.start[0] * here + l * there
    acceleration = ref.acceleration + 2 * flow.travel[1] * (W @ e1) + flow.travel[2] * e1
    first_n, first_k = (jnp.zeros((p, 1), dtype).at[0].set(1.0) for p in (n, k))
    return (
        moved(F) + spun(R),
        moved(2 * (B + rotated(W, F))) + spun(2 * RB),
        moved(C + 2 * rotated(W, B) + rotated(A, F)) + spun(RC),
        -moved(place @ A.T + first_n * acceleration[None, :])
        - spun(first_k * ref.omega_rate[None, :]),
    )


def element_strain(
    terms: tuple[Term, ...],
    y: ElementUnknowns,
    l: Scalar,
    stiffness: Float[Array, "4"],
    couplings: Couplings | None = None,
    shapes: Shapes = SPATIAL,
) -> tuple[Array, Array, Array]:
    """K1, H3(u), H4(u): second derivatives of the energy's parts of degree two, three, four.

    K(u) = K1 + H3/2 + H4/3 is symmetric with K(u) u = dV; the tangent is K1 + H3 + H4.
    """

    def hessian(degree):
        chosen = tuple(t for t in terms if t.degree == degree)
        if not chosen:
            return jnp.zeros((y.shape[0], y.shape[0]), y.dtype)

        def energy(y):
            table = tables(chosen, shapes)
            return strain_energy(table, y[None], l[None], stiffness[None], couplings)

        return jax.hessian(energy)(y)

    return hessian(2), hessian(3), hessian(4)


def reference_motion(
    term: MovingBeamTerm, now: Instant, q: Coordinates, v: Velocities, a: Velocities
) -> Reference:
    """Motion of the joint frame for joints that move as (q, v, a)."""
    D, carrier, layout = term.layout.dofs, term.carrier, term.layout
    base, twist, acceleration = term.base(now.t, now.piece_time)

    def frame_twist(x, xd, twist):
        return twists(carrier, layout, x, xd, twist)[0][-1]

    z, zd = jax.jvp(frame_twist, (q[:D], v[:D], twist), (v[:D], a[:D], acceleration))
    R = frames(carrier, layout, q[:D], base)[-1].rotation
    return Reference(zd[:3] + jnp.cross(z[3:], z[:3]) - R.T @ term.robot.gravity, z[3:], zd[3:])


def global_matrices(
    term: MovingBeamTerm,
    terms: tuple[Term, ...],
    now: Instant,
    q: Coordinates,
    v: Velocities,
    a: Velocities,
) -> Matrices:
    """Eq. (22) of the arm at one instant, without payloads. Of ``a`` only the joints matter."""
    layout, arm = term.layout, term.arm
    (_, d, y), (_, dd, _), (_, ddd, _) = (term.split(x) for x in (q, v, a))
    ref = reference_motion(term, now, q, v, a)
    X = jnp.stack([arm.start + arm.slope @ d, arm.slope @ dd, arm.slope @ ddd], axis=1)
    travel = jnp.stack([arm.speed @ x for x in (jnp.zeros_like(d), dd, ddd)], axis=2)

    def element(start, length, travel, rhoA, rhoI):
        layer = jax.vmap(
            lambda s, r, i: element_inertia(arm.shapes, Flow(start, length, s), ref, r, i)
        )
        return jax.tree_util.tree_map(lambda x: jnp.sum(x, 0), layer(travel, rhoA, rhoI))

    def strain(y, l, k):
        return element_strain(terms, y, l, k, term.couplings, arm.shapes)

    M, D, K, f = jax.vmap(element)(X[:-1], jnp.diff(X, axis=0), travel, arm.rhoA, arm.rhoI)
    K1, H3, H4 = jax.vmap(strain)(y, jnp.diff(X[:, 0]), arm.stiffness)
    # From the arm's unknowns to those of its elements: (elements, unknowns of an element, n).
    joints, unit = jnp.zeros(layout.dofs, q.dtype), jnp.eye(layout.nv - layout.dofs, dtype=q.dtype)
    spread = jax.vmap(lambda e: term.split(jnp.concatenate([joints, e]))[2], out_axes=2)(unit)

    def assemble(E):
        return jnp.einsum("eia,eij,ejb->ab", spread, E, spread)

    M, D, K, K_strain = (assemble(x) for x in (M, D, K, K1 + H3 / 2 + H4 / 3))
    return Matrices(M, D, K, K_strain, jnp.einsum("eia,ei->a", spread, f))
