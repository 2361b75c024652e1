"""The stacked system of the paper, dense, with the interaction wrenches as unknowns.

M_sys q_sys + H_sys = F_sys, eqs. (66), (89), (97)-(102), with the unknowns
[lambda_0, z_1', lambda_1, ..., z_n' | eta'']: a semi-explicit index-1 differential-algebraic
system. The simulation never builds it, since its recursion is linear in the number of links. The
system checks the recursion, gives the condition number, and finds why a robot is ill-posed.

M_sys of a serial chain is invertible if and only if every link's shape functions are independent
and have mass (M_phi > 0), and every joint moves some inertia (A^T I A > 0 for the articulated
inertia I). The recursion gives both; the first to fail, from the tip inwards, is the cause.
"""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Velocities
from flexjax.mechanism.chain import ChainTerm, kinematics
from flexjax.mechanism.chain.geometry._kinematics import behind, mv, to_joints, to_shapes
from flexjax.numerics.term import Instant


class Stacked(eqx.Module):
    """``matrix @ unknowns = rhs``; symmetric once the columns of the wrenches change sign."""

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
    """Interleaved as in the paper: lambda_0, z_1', lambda_1, z_2', ..."""
    w, z, at = [], [], 0
    for n in wrenches:
        w.append((at, at + n))
        z.append((at + n, at + n + dim))
        at += n + dim
    return tuple(w), tuple(z), at


def stacked_system(term: ChainTerm, now: Instant, q: Coordinates, v: Velocities) -> Stacked:
    """The system at one instant; not for joints with motors (flexible joints, rotors)."""
    layout, parameters = term.layout, term.parameters
    if layout.coordinates.motors or term.links is None:
        raise ValueError(
            "stacked_system: a chain with motors or without flexible links; expected flexible "
            "links on rigid joints."
        )
    m = term.motion(now, q, v)
    mass, bias = term.mass(m.eta), term._bias(now, m)
    force = term.coordinate_force(now, q, v)
    known = jnp.where(term.locked, term.prescribed(now.t, now.piece_time)[3], 0.0)
    extra = term._joint_rate(m) + mv(parameters.screw, to_joints(layout, known))
    tip_rate = term._tip_rate(m)
    tips, Xt = m.kin.sections
    S, X = tips.S, m.kin.X
    shape_force = to_shapes(layout, force)
    dim, count = parameters.screw.shape[1], len(layout.stages)
    free = [[c for c in range(s.dofs) if not term.locked[s.v_start + c]] for s in layout.stages]
    w_at, z_at, end = _positions([dim - len(f) for f in free], dim)
    e_at = _slices(layout.shapes, end)
    total = e_at[-1][1]
    M, rhs = jnp.zeros((total, total), q.dtype), jnp.zeros(total, q.dtype)
    # The wrench on each stage: W = B lambda + (A^T)^+ tau, with tau on the free columns.
    Bs, given = [], []
    for i, s in enumerate(layout.stages):
        A = parameters.screw[i][:, jnp.array(free[i], int)]
        Q = jnp.linalg.qr(A, mode="complete")[0] if free[i] else jnp.eye(dim, dtype=q.dtype)
        Bs.append(Q[:, len(free[i]) :])
        tau = force[jnp.array([s.v_start + c for c in free[i]], int)]
        given.append(A @ jnp.linalg.solve(A.T @ A, tau) if free[i] else jnp.zeros(dim, q.dtype))
    for i in range(count):
        (w0, w1), (z0, z1), (e0, e1) = w_at[i], z_at[i], e_at[i]
        n = e1 - e0
        ze, ee = mass.ze[i, :, :n], mass.ee[i, :n, :n]
        # Constraint of joint i, at acceleration level, in the axes of the child.
        M = M.at[w0:w1, z0:z1].set(Bs[i].T)
        rhs = rhs.at[w0:w1].set(Bs[i].T @ extra[i])
        if i:
            (y0, y1), (f0, f1) = z_at[i - 1], e_at[i - 1]
            M = M.at[w0:w1, y0:y1].set(-Bs[i].T @ X[i] @ Xt[i - 1])
            M = M.at[w0:w1, f0:f1].set(-Bs[i].T @ X[i] @ S[i - 1, :, : f1 - f0])
            rhs = rhs.at[w0:w1].add(Bs[i].T @ X[i] @ tip_rate[i - 1])
        else:
            rhs = rhs.at[w0:w1].add(Bs[i].T @ X[i] @ m.base_acceleration)
        # Motion of the frame, then the displacement equation projected on the basis.
        M = M.at[z0:z1, z0:z1].set(mass.zz[i]).at[z0:z1, e0:e1].set(ze)
        M = M.at[e0:e1, z0:z1].set(ze.T).at[e0:e1, e0:e1].set(ee)
        M = M.at[z0:z1, w0:w1].set(-Bs[i])
        rhs = rhs.at[z0:z1].add(given[i] - bias.wrench[i])
        rhs = rhs.at[e0:e1].add((shape_force[i] - bias.shape[i])[:n])
        if i + 1 < count:
            n0, n1 = w_at[i + 1]
            frame, shape = Xt[i].T @ X[i + 1].T, S[i, :, :n].T @ X[i + 1].T
            M = M.at[z0:z1, n0:n1].set(frame @ Bs[i + 1]).at[e0:e1, n0:n1].set(shape @ Bs[i + 1])
            rhs = rhs.at[z0:z1].add(-frame @ given[i + 1]).at[e0:e1].add(-shape @ given[i + 1])
    return Stacked(M, rhs, w_at, z_at, e_at, tuple(Bs))


