"""Articulated-body elimination from tip to base and back: forward dynamics and Newton matrices of a chain, at a cost
linear in its length.

A stage has up to ``width`` joint columns and, where any joint is flexible, one motor. With Mh the inertia that a stage
carries (its own plus what the
child handed over, through the flexible link between them where it is one), the unknowns x of the stage obey
    D x + U a_section = u,      D = [[A^T Mh A + k, -k], [-k, n^2 J + k]],      U = [A^T Mh X ; n J rotor_axis^T]
and the section that the joint hangs on receives X^T Mh X + J axis axis^T - U^T D^-1 U. k are implicit stiffnesses (zero
for forward dynamics). Locked
unknowns have unit rows. What is handed over is symmetrised: without that the error grows exponentially along the chain.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from flexjax.mechanism.chain._condense import Condensed, admittance, mm, small_inverse
from flexjax.mechanism.chain._kinematics import Kinematics
from flexjax.mechanism.chain._parameters import Parameters
from flexjax.numerics.linalg import mtv, mv


class Factors(eqx.Module):
    """What the sweeps need, stacked over stages. ``K`` and ``T`` = 1 - IA N belong to flexible links."""

    X: Float[Array, "B dim dim"]
    A: Float[Array, "B dim k"]
    Mh: Float[Array, "B dim dim"]
    U: Float[Array, "B n dim"]
    D_inverse: Float[Array, "B n n"]
    K: Float[Array, "B dim dim"] | None
    T: Float[Array, "B dim dim"] | None
    condensed: Condensed | None


def factorise(
    par: Parameters,
    kin: Kinematics,
    free: Bool[np.ndarray, "B n"],
    on_motor: Bool[np.ndarray, " B"],
    diagonal: Float[Array, "B k"],
    spring: Float[Array, " B"],
    motor: Float[Array, " B"],
    condensed: Condensed | None = None,
) -> Factors:
    """``on_motor`` marks flexible joints, whose rotor turns with the motor; elsewhere it turns with the joint. ``free``
    marks unknowns that are neither padded nor locked (the last column is the motor, if any flexible joint exists);
    ``diagonal``,
    ``spring`` and ``motor`` are implicit stiffnesses of the joint, of the spring between motor and joint, and of the
    motor."""
    has_motor = free.shape[1] > diagonal.shape[1]

    def body(IA, link):
        """The inertia at a stage's frame with IA hanging on its tip."""
        if condensed is None:
            return link[0] + IA, ()
        P, Y, F, root = link
        N = admittance(F, root, IA)
        T = jnp.eye(IA.shape[0], dtype=IA.dtype) - mm(IA, N)
        K = mm(T, IA)
        K = 0.5 * (K + K.T)
        return P + mm(Y.T, mm(K, Y)), (K, T)

    def inwards(IA, row):
        X, A, link, J_joint, J, n, axis, free, k, kj, km = row
        Mh, kept = body(IA, link)
        MhA = mm(Mh, A)
        D = mm(A.T, MhA) + jnp.diag(k) + n**2 * J_joint * (first[:, None] * first[None, :])
        U = mm(MhA.T, X) + n * J_joint * (first[:, None] * axis[None, :])
        if has_motor:
            couple = jnp.zeros(k.shape[0], k.dtype).at[0].set(-kj)
            D = D.at[0, 0].add(kj)
            D = jnp.concatenate(
                [
                    jnp.concatenate([D, couple[:, None]], 1),
                    jnp.concatenate([couple, (n**2 * J + kj + km)[None]])[None],
                ],
                0,
            )
            U = jnp.concatenate([U, (n * J * axis)[None]], 0)
        both = free[:, None] & free[None, :]
        D_inverse = jnp.where(
            both, small_inverse(jnp.where(both, D, jnp.eye(D.shape[0], dtype=D.dtype))), 0.0
        )
        U = jnp.where(free[:, None], U, 0.0)
        handed = (
            mm(X.T, mm(Mh, X))
            + (J + J_joint) * axis[:, None] * axis[None, :]
            - mm(U.T, mm(D_inverse, U))
        )
        return 0.5 * (handed + handed.T), (Mh, U, D_inverse, kept)

    first = jnp.asarray(
        np.eye(1, diagonal.shape[1])[0], diagonal.dtype
    )  # a rotor turns with the first column
    rotors = (jnp.where(on_motor, 0.0, par.rotor), jnp.where(on_motor, par.rotor, 0.0))
    link = (
        (par.inertia,)
        if condensed is None
        else (condensed.P, condensed.Y, condensed.F, condensed.root)
    )
    rows = (
        kin.X,
        kin.screw,
        link,
        *rotors,
        par.gear,
        par.rotor_axis,
        free,
        diagonal,
        spring,
        motor,
    )
    _, (Mh, U, D_inverse, kept) = lax.scan(
        inwards, jnp.zeros_like(par.inertia[0]), rows, reverse=True
    )
    K, T = kept or (None, None)
    return Factors(kin.X, kin.screw, Mh, U, D_inverse, K, T, condensed)


