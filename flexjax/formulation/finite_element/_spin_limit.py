"""The limit of linear bending under rotation, checked on the host after a run.

Without foreshortening a link's stiffness in its plane is K - spin^2 M. Above its first clamped
frequency it diverges, where a real beam becomes stiffer.
"""

from typing import Any

import numpy as np

from flexjax.formulation._chain_model import ChainModel
from flexjax.formulation.finite_element._link import FiniteElementLinks
from flexjax.numerics.beam import Cubics
from flexjax.numerics.linalg._banded import BAND


def first_frequency(
    M: np.ndarray, K: np.ndarray, table: Cubics, length: float, loads: list[tuple[float, float]]
) -> float:
    """Lowest clamped frequency [rad/s] of a link with payloads [(station, mass)].

    By inverse iteration, at a cost linear in the elements.
    """
    m = table.size
    mass, stiffness = length * M[:m], K[:m] / length**3
    # One element has fewer unknowns than the band is wide.
    width = min(BAND + 1, m)
    lower = np.zeros((width, m))
    for k in range(width):
        lower[k, : m - k] = stiffness[k:, BAND - k]
    rows = []
    for s, weight in loads:
        e = min(int(s * table.elements), table.elements - 1)
        row = np.zeros(m + 1)
        powers = np.vander([s * table.elements - e], 4, increasing=True)[0]
        np.add.at(row, table.index[e], powers @ table.powers[e])
        rows.append((weight, row[:m]))

    def inertia(x):
        padded = np.pad(x, BAND)
        out = sum(mass[:, k] * padded[k : k + m] for k in range(2 * BAND + 1))
        return out + sum((weight * row * (row @ x) for weight, row in rows), np.zeros(m))

    from scipy.linalg import solveh_banded  # few runs need it

    x = np.ones(m)
    for _ in range(30):
        x = solveh_banded(lower, inertia(x), lower=True)
        x /= np.max(np.abs(x))
    padded = np.pad(x, BAND)
    force = sum(stiffness[:, k] * padded[k : k + m] for k in range(2 * BAND + 1))
    return float(np.sqrt((x @ force) / (x @ inertia(x))))


def sustained_spin(t: np.ndarray, spin: np.ndarray, period: float) -> tuple[float, float]:
    """Largest mean of the spin over ``period`` (or the run), and the end of that interval.

    Hubs without inertia vibrate much faster than their links rotate, which is harmless.
    """
    angle = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (spin[1:] + spin[:-1]))])
    stretch = min(period, t[-1] - t[0])
    ends = t[t >= t[0] + stretch * (1 - 1e-9)]
    mean = np.abs(np.interp(ends, t, angle) - np.interp(ends - stretch, t, angle)) / stretch
    worst = int(np.argmax(mean))
    return float(mean[worst]), float(ends[worst])


def spin_warnings(model: ChainModel, traj: Any) -> list[str]:
    links, robot = model.links, model.robot
    if not isinstance(links, FiniteElementLinks) or links.stiffening or np.ndim(traj.status):
        return []
    out, numbers = [], links.numbers
    velocity = np.asarray(traj.velocity, float)  # read first: one program gives both
    good = np.isfinite(np.asarray(traj.q[:, 0]))
    if good.sum() < 2:
        return []
    t = np.asarray(traj.ts, float)[good]
    for i, (stage, table) in enumerate(zip(model.layout.stages, links.tables, strict=True)):
        if table is None:
            continue
        link = robot.links[stage.link]
        length = float(numbers.length[i])
        if stage.extends:
            length = float(np.max(np.asarray(traj.q[:, stage.v_start])[good]))
        # M contains the other payloads.
        loads = [
            (float(load.s), float(load.inertia[0, 0])) for load in links.loads if load.stage == i
        ]
        M, K = (np.asarray(x[i], float) for x in (numbers.M, numbers.K))
        limit = first_frequency(M, K, table, length, loads)
        spin = velocity[:, stage.link, 0, 5][good]
        fastest, when = sustained_spin(t, spin, 2 * np.pi / limit)
        if fastest > limit:
            out.append(
                f"links.{link.name}: turns at {fastest:.4g} rad/s (until t = {when:.4g} s), faster "
                f"than its first clamped frequency of {limit:.4g} rad/s. Without foreshortening "
                "its bending stiffness vanishes there and the deflection grows without bound; use "
                "FiniteElement(stiffening=True)."
            )
    return out
