"""Writes robots and trajectories as binary glTF (.glb), for slides and other viewers.

A link is a prism along its sections. In a trajectory the prism is cut at the stations, and its
pieces move as rigid bodies, so that a bent link shows its shape.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from flexjax._files import write_whole
from flexjax.io._dataset import check_single
from flexjax.robot import Robot
from flexjax.robot._home import home_poses, section_pose
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz.figures._style import COLOURS
from flexjax.viz.scene._scene import half_sizes, is_round

FLOAT, UINT, ARRAY, ELEMENTS = 5126, 5125, 34962, 34963
SIDES = 16  # of a round section


def save_gltf(thing: Robot | Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a robot at home, or a moving trajectory, as a binary glTF file.

    PowerPoint, Blender and web viewers show such files. The direction against gravity is up.

    Arguments:
        thing: a robot, or one trajectory (not a batch).
        path: a name that ends in ``.glb``.

    Returns:
        The path.

    Raises:
        ValueError: the argument is neither a robot nor a single trajectory.

    >>> import flexjax as fx
    >>> fx.save_gltf(fx.load_robot("two-link"), "arm.glb").name
    'arm.glb'
    """
    if Path(path).suffix.lower() != ".glb":
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .glb.")
    if isinstance(thing, Robot):
        file = _robot(thing)
    elif isinstance(thing, Trajectory):
        check_single(thing, "save_gltf")
        file = _trajectory(thing.whole())
    else:
        kind = type(thing).__name__
        raise ValueError(f"save_gltf: a {kind}; expected a Robot or a Trajectory.")
    content = file.content()
    return write_whole(path, lambda part: part.write_bytes(content))