class Loads(eqx.Module):
    """Right-hand sides, stacked over stages. ``r``: generalised forces on the stages' unknowns; ``bias``: wrench that
    the body needs beyond its inertia;
    ``extra``: known part of the body's acceleration (velocity products, locked joints); ``rotors``: wrench on the
    section beside the joint; ``start``:
    acceleration of the base; ``shape_bias`` and ``tip_rate``: what the shape rows need, and the tip has, beyond
    accelerations of frame and shape."""

    r: Float[Array, "B n"]
    bias: Float[Array, "B dim"]
    extra: Float[Array, "B dim"]
    rotors: Float[Array, "B dim"]
    start: Float[Array, " dim"]
    shape_bias: Float[Array, "B m"]
    tip_rate: Float[Array, "B dim"]


def solve(f: Factors, loads: Loads) -> tuple[Array, Array, Array]:
    """Unknowns x (B, n), body accelerations (B, dim), shape accelerations (B, m)."""
    k = f.A.shape[2]
    link, bias, E3 = (), loads.bias, None
    if f.condensed is not None:
        assert f.K is not None  # it comes with the condensed links
        E3, bias, tip_rate = f.condensed.reduce(loads.bias, loads.shape_bias, loads.tip_rate)
        known = jnp.sum(f.K * tip_rate[:, None, :], axis=2)
        link = (f.condensed.Y, f.T, known)

    def inwards(pA, row):
        X, A, Mh, U, D_inverse, r, p, c, w, link = row
        on_tip = pA
        if link:
            Y, T, known = link
            pull = known + mv(T, pA)  # on the tip when the frame is at rest
            on_tip = mtv(Y, pull)
        total = mv(Mh, c) + p + on_tip
        u = r - jnp.pad(mtv(A, total), (0, r.shape[0] - k))
        x0 = mv(D_inverse, u)
        return mtv(X, total) + mtv(U, x0) + w, (x0, pull if link else ())

    rows = (f.X, f.A, f.Mh, f.U, f.D_inverse, loads.r, bias, loads.extra, loads.rotors, link)
    _, (x0, pull) = lax.scan(inwards, jnp.zeros_like(loads.start), rows, reverse=True)

    def outwards(a, row):
        X, A, U, D_inverse, x0, c, link = row
        x = x0 - mv(D_inverse, mv(U, a))
        a = mv(X, a) + c + mv(A, x[:k])
        if not link:
            return a, (x, a, ())
        Y, K, F, known, pull = link
        force = -mv(K, mv(Y, a)) - pull  # of the next link on the tip
        return mv(Y, a) + known + mv(F, force), (x, a, force)

    if f.condensed is not None:
        link = (f.condensed.Y, f.K, f.condensed.F, tip_rate, pull)
    _, (x, a, force) = lax.scan(
        outwards, loads.start, (f.X, f.A, f.U, f.D_inverse, x0, loads.extra, link)
    )
    shape = (
        jnp.zeros_like(loads.shape_bias)
        if f.condensed is None or E3 is None
        else f.condensed.recover(E3, a, force)
    )
    return x, a, shape
