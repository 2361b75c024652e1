"""Well-posedness in practice: is M_sys invertible for this robot in this configuration, and if not, which joint or link
makes it singular?

M_sys of a serial chain is invertible if and only if every link's shape functions are independent and have mass (M_phi >
0) and every joint moves some inertia
against what hangs on it (A^T I A > 0 for the articulated inertia I). Both are read off the recursion; the first to fail
from the tip is the cause.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Velocities
from flexjax.formulation.screw_synthesis._chain import stacked_system
from flexjax.mechanism.chain import ChainTerm, kinematics
from flexjax.mechanism.chain._kinematics import pad_shapes


@dataclasses.dataclass(frozen=True)
class WellPosed:
    """``joints``: least articulated inertia of each joint relative to the whole robot's inertia about it; ``links``:
    inverse condition number of each flexible link's
    modal mass; ``condition``: of M_sys, symmetric scaling removed (NaN for robots with motors on flexible joints, which
    it is not built for)."""

    ok: bool
    cause: str
    condition: float
    joints: dict[str, float]
    links: dict[str, float]

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = [f"  joint {k:<12} {x:.3g}" for k, x in self.joints.items()] + [
            f"  link  {k:<12} {x:.3g}" for k, x in self.links.items()
        ]
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
    """Of the chain at configuration ``q``. Host-side: for reports, not for compiled loops."""
    lay, robot = term.layout, term.robot
    v = jnp.zeros(lay.nv, q.dtype) if v is None else v
    tolerance = float(jnp.finfo(q.dtype).eps ** 0.75) if tolerance is None else tolerance
    eta, kin = pad_shapes(lay, q), kinematics(lay, term.par, q, term.links)
    zero = jnp.zeros(lay.dofs, q.dtype)
    mass, links, faults = term.mass(eta), {}, []
    shapes = lay.shapes or (0,) * len(lay.stages)
    for i, s in enumerate(lay.stages):
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
    for i, s in enumerate(lay.stages):
        columns = [c for c in range(s.dofs) if not term.locked[s.v_start + c]]
        if not columns:
            continue
        A = np.asarray(term.par.screw[i])[:, columns]
        rotor = float(term.par.rotor[i] * term.par.gear[i] ** 2) * np.eye(len(columns))
        scale = np.trace(A.T @ rigid[i] @ A + rotor)
        least = (
            np.linalg.eigvalsh(A.T @ Mh[i] @ A + rotor)[0] if np.all(np.isfinite(Mh[i])) else np.nan
        )
        name = robot.joints[s.joint].name
        ratio = float(least / scale) if scale > 0 else 0.0
        joints[name] = min(ratio, joints.get(name, np.inf)) if np.isfinite(ratio) else float("nan")
        if not ratio > tolerance:
            faults.append(
                (
                    i,
                    f"joint {name!r}: nothing that it moves has inertia (a massless link, or two equal axes with "
                    "nothing between them)",
                )
            )
    faults.sort(key=lambda f: -f[0])
    condition = float("nan")
    if term.links is not None and not lay.motors:
        condition = _scaled_condition(stacked_system(term, 0.0, q, v).symmetric())
    return WellPosed(not faults, faults[0][1] if faults else "", condition, joints, links)


def _composite(inertia: Float[Array, "B 6 6"], full: Float[Array, "B 6 6"]):
    """Inertia of everything from each stage outwards, all joints locked and links undeformed."""
    out = [inertia[-1]]
    for i in range(inertia.shape[0] - 2, -1, -1):
        out.append(inertia[i] + full[i + 1].T @ out[-1] @ full[i + 1])
    return jnp.stack(out[::-1])
