"""Orientations and mass properties in MJCF files: explicit ones, and those of geoms."""

import xml.etree.ElementTree as ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from flexjax.robot.files._rigid_tree import LARGEST, Inertial, numbers_of
from flexjax.robot.parts._fault import Faults

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
DENSITY = 1000.0  # kg/m3, MuJoCo's default
MASSLESS = ("plane", "hfield", "sdf")


def rotation_of(
    element: ElementTree.Element, path: str, angle: float, sequence: str, faults: Faults
) -> Rotation:
    """The orientation of an element; ``angle``: radians per unit of angle in the file."""
    given = [key for key in ORIENTATIONS if element.get(key) is not None]
    if len(given) > 1:
        faults.add(path, " and ".join(given), "at most one orientation")
    if not given:
        return Rotation.identity()
    key = given[0]
    defaults = {
        "quat": (1, 0, 0, 0),
        "axisangle": (1, 0, 0, 0),
        "euler": (0, 0, 0),
        "xyaxes": (1, 0, 0, 0, 1, 0),
        "zaxis": (0, 0, 1),
    }
    x = numbers_of(element, key, defaults[key], path, faults)
    parts = [x[:3], np.cross(x[:3], x[3:])] if key == "xyaxes" else [x[:3] if len(x) == 4 else x]
    parts = [x] if key == "quat" else parts
    if key != "euler" and any(np.linalg.norm(part) < 1e-12 for part in parts):
        faults.add(f"{path}.{key}", x.tolist(), "directions of some length")
        return Rotation.identity()
    if key == "quat":
        return Rotation.from_quat([*x[1:], x[0]])
    if key == "axisangle":
        return Rotation.from_rotvec(angle * x[3] * x[:3] / np.linalg.norm(x[:3]))
    if key == "euler":
        # Lower-case letters are axes that rotate along, which scipy writes in capitals.
        return Rotation.from_euler(sequence.swapcase(), angle * x)
    if key == "xyaxes":
        first = x[:3] / np.linalg.norm(x[:3])
        second = x[3:] - first * (first @ x[3:])
        second /= np.linalg.norm(second)
        return Rotation.from_matrix(np.stack([first, second, np.cross(first, second)], axis=1))
    return _from_z(x / np.linalg.norm(x))


