"""Articulated-body elimination from tip to base and back: forward dynamics and Newton matrices of a chain, at a cost linear in its length.

A stage has up to ``width`` joint columns and, where any joint is flexible, one motor. With Mh the inertia that a stage carries (its own plus what the
child handed over), the unknowns x of the stage obey
    D x + U a_parent = u,      D = [[A^T Mh A + k, -k], [-k, n^2 J + k]],      U = [A^T Mh X ; n J rotor_axis^T]
and the parent receives Mh' = X^T Mh X + J axis axis^T - U^T D^-1 U. k are implicit stiffnesses (zero for forward dynamics). Locked unknowns have unit
rows. Mh is symmetrised: without that the error grows exponentially along the chain.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from flexjax.chain._kinematics import Kinematics
from flexjax.chain._parameters import Parameters


class Factors(eqx.Module):
    """What the sweeps need, stacked over stages."""

    X: Float[Array, "B dim dim"]
    A: Float[Array, "B dim k"]
    Mh: Float[Array, "B dim dim"]
    U: Float[Array, "B n dim"]
    D_inverse: Float[Array, "B n n"]


def small_inverse(m: Float[Array, "n n"]) -> Array:
    """Inverse of a small positive definite matrix by Gauss-Jordan, unrolled: no LAPACK call inside a scan."""
    n = m.shape[0]
    if n == 1:
        return 1.0 / m
    work = jnp.concatenate([m, jnp.eye(n, dtype=m.dtype)], axis=1)
    for i in range(n):
        row = work[i] / work[i, i]
        work = work - work[:, i : i + 1] * row[None, :]
        work = work.at[i].set(row)
    return work[:, n:]


def _mm(a, b):
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


def factorise(
    par: Parameters,
    kin: Kinematics,
    free: Bool[Array, "B n"],
    on_motor: Bool[Array, " B"],
    diagonal: Float[Array, "B k"],
    spring: Float[Array, " B"],
    motor: Float[Array, " B"],
) -> Factors:
    """``on_motor`` marks flexible joints, whose rotor turns with the motor; elsewhere it turns with the joint. ``free`` marks unknowns that are neither padded nor locked (the last column is the motor, if any flexible joint exists); ``diagonal``,
    ``spring`` and ``motor`` are implicit stiffnesses of the joint, of the spring between motor and joint, and of the motor."""
    has_motor = free.shape[1] > diagonal.shape[1]

    def inwards(IA, row):
        X, A, inertia, J_joint, J, n, axis, free, k, kj, km = row
        Mh = inertia + IA
        MhA = _mm(Mh, A)
        D = (_mm(A.T, MhA) + jnp.diag(k)).at[0, 0].add(n**2 * J_joint)
        U = _mm(MhA.T, X).at[0].add(n * J_joint * axis)
        if has_motor:
            couple = jnp.zeros(k.shape[0], k.dtype).at[0].set(-kj)
            D = D.at[0, 0].add(kj)
            D = jnp.concatenate([jnp.concatenate([D, couple[:, None]], 1), jnp.concatenate([couple, (n**2 * J + kj + km)[None]])[None]], 0)
            U = jnp.concatenate([U, (n * J * axis)[None]], 0)
        both = free[:, None] & free[None, :]
        D_inverse = jnp.where(both, small_inverse(jnp.where(both, D, jnp.eye(D.shape[0], dtype=D.dtype))), 0.0)
        U = jnp.where(free[:, None], U, 0.0)
        handed = _mm(X.T, _mm(Mh, X)) + (J + J_joint) * axis[:, None] * axis[None, :] - _mm(U.T, _mm(D_inverse, U))
        return 0.5 * (handed + handed.T), (Mh, U, D_inverse)

    rotors = (jnp.where(on_motor, 0.0, par.rotor), jnp.where(on_motor, par.rotor, 0.0))
    rows = (kin.X, par.screw, par.inertia, *rotors, par.gear, par.rotor_axis, free, diagonal, spring, motor)
    _, (Mh, U, D_inverse) = lax.scan(inwards, jnp.zeros_like(par.inertia[0]), rows, reverse=True)
    return Factors(kin.X, par.screw, Mh, U, D_inverse)


def solve(
    f: Factors, r: Float[Array, "B n"], bias: Float[Array, "B dim"], extra: Float[Array, "B dim"], behind: Float[Array, "B dim"], start: Float[Array, " dim"]
) -> tuple[Array, Array]:
    """Unknowns x (B, n) and body accelerations (B, dim).

    ``r``: generalised forces; ``bias``: wrench that the body needs beyond its inertia; ``extra``: known part of the body's acceleration
    (velocity products, locked joints); ``behind``: wrench on the parent beside the joint (rotors); ``start``: acceleration of the base."""
    k = f.A.shape[2]

    def inwards(pA, row):
        X, A, Mh, U, D_inverse, r, p, c, w = row
        total = jnp.sum(Mh * c[None, :], axis=1) + p + pA
        u = r.at[:k].add(-jnp.sum(A * total[:, None], axis=0))
        x0 = jnp.sum(D_inverse * u[None, :], axis=1)
        handed = jnp.sum(X * total[:, None], axis=0) + jnp.sum(U * x0[:, None], axis=0) + w
        return handed, x0

    _, x0 = lax.scan(inwards, jnp.zeros_like(start), (f.X, f.A, f.Mh, f.U, f.D_inverse, r, bias, extra, behind), reverse=True)

    def outwards(a, row):
        X, A, U, D_inverse, x0, c = row
        x = x0 - jnp.sum(D_inverse * jnp.sum(U * a[None, :], axis=1)[None, :], axis=1)
        a = jnp.sum(X * a[None, :], axis=1) + c + jnp.sum(A * x[None, :k], axis=1)
        return a, (x, a)

    _, (x, a) = lax.scan(outwards, start, (f.X, f.A, f.U, f.D_inverse, x0, extra))
    return x, a