class _File:
    """A glTF document under construction, with one buffer."""

    def __init__(self, robot: Robot):
        self.data = bytearray()
        self.json: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "flexjax"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [{"name": robot.name, "rotation": _upright(robot), "children": []}],
            "meshes": [],
            "materials": [_material(i) for i in range(len(robot.links))],
            "accessors": [],
            "bufferViews": [],
        }

    def accessor(self, values: np.ndarray, target: int | None = None, limits: bool = False) -> int:
        """Store an array; its index among the accessors."""
        whole = values.dtype.kind in "iu"
        values = np.ascontiguousarray(values, "<u4" if whole else "<f4")
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        self.data += values.tobytes()
        self.json["bufferViews"].append(view | ({"target": target} if target else {}))
        width = 1 if values.ndim == 1 else values.shape[1]
        entry = {
            "bufferView": len(self.json["bufferViews"]) - 1,
            "componentType": UINT if whole else FLOAT,
            "count": len(values),
            "type": {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[width],
        }
        if limits:
            entry["min"] = np.atleast_1d(values.min(axis=0)).tolist()
            entry["max"] = np.atleast_1d(values.max(axis=0)).tolist()
        self.json["accessors"].append(entry)
        return len(self.json["accessors"]) - 1

    def mesh(self, rings: np.ndarray, material: int, name: str) -> int:
        """A closed prism through rings of points (n, m, 3)."""
        points, normals = _prism(rings)
        attributes = {
            "POSITION": self.accessor(points, ARRAY, limits=True),
            "NORMAL": self.accessor(normals, ARRAY),
        }
        index = self.accessor(np.arange(len(points), dtype=np.uint32), ELEMENTS)
        primitive = {"attributes": attributes, "indices": index, "material": material}
        self.json["meshes"].append({"name": name, "primitives": [primitive]})
        return len(self.json["meshes"]) - 1

    def node(self, name: str, mesh: int, place: np.ndarray, quaternion: np.ndarray) -> int:
        """A node at a position, with a quaternion x y z w; its index."""
        self.json["nodes"].append(
            {
                "name": name,
                "mesh": mesh,
                "translation": [float(x) for x in place],
                "rotation": [float(x) for x in quaternion],
            }
        )
        index = len(self.json["nodes"]) - 1
        self.json["nodes"][0]["children"].append(index)
        return index

    def content(self) -> bytes:
        """The file: header, JSON chunk and binary chunk, each padded to four bytes."""
        document = {**self.json, "buffers": [{"byteLength": len(self.data)}]}
        text = json.dumps(document, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        data = bytes(self.data) + b"\0" * (-len(self.data) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        chunks += struct.pack("<I4s", len(data), b"BIN\0") + data
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def _upright(robot: Robot) -> list[float]:
    """The quaternion x y z w that rotates the direction against gravity onto y, glTF's up."""
    gravity = np.asarray(robot.gravity, float)
    size = np.linalg.norm(gravity)
    if size == 0:
        return [0.0, 0.0, 0.0, 1.0]
    up, y = -gravity / size, np.array([0.0, 1.0, 0.0])
    if up @ y < -1 + 1e-12:
        return [1.0, 0.0, 0.0, 0.0]
    found = np.append(np.cross(up, y), 1 + up @ y)
    return (found / np.linalg.norm(found)).tolist()


def _material(i: int) -> dict[str, Any]:
    colour = COLOURS[i % len(COLOURS)].lstrip("#")
    shares = [int(colour[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [round(x**2.2, 4) for x in shares]
    surface = {"baseColorFactor": [*linear, 1.0], "metallicFactor": 0.1, "roughnessFactor": 0.6}
    return {"pbrMetallicRoughness": surface}


def _outline(half: np.ndarray, round_: bool) -> np.ndarray:
    """Points (m, 3) of a section in its own axes; ``half``: half sizes along y and z."""
    if round_:
        angle = 2 * np.pi * np.arange(SIDES) / SIDES
        corners = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        corners = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    return np.concatenate([np.zeros((len(corners), 1)), corners * half], axis=1)


def _prism(rings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (3 n, 3) of a closed prism, and their normals: flat, so no corner is shared."""
    n, m, _ = rings.shape
    after = np.roll(np.arange(m), -1)
    triangles = []
    for i in range(n - 1):
        a, b = rings[i], rings[i + 1]
        triangles += [np.stack([a, a[after], b], axis=1), np.stack([a[after], b[after], b], axis=1)]
    for ring, outward in ((rings[0], -1), (rings[-1], 1)):
        centre = np.broadcast_to(ring.mean(axis=0), ring.shape)
        cap = [centre, ring, ring[after]] if outward > 0 else [centre, ring[after], ring]
        triangles.append(np.stack(cap, axis=1))
    faces = np.concatenate(triangles)
    normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return faces.reshape(-1, 3), np.repeat(normal, 3, axis=0)


def _robot(robot: Robot) -> _File:
    file, poses = _File(robot), home_poses(robot)
    for i, link in enumerate(robot.links):
        stations = np.linspace(0, 1, 2 if link.curvature is None else 13)
        sizes = half_sizes(link, stations)
        rings = np.array(
            [
                section_pose(link, s).apply(_outline(size, is_round(link)))
                for s, size in zip(stations, sizes, strict=True)
            ]
        )
        if float(link.length) == 0:
            continue  # a body without extent
        pose = poses[link.name]
        file.node(link.name, file.mesh(rings, i, link.name), pose.position, pose.rotation.as_quat())
    return file


def _trajectory(traj: Trajectory) -> _File:
    robot, stations = traj.robot, np.asarray(traj.stations)
    file = _File(robot)
    frames = np.asarray(traj.frames, float)
    good = np.isfinite(frames).all(axis=(1, 2, 3))
    if not good.any():
        raise ValueError("save_gltf: the trajectory has no finite output; expected one.")
    frames, times = frames[good], np.asarray(traj.ts, float)[good]
    channels, samplers = [], []
    clock = file.accessor(times - times[0], limits=True)
    for i, link in enumerate(robot.links):
        sizes = half_sizes(link, stations)
        if float(link.length) == 0:
            continue
        for k in range(len(stations) - 1):
            length = float(link.length) * (stations[k + 1] - stations[k])
            ends = [_outline(sizes[k + j], is_round(link)) for j in (0, 1)]
            rings = np.stack([ends[0], ends[1] + [length, 0.0, 0.0]])
            name = f"{link.name}-{k + 1}"
            place, turned = frames[:, i, k, :3], _continuous(frames[:, i, k, [4, 5, 6, 3]])
            node = file.node(name, file.mesh(rings, i, name), place[0], turned[0])
            for path, values in (("translation", place), ("rotation", turned)):
                samplers.append({"input": clock, "output": file.accessor(values)})
                target = {"node": node, "path": path}
                channels.append({"sampler": len(samplers) - 1, "target": target})
    file.json["animations"] = [{"name": "motion", "channels": channels, "samplers": samplers}]
    return file


def _continuous(quaternions: np.ndarray) -> np.ndarray:
    """Signs changed so that neighbours are close: viewers interpolate between them."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    sign = np.where(np.cumsum(np.append(False, flips)) % 2, -1.0, 1.0)
    return quaternions * sign[:, None]