def _from_z(direction: np.ndarray) -> Rotation:
    """The smallest rotation of the z axis onto a direction."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    size = np.linalg.norm(axis)
    if size < 1e-12:
        return Rotation.identity() if direction[2] > 0 else Rotation.from_rotvec([np.pi, 0, 0])
    return Rotation.from_rotvec(axis / size * np.arctan2(size, direction[2]))


def inertial_of(
    element: ElementTree.Element, path: str, angle: float, sequence: str, faults: Faults
) -> Inertial:
    """The mass properties of an element <inertial>."""
    path = f"{path}.inertial"
    com = numbers_of(element, "pos", (0, 0, 0), path, faults)
    mass = float(numbers_of(element, "mass", (0,), path, faults)[0])
    if element.get("mass") is None:
        faults.add(f"{path}.mass", None, "a mass")
    full = element.get("fullinertia") is not None
    if full == (element.get("diaginertia") is not None):
        given = "both" if full else None
        faults.add(f"{path}.diaginertia", given, "exactly one of diaginertia and fullinertia")
    if full:
        xx, yy, zz, xy, xz, yz = numbers_of(element, "fullinertia", (0,) * 6, path, faults)
        return Inertial(mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    R = rotation_of(element, path, angle, sequence, faults).as_matrix()
    diagonal = numbers_of(element, "diaginertia", (0, 0, 0), path, faults)
    return Inertial(mass, com, R @ np.diag(diagonal) @ R.T)


def geom_inertial(
    geoms: list[ElementTree.Element], path: str, angle: float, sequence: str, faults: Faults
) -> Inertial | None:
    """The mass properties of all geoms of a body; None if it has none with mass."""
    found = [_geom(geom, f"{path}.geom", angle, sequence, faults) for geom in geoms]
    parts = [part for part in found if part is not None and part.mass > 0]
    if not parts:
        return None
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        arm = part.com - com
        inertia += part.inertia + part.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(mass, com, inertia)


def _geom(
    geom: ElementTree.Element, path: str, angle: float, sequence: str, faults: Faults
) -> Inertial | None:
    kind = geom.get("type", "sphere")
    density = float(numbers_of(geom, "density", (DENSITY,), path, faults)[0])
    given = geom.get("mass")
    mass = float(numbers_of(geom, "mass", (0,), path, faults)[0])
    if kind in MASSLESS or (given is not None and mass == 0) or (given is None and density == 0):
        return None
    if kind not in ("sphere", "capsule", "cylinder", "box", "ellipsoid"):
        expected = "sphere, capsule, cylinder, box or ellipsoid"
        faults.add(f"{path}.type", kind, expected, "Add an <inertial> to the body.")
        return None
    count = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
    along = geom.get("fromto")
    if along is not None and kind in ("capsule", "cylinder"):
        ends = numbers_of(geom, "fromto", (0, 0, 0, 0, 0, 1), path, faults)
        span = ends[3:] - ends[:3]
        length = float(np.linalg.norm(span))
        com, turned = 0.5 * (ends[:3] + ends[3:]), _from_z(span / max(length, 1e-300))
        radius = _first(geom, path, faults)
        size = np.array([radius, 0.5 * length])
    elif along is not None:
        faults.add(f"{path}.fromto", along, "a capsule or a cylinder")
        return None
    else:
        com = numbers_of(geom, "pos", (0, 0, 0), path, faults)
        turned = rotation_of(geom, path, angle, sequence, faults)
        size = _sizes(geom, count, path, faults)
    volume, per_mass = _solid(kind, size)
    mass = mass if given is not None else density * volume
    R = turned.as_matrix()
    return Inertial(mass, com, mass * R @ np.diag(per_mass) @ R.T)


def _sizes(geom: ElementTree.Element, count: int, path: str, faults: Faults) -> np.ndarray:
    """The first ``count`` sizes; MuJoCo ignores further ones."""
    words = (geom.get("size") or "").split()[:count]
    try:
        sizes = np.array([float(word) for word in words])
    except ValueError:
        sizes = np.zeros(0)
    if len(sizes) != count or not np.all((sizes > 0) & (sizes <= LARGEST)):
        faults.add(f"{path}.size", geom.get("size"), f"{count} positive numbers")
        return np.ones(count)
    return sizes


def _first(geom: ElementTree.Element, path: str, faults: Faults) -> float:
    return float(_sizes(geom, 1, path, faults)[0])


def _solid(kind: str, size: np.ndarray) -> tuple[float, np.ndarray]:
    """Volume, and principal inertias per mass, of a solid; sizes are half-lengths and radii."""
    if kind in ("sphere", "ellipsoid"):
        a, b, c = size if kind == "ellipsoid" else (size[0],) * 3
        squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        return 4 / 3 * np.pi * a * b * c, squares / 5
    if kind == "box":
        a, b, c = size
        return 8 * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 3
    r, half = size
    if kind == "cylinder":
        side = (3 * r * r + 4 * half * half) / 12
        return 2 * np.pi * r * r * half, np.array([side, side, 0.5 * r * r])
    tube, ball = 2 * np.pi * r * r * half, 4 / 3 * np.pi * r**3
    # Two half-balls, with centres of mass 3/8 r beyond the ends of the cylinder.
    side = tube * (3 * r * r + 4 * half * half) / 12
    side += ball * (2 * r * r / 5 + half * half + 3 / 4 * r * half)
    axial = tube * 0.5 * r * r + ball * 2 * r * r / 5
    return tube + ball, np.array([side, side, axial]) / (tube + ball)
