"""glTF files: valid structure, and the same points in an independent parser."""

import json
import struct

import jax
import numpy as np
import pytest

import flexjax as fx
from tests._sample import sample_trajectory

WIDTH = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


def parse(path):
    """The document and the arrays of a .glb file; asserts its structure."""
    data = path.read_bytes()
    magic, version, length = struct.unpack("<4sII", data[:12])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack("<I4s", data[12:20])
    assert kind == b"JSON" and size % 4 == 0
    document = json.loads(data[20 : 20 + size])
    bin_size, kind = struct.unpack("<I4s", data[20 + size : 28 + size])
    assert kind == b"BIN\0" and 28 + size + bin_size == len(data)
    binary = data[28 + size :]
    assert document["buffers"][0]["byteLength"] <= bin_size
    arrays = []
    for entry in document["accessors"]:
        view = document["bufferViews"][entry["bufferView"]]
        dtype = {5126: "<f4", 5125: "<u4"}[entry["componentType"]]
        part = binary[view["byteOffset"] :][: view["byteLength"]]
        array = np.frombuffer(part, dtype).reshape(entry["count"], WIDTH[entry["type"]])
        if "min" in entry:
            np.testing.assert_array_equal(array.min(0), np.array(entry["min"], "<f4"))
            np.testing.assert_array_equal(array.max(0), np.array(entry["max"], "<f4"))
        arrays.append(array)
    return document, arrays


def test_robot_at_home(tmp_path):
    robot = fx.load_robot("two-link")
    document, arrays = parse(fx.save_gltf(robot, tmp_path / "arm.glb"))
    names = [node["name"] for node in document["nodes"]]
    assert names == ["two-link", "upper", "fore"]
    np.testing.assert_allclose(document["nodes"][2]["translation"], [0.5, 0, 0], atol=1e-12)
    for mesh, link in zip(document["meshes"], robot.links, strict=True):
        attributes = mesh["primitives"][0]["attributes"]
        points, normals = (arrays[attributes[k]] for k in ("POSITION", "NORMAL"))
        size = [float(link.length), float(link.section.height), float(link.section.width)]
        np.testing.assert_allclose(np.ptp(points, axis=0), size, rtol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-6)
        # Closed and turned outwards: the volume of the prism by the divergence theorem.
        a, b, c = points.reshape(-1, 3, 3).transpose(1, 0, 2).astype(float)
        volume = np.sum(a * np.cross(b, c)) / 6
        np.testing.assert_allclose(volume, np.prod(size), rtol=1e-5)


def test_trajectory_moves(tmp_path):
    traj = sample_trajectory()
    document, arrays = parse(fx.save_gltf(traj, tmp_path / "run.glb"))
    motion = document["animations"][0]
    assert len(motion["channels"]) == 2 * 2 * 2  # links, segments, position and rotation
    for channel in motion["channels"]:
        sampler = motion["samplers"][channel["sampler"]]
        np.testing.assert_allclose(arrays[sampler["input"]][:, 0], traj.ts, atol=1e-7)
        node = channel["target"]["node"] - 1
        link, k = divmod(node, 2)
        values = arrays[sampler["output"]]
        if channel["target"]["path"] == "translation":
            np.testing.assert_allclose(values, traj.frames[:, link, k, :3], atol=1e-6)
        else:
            np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1, rtol=1e-6)
            assert np.all(np.sum(values[1:] * values[:-1], axis=1) > 0)


def test_gravity_points_down(tmp_path):
    robot = fx.load_robot("two-link").replace("gravity", [0.0, 0.0, -9.81])
    document, _ = parse(fx.save_gltf(robot, tmp_path / "arm.glb"))
    x, y, z, w = document["nodes"][0]["rotation"]
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_quat([x, y, z, w]).apply([0, 0, 1.0])
    np.testing.assert_allclose(turned, [0, 1, 0], atol=1e-12)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="ends in .glb"):
        fx.save_gltf(fx.load_robot("two-link"), tmp_path / "arm.gltf")
    with pytest.raises(ValueError, match="expected a Robot or a Trajectory"):
        fx.save_gltf(3, tmp_path / "arm.glb")
    batch = jax.tree.map(lambda x: x[None], sample_trajectory())
    with pytest.raises(ValueError):
        fx.save_gltf(batch, tmp_path / "arm.glb")
    assert not list(tmp_path.iterdir())
