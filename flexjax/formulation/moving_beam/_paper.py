"""The matrices of eq. (22): M u'' + D u' + (K + K_s(u)) u = f for a given motion of the joint frame and given lengths, as the paper writes them.

The time loop does not build them (it needs forces, not matrices); they are here to read, to export and to check. With the shape operators F (translation)
and R (rotation), B = DF/Dt and C = D2F/Dt2 along the material:
    M = int F^T F,   D = 2 int F^T (B + W F),   K = int F^T (C + 2 W B + (W' + W^2) F),   f = - int F^T (a_O + (W' + W^2) x e1 + (2 W v + v') e1)
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.formulation.moving_beam import _carrier
from flexjax.formulation.moving_beam._chain import MovingBeamTerm
from flexjax.formulation.moving_beam._link import _skew, ahead, origin
from flexjax.formulation.moving_beam._shapes import (
    SPATIAL,
    Shapes,
    derivative_matrix,
    shape_matrices,
    shift_matrix,
)
from flexjax.formulation.moving_beam._strain import Term, of_degree, scaled, strain_energy, tables
from flexjax.numerics.beam._polynomial import hilbert


class Matrices(eqx.Module):
    """Of eq. (22), over the elastic unknowns (or those of one element). ``K_strain`` is state-dependent, symmetric, and K_strain u = dV/du."""

    M: Float[Array, "n n"]
    D: Float[Array, "n n"]
    K: Float[Array, "n n"]
    K_strain: Float[Array, "n n"]
    f: Float[Array, " n"]


class Reference(eqx.Module):
    """Motion of the joint frame in its own axes: acceleration of the origin (less gravity), angular velocity and acceleration."""

    acceleration: Float[Array, " 3"]
    omega: Float[Array, " 3"]
    omega_rate: Float[Array, " 3"]


class Flow(eqx.Module):
    """Value, rate and second rate (3,) of an element's start and length and of a layer's travel along the axis (its value is not used)."""

    start: Float[Array, " 3"]
    length: Float[Array, " 3"]
    travel: Float[Array, " 3"]


def _operators(shapes: Shapes, l: Scalar):
    """Translation (moving, 3, unknowns) and rotation (turning, 3, unknowns) of the section as polynomials in xi."""
    U, twist = shape_matrices(shapes)
    S = scaled(shapes, jnp.ones((1, shapes.size), l.dtype), l[None])[0]
    F = jnp.asarray(U.transpose(1, 2, 0), l.dtype) * S[None, None, :]
    slope = jnp.tensordot(jnp.asarray(derivative_matrix(shapes.moving), l.dtype), F, 1) / l
    # Of the slopes only those of bending turn, and they fit.
    slope = jnp.pad(slope, ((0, max(0, shapes.turning - shapes.moving)), (0, 0), (0, 0)))[
        : shapes.turning
    ]
    return F, jnp.stack(
        [jnp.asarray(twist.T, l.dtype) * S[None, :], -slope[:, 2], slope[:, 1]], axis=1
    )


def _material_rates(operator: Callable[[Array], Array], flow: Flow):
    """F, B = DF/Dt and C = D2F/Dt2 of an operator that depends on l and, as a polynomial, on xi."""

    def passing(P, start_rate, l, length_rate, travel_rate):
        k = P.shape[0]
        slope = jnp.tensordot(jnp.asarray(derivative_matrix(k), P.dtype), P, 1) / l
        return (travel_rate - start_rate) * slope - length_rate * jnp.tensordot(
            jnp.asarray(shift_matrix(k), P.dtype), slope, 1
        )

    def first(l, length_rate, start_rate, travel_rate):
        F, F_rate = jax.jvp(operator, (l,), (length_rate,))
        return F_rate + passing(F, start_rate, l, length_rate, travel_rate)

    l, ld, ldd = flow.length
    _, Xd, Xdd = flow.start
    _, v, vd = flow.travel
    B, B_rate = jax.jvp(first, (l, ld, Xd, v), (ld, ldd, Xdd, vd))
    return operator(l), B, B_rate + passing(B, Xd, l, ld, v)


def element_inertia(
    shapes: Shapes, flow: Flow, ref: Reference, rhoA: Scalar, rhoI: Float[Array, "3"]
) -> tuple[Array, Array, Array, Array]:
    """M, D, K, f of one layer of one element."""
    l, dtype = flow.length[0], rhoA.dtype
    W, Wd = _skew(ref.omega), _skew(ref.omega_rate)
    A = Wd + W @ W
    F, B, C = _material_rates(lambda l: _operators(shapes, l)[0], flow)
    R, RB, RC = _material_rates(lambda l: _operators(shapes, l)[1], flow)
    n, k = shapes.moving, shapes.turning
    H4, H3 = jnp.asarray(hilbert(n, n), dtype), jnp.asarray(hilbert(k, k), dtype)

    def turned(m, P):
        return jnp.einsum("ab,pbu->pau", m, P)

    def moved(P):
        return rhoA * l * jnp.einsum("pci,pq,qc...->i...", F, H4, P)

    def spun(P):
        return l * jnp.einsum("pci,pq,c,qc...->i...", R, H3, rhoI, P)

    e1 = jnp.zeros(3, dtype).at[0].set(1.0)
    constant = jnp.zeros((n, 1), dtype).at[0].set(1.0)
    place = flow.start[0] * jnp.asarray(origin(n), dtype) + l * jnp.asarray(ahead(n), dtype)
    push = ref.acceleration + 2 * flow.travel[1] * (W @ e1) + flow.travel[2] * e1
    rate = jnp.zeros((k, 1), dtype).at[0].set(1.0) * ref.omega_rate[None, :]
    return (
        moved(F) + spun(R),
        moved(2 * (B + turned(W, F))) + spun(2 * RB),
        moved(C + 2 * turned(W, B) + turned(A, F)) + spun(RC),
        -moved(place @ A.T + constant * push[None, :]) - spun(rate),
    )


def element_strain(
    terms: tuple[Term, ...],
    y: Float[Array, " u"],
    l: Scalar,
    stiffness: Float[Array, "4"],
    couplings: dict[str, Array] | None = None,
    shapes: Shapes = SPATIAL,
) -> tuple[Array, Array, Array]:
    """K1, H3(u), H4(u) of one element: the second derivatives of the energy's parts of degree two, three, four.

    K(u) = K1 + H3/2 + H4/3 is symmetric with K(u) u = dV; the tangent is K1 + H3 + H4."""
    parts = []
    for degree in (2, 3, 4):
        chosen = of_degree(terms, degree)
        if not chosen:
            parts.append(jnp.zeros((y.shape[0], y.shape[0]), y.dtype))
            continue
        tab = tables(chosen, shapes)
        parts.append(
            jax.hessian(
                lambda y, tab=tab: strain_energy(tab, y[None], l[None], stiffness[None], couplings)
            )(y)
        )
    return tuple(parts)


def reference_motion(
    term: MovingBeamTerm,
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    a: Velocities,
    args: PieceTime,
) -> Reference:
    """Motion of the joint frame when the joints move as (q, v, a) say."""
    D = term.layout.dofs
    base, twist, acc = term.base(t, args)

    def frame_twist(x, xd, twist):
        return _carrier.twists(term.car, term.layout, x, xd, twist)[0][-1]

    z, zd = jax.jvp(frame_twist, (q[:D], v[:D], twist), (v[:D], a[:D], acc))
    R = _carrier.frames(term.car, term.layout, q[:D], base)[-1].rotation
    return Reference(zd[:3] + jnp.cross(z[3:], z[:3]) - R.T @ term.robot.gravity, z[3:], zd[3:])


def global_matrices(
    term: MovingBeamTerm,
    terms: tuple[Term, ...],
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    a: Velocities,
    args: PieceTime = None,
) -> Matrices:
    """Eq. (22) for the whole arm at one instant, payloads left out. ``a`` is needed only for the joints."""
    lay, arm = term.layout, term.arm
    _, d, y = term.split(q)
    _, dd, _ = term.split(v)
    _, ddd, _ = term.split(a)
    ref = reference_motion(term, t, q, v, a, args)
    X = jnp.stack([arm.start + arm.slope @ d, arm.slope @ dd, arm.slope @ ddd], axis=1)
    travel = jnp.stack(
        [jnp.einsum("nkm,m->nk", arm.speed, x) for x in (jnp.zeros_like(d), dd, ddd)], axis=2
    )

    def element(start, length, travel, rhoA, rhoI):
        layer = jax.vmap(
            lambda s, r, i: element_inertia(arm.shapes, Flow(start, length, s), ref, r, i)
        )
        return jax.tree_util.tree_map(lambda x: jnp.sum(x, 0), layer(travel, rhoA, rhoI))

    M, D, K, f = jax.vmap(element)(X[:-1], jnp.diff(X, axis=0), travel, arm.rhoA, arm.rhoI)
    K1, H3, H4 = jax.vmap(
        lambda y, l, k: element_strain(terms, y, l, k, term.couplings, arm.shapes)
    )(y, jnp.diff(X[:, 0]), arm.stiffness)
    n = lay.elements * lay.width
    # The map from the arm's unknowns to those of its elements, (elements, unknowns of an element, n).
    spread = jax.vmap(
        lambda e: term.split(jnp.concatenate([jnp.zeros(lay.dofs, q.dtype), e]))[2], out_axes=2
    )(jnp.eye(n, dtype=q.dtype))

    def assemble(E):
        return jnp.einsum("eia,eij,ejb->ab", spread, E, spread)

    return Matrices(
        assemble(M),
        assemble(D),
        assemble(K),
        assemble(K1 + H3 / 2 + H4 / 3),
        jnp.einsum("eia,ei->a", spread, f),
    )
