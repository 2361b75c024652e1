"""Articulated-body elimination from tip to base and back, in O(n).

It serves forward dynamics and Newton matrices. A stage has up to ``width`` joint columns and, if
any joint is flexible, one motor. Mh is the inertia at a stage: its own plus that of the child,
through the flexible link between them. The unknowns x of the stage satisfy
    D x + U a_section = u,    D = [[A^T Mh A + k, -k], [-k, n^2 J + k]],
                              U = [A^T Mh X ; n J rotor_axis^T]
and the section of the joint receives X^T Mh X + J axis axis^T - U^T D^-1 U. k are implicit
stiffnesses (zero for forward dynamics). Locked unknowns have unit rows. The result is symmetrised;
otherwise the error grows exponentially along the chain.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from flexjax.mechanism.chain.equations._condense import Condensed, admittance, mm, small_inverse
from flexjax.mechanism.chain.geometry._kinematics import Kinematics
from flexjax.mechanism.chain.geometry._parameters import Parameters
from flexjax.numerics.linalg import mtv, mv


class Factors(eqx.Module):
    """Factors for the sweeps, stacked over stages. ``K``, ``T`` = 1 - IA N: of flexible links."""

    X: Float[Array, "B dim dim"]
    A: Float[Array, "B dim k"]
    Mh: Float[Array, "B dim dim"]
    U: Float[Array, "B n dim"]
    D_inverse: Float[Array, "B n n"]
    K: Float[Array, "B dim dim"] | None
    T: Float[Array, "B dim dim"] | None
    condensed: Condensed | None


def factorise(
    parameters: Parameters,
    kin: Kinematics,
    free: Bool[np.ndarray, "B n"],
    on_motor: Bool[np.ndarray, " B"],
    diagonal: Float[Array, "B k"],
    spring: Float[Array, " B"],
    motor: Float[Array, " B"],
    condensed: Condensed | None = None,
) -> Factors:
    """Eliminate from tip to base.

    ``free`` marks unknowns that are neither padded nor locked; its last column is the motor, if
    any joint is flexible. ``on_motor`` marks flexible joints, whose rotor rotates with the motor
    instead of the joint. ``diagonal``, ``spring`` and ``motor`` are implicit stiffnesses of the
    joint, of the spring to its motor, and of the motor.
    """
    has_motor = free.shape[1] > diagonal.shape[1]

    def inwards(IA, row):
        X, A, link, J_joint, J, n, axis, free, k, kj, km = row
        Mh, kept = _at_frame(IA, link)
        MhA = mm(Mh, A)
        D = mm(A.T, MhA) + jnp.diag(k) + n**2 * J_joint * (first[:, None] * first[None, :])
        U = mm(MhA.T, X) + n * J_joint * (first[:, None] * axis[None, :])
        if has_motor:
            couple = jnp.zeros(k.shape[0], k.dtype).at[0].set(-kj)
            D = D.at[0, 0].add(kj)
            last = jnp.concatenate([couple, (n**2 * J + kj + km)[None]])
            D = jnp.concatenate([jnp.concatenate([D, couple[:, None]], 1), last[None]], 0)
            U = jnp.concatenate([U, (n * J * axis)[None]], 0)
        both = free[:, None] & free[None, :]
        eye = jnp.eye(D.shape[0], dtype=D.dtype)
        D_inverse = jnp.where(both, small_inverse(jnp.where(both, D, eye)), 0.0)
        U = jnp.where(free[:, None], U, 0.0)
        rotor = (J + J_joint) * axis[:, None] * axis[None, :]
        passed = mm(X.T, mm(Mh, X)) + rotor - mm(U.T, mm(D_inverse, U))
        return 0.5 * (passed + passed.T), (Mh, U, D_inverse, kept)

    # A rotor rotates with the first column.
    first = jnp.asarray(np.eye(1, diagonal.shape[1])[0], diagonal.dtype)
    rotors = (
        jnp.where(on_motor, 0.0, parameters.rotor),
        jnp.where(on_motor, parameters.rotor, 0.0),
    )
    c = condensed
    link = (parameters.inertia,) if c is None else (c.P, c.Y, c.F, c.root)
    joints = (*rotors, parameters.gear, parameters.rotor_axis, free, diagonal, spring, motor)
    rows = (kin.X, kin.screw, link, *joints)
    empty = jnp.zeros_like(parameters.inertia[0])
    _, (Mh, U, D_inverse, kept) = lax.scan(inwards, empty, rows, reverse=True)
    K, T = kept or (None, None)
    return Factors(kin.X, kin.screw, Mh, U, D_inverse, K, T, condensed)


def _at_frame(
    IA: Float[Array, "dim dim"], link: tuple[Array, ...]
) -> tuple[Float[Array, "dim dim"], tuple[Array, ...]]:
    """The inertia at a stage's frame with ``IA`` at its tip, and factors for the sweep outwards."""
    if len(link) == 1:  # rigid
        return link[0] + IA, ()
    P, Y, F, root = link
    N = admittance(F, root, IA)
    T = jnp.eye(IA.shape[0], dtype=IA.dtype) - mm(IA, N)
    K = mm(T, IA)
    K = 0.5 * (K + K.T)
    return P + mm(Y.T, mm(K, Y)), (K, T)


class Loads(eqx.Module):
    """Right-hand sides, stacked over stages.

    ``r``: generalised forces on the unknowns. ``bias``: wrench of the body beyond its inertia.
    ``extra``: known acceleration of the body (velocity products, locked joints). ``rotors``:
    wrench on the section of the joint. ``start``: acceleration of the base. ``shape_bias``,
    ``tip_rate``: terms of the shape rows and of the tip beyond accelerations.
    """

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
        known = mv(f.K, tip_rate)
        link = (f.condensed.Y, f.T, known)

    def inwards(pA, row):
        X, A, Mh, U, D_inverse, r, p, c, w, link = row
        on_tip = pA
        if link:
            Y, T, known = link
            held = known + mv(T, pA)  # on the tip with the frame at rest
            on_tip = mtv(Y, held)
        total = mv(Mh, c) + p + on_tip
        u = r - jnp.pad(mtv(A, total), (0, r.shape[0] - k))
        x0 = mv(D_inverse, u)
        return mtv(X, total) + mtv(U, x0) + w, (x0, held if link else ())

    rows = (f.X, f.A, f.Mh, f.U, f.D_inverse, loads.r, bias, loads.extra, loads.rotors, link)
    _, (x0, held) = lax.scan(inwards, jnp.zeros_like(loads.start), rows, reverse=True)

    def outwards(a, row):
        X, A, U, D_inverse, x0, c, link = row
        x = x0 - mv(D_inverse, mv(U, a))
        a = mv(X, a) + c + mv(A, x[:k])
        if not link:
            return a, (x, a, ())
        Y, K, F, known, held = link
        force = -mv(K, mv(Y, a)) - held  # of the next link on the tip
        return mv(Y, a) + known + mv(F, force), (x, a, force)

    if f.condensed is not None:
        link = (f.condensed.Y, f.K, f.condensed.F, tip_rate, held)
    rows = (f.X, f.A, f.U, f.D_inverse, x0, loads.extra, link)
    _, (x, a, force) = lax.scan(outwards, loads.start, rows)
    if f.condensed is None or E3 is None:
        return x, a, jnp.zeros_like(loads.shape_bias)
    return x, a, f.condensed.recover(E3, a, force)
