"""Data of the 3D page: sampled frames, deflections and strains of one or several trajectories."""

from typing import Any

import numpy as np

from flexjax.drive import Drive
from flexjax.robot import AbstractSection, Link
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz.figures._style import COLOURS
from flexjax.viz.scene._encode import decode as decode, encode as encode
from flexjax.viz.scene._scene_parts import (
    curves,
    joint_motion,
    joint_parts,
    load_parts,
    payload_parts,
    up_and_floor,
)

# Bytes of data per page: with the viewer (about 0.6 MB) and base64, a page stays below 2 MB.
BUDGET = 900_000


def scene(
    runs: dict[str, Trajectory],
    *,
    drives: dict[str, Drive] | None = None,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """The scene of ``{name: trajectory}``; outputs are thinned out to a budget of bytes.

    ``drives`` gives the loads of each run.
    """
    traj0 = next(iter(runs.values()))
    robot = traj0.robot
    sizes = [half_sizes(link, np.asarray(traj0.stations)) for link in robot.links]
    reach = max(_extent(name, np.asarray(traj.frames)) for name, traj in runs.items())
    drives = drives or {}
    arms = [
        {
            "name": name,
            "colour": COLOURS[i % len(COLOURS)],
            **_arm(traj, drives.get(name), sizes, budget // len(runs)),
        }
        for i, (name, traj) in enumerate(runs.items())
    ]
    index = {link.name: i for i, link in enumerate(robot.links)}
    parents = {j.child: (index.get(j.parent, -1), j.type == "sliding") for j in robot.tree_joints}
    thinnest = 0.004 * reach  # thinner links would be invisible
    up, floor = up_and_floor(robot)
    return {
        "robot": robot.name,
        "planar": robot.planar,
        "up": up,
        "floor": floor,
        "reach": reach,
        "links": [
            {
                "name": link.name,
                "parent": parents[link.name][0],
                "slides": parents[link.name][1],
                "round": is_round(link),
                "half": np.maximum(sizes[i], thinnest).round(6).tolist(),
            }
            for i, link in enumerate(robot.links)
        ],
        "joints": joint_parts(robot),
        "payloads": payload_parts(robot),
        "stations": np.asarray(traj0.stations, float).round(9).tolist(),
        "arms": arms,
    }


def _extent(name: str, frames: np.ndarray) -> float:
    """The longest side of the trajectory's bounding box, without NaN after a failure."""
    points = frames[..., :3].reshape(-1, 3)
    points = points[np.all(np.isfinite(points), axis=1)]
    if len(points) == 0:
        raise ValueError(f"animate: the trajectory {name!r} has no finite output; expected one.")
    return float(np.max(np.ptp(points, axis=0))) or 1.0


def _arm(
    traj: Trajectory, drive: Drive | None, sizes: list[np.ndarray], budget: int
) -> dict[str, Any]:
    frames, deflection = np.asarray(traj.frames), np.asarray(traj.deflection)
    good = np.flatnonzero(np.all(np.isfinite(frames), axis=(1, 2, 3)))
    plotted = curves(traj, good)
    links, stations = frames.shape[1:3]
    spent = 3 * sum(len(plotted[key]) for key in ("times", "values")) // 4  # base64 is longer
    loads = 0 if drive is None else len(drive.loads)
    row = 4 * (11 * links * stations + 8 * len(traj.robot.joints) + 6 * loads)
    most = max(2, (budget - spent) // row)
    stride = -(-len(good) // most)
    pick = np.unique(np.append(good[::stride], good[-1]))
    return {
        "formulation": traj.stats.formulation,
        "times": np.asarray(traj.ts)[pick].round(9).tolist(),
        "shape": [len(pick), links, stations],
        "frames": encode(frames[pick]),
        "deflection": encode(deflection[pick]),
        "strain": encode(surface_strain(np.asarray(traj.strain)[pick], sizes)),
        "joints": joint_motion(traj, pick),
        "loads": load_parts(traj, drive, pick),
        "curves": plotted,
    }


def surface_strain(strain: np.ndarray, sizes: list[np.ndarray]) -> np.ndarray:
    """Largest axial strain (T, L, S) on the surface of the sections."""
    half = np.stack(sizes)
    return (
        np.abs(strain[..., 0])
        + np.abs(strain[..., 5]) * half[..., 0]
        + np.abs(strain[..., 4]) * half[..., 1]
    )


def half_sizes(link: Link, stations: np.ndarray) -> np.ndarray:
    """Half height (along y) and half width (along z) at the stations, (S, 2)."""
    ends = np.zeros((len(stations), 2))
    begin = 0.0
    pieces = [(float(p.fraction), p.section, p.section_end) for p in link.pieces]
    for fraction, section, section_end in pieces or [(1.0, link.section, link.section_end)]:
        first = _half(section, link)
        last = first if section_end is None else _half(section_end, link)
        x = np.clip((stations - begin) / fraction, 0.0, 1.0)[:, None]
        here = stations >= begin - 1e-9
        ends[here] = (first + (last - first) * x)[here]
        begin += fraction
    return ends


def _half(section: AbstractSection | None, link: Link) -> np.ndarray:
    known = {
        key: float(getattr(section, key))
        for key in ("height", "width", "diameter")
        if getattr(section, key, None) is not None
    }
    if "diameter" in known:
        return np.full(2, known["diameter"] / 2)
    if known:
        return np.array([known["height"], known["width"]]) / 2
    if section is not None and hasattr(section, "Iz"):  # the rectangle with the given constants
        A, Iy, Iz = (float(getattr(section, key)) for key in ("A", "Iy", "Iz"))
        return np.sqrt(3 * np.array([Iz, Iy]) / A)
    return np.full(2, 0.01 * float(link.length))


def is_round(link: Link) -> bool:
    """Whether a section of the link is round."""
    pieces = link.pieces or (link,)
    return any(getattr(piece.section, "diameter", None) is not None for piece in pieces)
