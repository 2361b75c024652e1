"""Data of the 3D page: sampled frames, deflections and strains of one or several trajectories."""

import base64
from typing import Any

import numpy as np

from flexjax.robot import AbstractSection, Link
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz._style import COLOURS

# Bytes of data per page: with the viewer (about 0.6 MB) and base64, a page stays below 2 MB.
BUDGET = 900_000


def scene(runs: dict[str, Trajectory], *, budget: int = BUDGET) -> dict[str, Any]:
    """The scene of ``{name: trajectory}``; outputs are thinned out to a budget of bytes."""
    traj0 = next(iter(runs.values()))
    robot = traj0.robot
    sizes = [half_sizes(link, np.asarray(traj0.stations)) for link in robot.links]
    reach = max(_extent(name, np.asarray(traj.frames)) for name, traj in runs.items())
    arms = [
        _arm(name, traj, sizes, budget // len(runs), COLOURS[i % len(COLOURS)])
        for i, (name, traj) in enumerate(runs.items())
    ]
    index = {link.name: i for i, link in enumerate(robot.links)}
    parents = {j.child: (index.get(j.parent, -1), j.type == "sliding") for j in robot.tree_joints}
    floor = 0.004 * reach  # thinner links would be invisible
    return {
        "robot": robot.name,
        "planar": robot.planar,
        "reach": reach,
        "links": [
            {
                "name": link.name,
                "parent": parents[link.name][0],
                "slides": parents[link.name][1],
                "round": is_round(link),
                "half": np.maximum(sizes[i], floor).round(6).tolist(),
                "payload": any(p.link == link.name for p in robot.payloads),
            }
            for i, link in enumerate(robot.links)
        ],
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
    name: str, traj: Trajectory, sizes: list[np.ndarray], budget: int, colour: str
) -> dict[str, Any]:
    frames, deflection = np.asarray(traj.frames), np.asarray(traj.deflection)
    good = np.flatnonzero(np.all(np.isfinite(frames), axis=(1, 2, 3)))
    links, stations = frames.shape[1:3]
    most = max(2, budget // (links * stations * 11 * 4))
    stride = -(-len(good) // most)
    pick = np.unique(np.append(good[::stride], good[-1]))
    return {
        "name": name,
        "formulation": traj.stats.formulation,
        "colour": colour,
        "times": np.asarray(traj.ts)[pick].round(9).tolist(),
        "shape": [len(pick), links, stations],
        "frames": encode(frames[pick]),
        "deflection": encode(deflection[pick]),
        "strain": encode(surface_strain(np.asarray(traj.strain)[pick], sizes)),
    }


def encode(array: np.ndarray) -> str:
    """Encode an array as base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def decode(text: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape)


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