def stacked_acceleration(
    term: ChainTerm, now: Instant, q: Coordinates, v: Velocities
) -> tuple[Array, Array]:
    """v' (nv,) and interaction wrenches parent on child (B, dim), by one dense solve."""
    layout, parameters = term.layout, term.parameters
    system = stacked_system(term, now, q, v)
    x = jnp.linalg.solve(system.matrix, system.rhs)
    m = term.motion(now, q, v)
    z = jnp.stack([x[a:b] for a, b in system.twist_slices])
    wide = layout.shape_count
    eta = jnp.stack([jnp.pad(x[a:b], (0, wide - (b - a))) for a, b in system.shape_slices])
    tips, Xt = m.kin.sections
    tip = mv(Xt, z) + mv(tips.S, eta) + term._tip_rate(m)
    relative = z - mv(m.kin.X, behind(tip, m.base_acceleration)) - term._joint_rate(m)
    rates = jax.vmap(lambda A, r: jnp.linalg.lstsq(A, r)[0])(parameters.screw, relative)
    accelerations = term._join(rates, eta)
    mass, bias = term.mass(m.eta), term._bias(now, m)
    own = mv(mass.zz, z) + mv(mass.ze, eta) + bias.wrench
    wrench, wrenches = jnp.zeros_like(own[0]), []
    for i in reversed(range(len(layout.stages))):
        wrench = own[i] + (Xt[i].T @ m.kin.X[i + 1].T @ wrench if wrenches else wrench)
        wrenches.append(wrench)
    return accelerations, jnp.stack(wrenches[::-1])


@dataclasses.dataclass(frozen=True)
class WellPosed:
    """Whether the stacked system is invertible.

    ``joints``: least articulated inertia of each joint relative to the inertia of the whole robot
    about it. ``links``: inverse condition number of each flexible link's modal mass.
    ``condition``: of M_sys after symmetric scaling; NaN for robots with motors on flexible joints.
    """

    ok: bool
    cause: str
    condition: float
    joints: dict[str, float]
    links: dict[str, float]

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = [f"  joint {k:<12} {x:.3g}" for k, x in self.joints.items()]
        rows += [f"  link  {k:<12} {x:.3g}" for k, x in self.links.items()]
        head = "well-posed" if self.ok else f"ill-posed: {self.cause}"
        return "\n".join([f"{head}; condition number of M_sys {self.condition:.3g}", *rows])


