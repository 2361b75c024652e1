"""The limits of links without foreshortening, checked on the host after a run.

Their stiffness in the plane is K - spin^2 M. Above their first clamped frequency it diverges, where
a real beam becomes stiffer. And their ends stay where they are along the chord when they bend.
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


SLOW = 0.02  # square of spin over first frequency from which a link says by how much it softens
BENT = 1e-3  # foreshortening over length from which a link says that it lacks it


def spin_warnings(model: ChainModel, traj: Any) -> list[str]:
    """What links without foreshortening lacked in a run.

    Links that the default leaves out say it from the first per cent on; where the user left it out,
    only a motion that diverges is worth a warning.
    """
    links, robot = model.links, model.robot
    if not isinstance(links, FiniteElementLinks) or np.ndim(traj.status):
        return []
    without = [
        i for i, table in enumerate(links.tables) if table is not None and not links.stiffening[i]
    ]
    if not without:
        return []
    velocity = np.asarray(traj.velocity, float)  # read first: one program gives all
    deflection = np.asarray(traj.deflection, float)
    good = np.isfinite(np.asarray(traj.q[:, 0]))
    if good.sum() < 2:
        return []
    t = np.asarray(traj.ts, float)[good]
    out = []
    for i in without:
        stage = model.layout.stages[i]
        link = robot.links[stage.link]
        length, shortest = (float(links.numbers.length[i]),) * 2
        if stage.extends:
            free = np.asarray(traj.q[:, stage.v_start])[good]
            length, shortest = float(np.max(free)), float(np.min(free))
        limit = _limit(links, i, length)
        spin = velocity[:, stage.link, 0, 5][good]
        fastest, when = sustained_spin(t, spin, 2 * np.pi / limit)
        chosen = not (stage.extends or (links.pinned and links.pinned[i]))
        if fastest > limit:
            out.append(
                f"links.{link.name}: turns at {fastest:.4g} rad/s (until t = {when:.4g} s), faster "
                f"than its first clamped frequency of {limit:.4g} rad/s. Without foreshortening "
                "its bending stiffness vanishes there and the deflection grows without bound; use "
                + ("FiniteElement()." if chosen else _INSTEAD)
            )
        elif not chosen:
            bent = float(np.max(np.abs(deflection[:, stage.link, :, 1][good])))
            out += _left_out(link.name, fastest / limit, bent, shortest)
    return out


_INSTEAD = "a formulation whose links shorten as they bend (PortHamiltonian, MovingBeam)."


def _left_out(name: str, ratio: float, bent: float, length: float) -> list[str]:
    """Sizes of what a link lacks that runs through its joint or whose mesh moves."""
    # Half the integral of the squared slope of a beam that bends under a force at its end.
    back = 0.6 * bent**2 / length
    lacks = []
    if ratio**2 > SLOW:
        lacks.append(f"its first frequency is about {50 * ratio**2:.2g} % too low at this spin")
    if back > BENT * length:
        lacks.append(f"its end is up to about {back:.2g} m too far out")
    if not lacks:
        return []
    return [
        f"links.{name}: FiniteElement has no foreshortening of a link that runs through its joint "
        f"or whose mesh moves; {' and '.join(lacks)}. Where this matters, use " + _INSTEAD
    ]


def _limit(links: FiniteElementLinks, stage: int, length: float) -> float:
    """First clamped frequency [rad/s] of the link of a stage."""
    # M contains the other payloads.
    loads = [
        (float(load.s), float(load.inertia[0, 0])) for load in links.loads if load.stage == stage
    ]
    M, K = (np.asarray(x[stage], float) for x in (links.numbers.M, links.numbers.K))
    return first_frequency(M, K, links._table(stage), length, loads)
