"""The stacked system of the paper, dense and with the interaction wrenches as unknowns: M_sys q_sys + H_sys = F_sys,
eqs. (66), (89), (97)-(102).

Unknowns: [lambda_0, z_1', lambda_1, ..., z_n' | eta''], a semi-explicit index-1 differential-algebraic system. The
simulation never builds it (its recursion is
linear in the number of links); it is here to check the recursion, to show the condition number, and to find what makes
a robot ill-posed.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import Coordinates, PieceTime, ScalarLike, Velocities
from flexjax.mechanism.chain import ChainTerm
from flexjax.mechanism.chain._kinematics import behind, mv, pad, pad_shapes


class Stacked(eqx.Module):
    """``matrix @ unknowns = rhs``; slices of the unknowns are static. Symmetric once the columns of the wrenches change
    sign."""

    matrix: Float[Array, "N N"]
    rhs: Float[Array, " N"]
    wrench_slices: tuple[tuple[int, int], ...] = eqx.field(static=True)
    twist_slices: tuple[tuple[int, int], ...] = eqx.field(static=True)
    shape_slices: tuple[tuple[int, int], ...] = eqx.field(static=True)
    complements: tuple[Float[Array, "dim c"], ...]  # B: wrenches that a joint transmits

    def symmetric(self) -> Array:
        sign = np.ones(self.rhs.shape[0])
        for a, b in self.wrench_slices:
            sign[a:b] = -1.0
        return self.matrix * jnp.asarray(sign, self.rhs.dtype)[None, :]


def _slices(sizes: Sequence[int], start: int):
    ends = start + np.cumsum([0, *sizes])
    return tuple((int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True))


def _positions(wrenches: Sequence[int], dim: int):
    """lambda_0, z_1', lambda_1, z_2', ...: interleaved as in the paper."""
    w, z, at = [], [], 0
    for n in wrenches:
        w.append((at, at + n))
        z.append((at + n, at + n + dim))
        at += n + dim
    return tuple(w), tuple(z), at


def stacked_system(
    term: ChainTerm,
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    args: PieceTime = None,
    memory: PyTree = (),
) -> Stacked:
    """The system at one instant. Joints with motors of their own (flexible joints, rotors) are left to the
    recursion."""
    lay, par = term.layout, term.par
    if lay.motors or term.links is None:
        raise ValueError(
            "stacked_system: a chain with motors or without flexible links; expected flexible links on rigid joints."
        )
    m = term.motion(t, q, v, args)
    mass, bias, force = (
        term.mass(m.eta),
        term._bias(t, args, m),
        term.coordinate_force(t, q, v, args, memory),
    )
    known = jnp.where(term.locked, term.prescribed(t, args)[3], 0.0)
    extra = term._joint_rate(m) + mv(par.screw, pad(lay, known))
    tip_rate = term._tip_rate(m)
    tips, Xt = m.kin.sections
    S, X = tips.S, m.kin.X
    shape_force = pad_shapes(lay, force)
    dim, count = par.screw.shape[1], len(lay.stages)
    free = [[c for c in range(s.dofs) if not term.locked[s.v_start + c]] for s in lay.stages]
    w_at, z_at, end = _positions([dim - len(f) for f in free], dim)
    e_at = _slices(lay.shapes, end)
    total = e_at[-1][1]
    M, rhs = jnp.zeros((total, total), q.dtype), jnp.zeros(total, q.dtype)
    # What each stage receives: W = B lambda + (A^T)^+ tau, with tau on the free columns.
    Bs, given = [], []
    for i, s in enumerate(lay.stages):
        A = par.screw[i][:, jnp.array(free[i], int)]
        Q = jnp.linalg.qr(A, mode="complete")[0] if free[i] else jnp.eye(dim, dtype=q.dtype)
        Bs.append(Q[:, len(free[i]) :])
        tau = force[jnp.array([s.v_start + c for c in free[i]], int)]
        given.append(A @ jnp.linalg.solve(A.T @ A, tau) if free[i] else jnp.zeros(dim, q.dtype))
    for i in range(count):
        (w0, w1), (z0, z1), (e0, e1) = w_at[i], z_at[i], e_at[i]
        n = e1 - e0
        ze, ee = mass.ze[i, :, :n], mass.ee[i, :n, :n]
        # constraint of joint i, at acceleration level, in the axes of the child
        M = M.at[w0:w1, z0:z1].set(Bs[i].T)
        rhs = rhs.at[w0:w1].set(Bs[i].T @ extra[i])
        if i:
            (y0, y1), (f0, f1) = z_at[i - 1], e_at[i - 1]
            M = M.at[w0:w1, y0:y1].set(-Bs[i].T @ X[i] @ Xt[i - 1])
            M = M.at[w0:w1, f0:f1].set(-Bs[i].T @ X[i] @ S[i - 1, :, : f1 - f0])
            rhs = rhs.at[w0:w1].add(Bs[i].T @ X[i] @ tip_rate[i - 1])
        else:
            rhs = rhs.at[w0:w1].add(Bs[i].T @ X[i] @ m.base_acceleration)
        # motion of the frame, then the displacement equation projected on the basis
        M = (
            M.at[z0:z1, z0:z1]
            .set(mass.zz[i])
            .at[z0:z1, e0:e1]
            .set(ze)
            .at[e0:e1, z0:z1]
            .set(ze.T)
            .at[e0:e1, e0:e1]
            .set(ee)
        )
        M = M.at[z0:z1, w0:w1].set(-Bs[i])
        rhs = (
            rhs.at[z0:z1]
            .add(given[i] - bias.wrench[i])
            .at[e0:e1]
            .add((shape_force[i] - bias.shape[i])[:n])
        )
        if i + 1 < count:
            (n0, n1), on_tip = w_at[i + 1], X[i + 1].T
            M = (
                M.at[z0:z1, n0:n1]
                .set(Xt[i].T @ on_tip @ Bs[i + 1])
                .at[e0:e1, n0:n1]
                .set(S[i, :, :n].T @ on_tip @ Bs[i + 1])
            )
            rhs = (
                rhs.at[z0:z1]
                .add(-Xt[i].T @ on_tip @ given[i + 1])
                .at[e0:e1]
                .add(-S[i, :, :n].T @ on_tip @ given[i + 1])
            )
    return Stacked(M, rhs, w_at, z_at, e_at, tuple(Bs))


def stacked_acceleration(
    term: ChainTerm,
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    args: PieceTime = None,
    memory: PyTree = (),
) -> tuple[Array, Array]:
    """(v' (nv,), interaction wrenches parent on child (B, dim)) by one dense solve of the stacked system."""
    lay, par = term.layout, term.par
    system = stacked_system(term, t, q, v, args, memory)
    x = jnp.linalg.solve(system.matrix, system.rhs)
    m = term.motion(t, q, v, args)
    z = jnp.stack([x[a:b] for a, b in system.twist_slices])
    wide = lay.shape_count
    eta = jnp.stack([jnp.pad(x[a:b], (0, wide - (b - a))) for a, b in system.shape_slices])
    tips, Xt = m.kin.sections
    tip = mv(Xt, z) + mv(tips.S, eta) + term._tip_rate(m)
    relative = z - mv(m.kin.X, behind(tip, m.base_acceleration)) - term._joint_rate(m)
    rates = jax.vmap(lambda A, r: jnp.linalg.lstsq(A, r)[0])(par.screw, relative)
    accelerations = term._join(rates, eta)
    mass, bias = term.mass(m.eta), term._bias(t, args, m)
    own = mv(mass.zz, z) + mv(mass.ze, eta) + bias.wrench
    wrenches = [jnp.zeros_like(own[0])] * (len(lay.stages) + 1)
    for i in reversed(range(len(lay.stages))):
        child = (
            Xt[i].T @ m.kin.X[i + 1].T @ wrenches[i + 1]
            if i + 1 < len(lay.stages)
            else wrenches[i + 1]
        )
        wrenches[i] = own[i] + child
    return accelerations, jnp.stack(wrenches[:-1])