def _scaled_condition(matrix: Array | np.ndarray) -> float:
    """Condition number after symmetric scaling by row norms: units (m, rad, kg) must not count."""
    a = np.asarray(matrix)
    for _ in range(3):
        size = np.sqrt(np.max(np.abs(a), axis=1))
        size = np.where(size > 0, size, 1.0)
        a = a / size[:, None] / size[None, :]
    return float(np.linalg.cond(a)) if np.all(np.isfinite(a)) else float("inf")


def check_well_posed(
    term: ChainTerm, q: Coordinates, v: Velocities | None = None, tolerance: float | None = None
) -> WellPosed:
    """Check the chain at configuration ``q``, on the host."""
    layout, robot = term.layout, term.robot
    v = jnp.zeros(layout.nv, q.dtype) if v is None else v
    tolerance = float(jnp.finfo(q.dtype).eps ** 0.75) if tolerance is None else tolerance
    eta, kin = to_shapes(layout, q), kinematics(layout, term.parameters, q, term.links)
    zero = jnp.zeros(layout.dofs, q.dtype)
    mass, links, faults = term.mass(eta), {}, []
    shapes = layout.shapes or (0,) * len(layout.stages)
    for i, s in enumerate(layout.stages):
        if shapes[i]:
            values = np.linalg.eigvalsh(np.asarray(mass.ee[i][: shapes[i], : shapes[i]]))
            name = robot.links[s.link].name
            links[name] = float(values[0] / values[-1]) if values[-1] > 0 else 0.0
            if not links[name] > tolerance:
                faults.append(
                    (i, f"link {name!r}: its shape functions are dependent or carry no mass")
                )
    Mh = np.asarray(term._factor(kin, eta, zero, zero, zero).Mh)
    rigid = np.asarray(_composite(mass.zz, kin.full))
    joints = {}
    for i, s in enumerate(layout.stages):
        columns = [c for c in range(s.dofs) if not term.locked[s.v_start + c]]
        if not columns:
            continue
        parameters, count = term.parameters, len(columns)
        A = np.asarray(parameters.screw[i])[:, columns]
        rotor = float(parameters.rotor[i] * parameters.gear[i] ** 2) * np.eye(count)
        scale = np.trace(A.T @ rigid[i] @ A + rotor)
        finite = np.all(np.isfinite(Mh[i]))
        least = np.linalg.eigvalsh(A.T @ Mh[i] @ A + rotor)[0] if finite else np.nan
        name = robot.joints[s.joint].name
        ratio = float(least / scale) if scale > 0 else 0.0
        joints[name] = min(ratio, joints.get(name, np.inf)) if np.isfinite(ratio) else float("nan")
        if not ratio > tolerance:
            cause = (
                f"joint {name!r}: nothing that it moves has inertia (a massless link, or two equal "
                "axes with nothing between them)"
            )
            faults.append((i, cause))
    faults.sort(key=lambda f: -f[0])
    condition = float("nan")
    if term.links is not None and not layout.coordinates.motors:
        condition = _scaled_condition(stacked_system(term, Instant(0.0), q, v).symmetric())
    return WellPosed(not faults, faults[0][1] if faults else "", condition, joints, links)


def _composite(inertia: Float[Array, "B 6 6"], full: Float[Array, "B 6 6"]):
    """Inertia from each stage outwards, with all joints locked and links undeformed."""
    out = [inertia[-1]]
    for i in range(inertia.shape[0] - 2, -1, -1):
        out.append(inertia[i] + full[i + 1].T @ out[-1] @ full[i + 1])
    return jnp.stack(out[::-1])
