"""Seeded random files of every kind, and the defects that longer runs found."""

import struct
import time

import h5py
import numpy as np
import pytest

import flexjax as fx
from flexjax.io._tree import restore
from flexjax.study.identify.records._read import read_columns
from flexjax.study.sweep._store import open_store
from tests.files.test_damaged import T, mat5, matrix
from tests.fuzz.loaders import KEY, LOADERS, Failure, _folder, fuzz, healthy, outcome

# python -m tests.fuzz.loaders --cases 20000 runs more.
CASES = {kind: 10 if "trajectory" in kind or kind == "sweep" else 30 for kind in LOADERS}
ARM = (
    'schema = 1\nname = "x"\n[[links]]\nname = "a"\nlength = 1.0\nrigid = true\n'
    "body = { mass = 1.0, com = [0.5, 0, 0], inertia = [1, 1, 1, 0, 0, 0] }\n"
    '[[joints]]\nname = "j"\ntype = "revolute"\nparent = "ground"\nchild = "a"\n'
)


@pytest.mark.parametrize("kind", LOADERS)
def test_every_file_is_read_or_refused(kind):
    assert outcome(kind, healthy(kind)) == "read"
    counts = fuzz(kind, CASES[kind])
    assert counts["refused"] > 0 and counts.total() >= CASES[kind]


def test_the_rules_are_enforced(tmp_path, monkeypatch):
    """The harness itself: another exception, or a file of somebody else, is a failure."""
    path = tmp_path / "case"
    monkeypatch.setitem(LOADERS, "robot.toml", lambda path: {}[0])
    with pytest.raises(Failure, match="KeyError"):
        outcome("robot.toml", path)
    foreign = tmp_path / "not-to-be-read"
    foreign.write_text("secret")
    monkeypatch.setitem(LOADERS, "robot.toml", lambda path: foreign.read_text())
    with pytest.raises(Failure, match="open"):
        outcome("robot.toml", path)
    assert _folder().is_dir()


@pytest.mark.parametrize(
    "text",
    [
        "z." + ".".join("a" * 30_000) + " = 1",  # took 3.7 GB and eight seconds
        "z." + ".".join(['"="'] * 30_000) + " = 1",
        "z = " + "{ a = " * 90 + "1" + " }" * 90,
        "length = 1" + "0" * 400,
        '[[links]]\nname = "b"\n' * 20_000,  # took many minutes
        '[[links]]\nname = "' + "b" * 100_000 + '"\nlength = 1.0\n',
        '[[links]]\nname = "\\u001b[2J"\nlength = 1.0\n',
    ],
)
def test_robots_that_exhaust_or_deceive(tmp_path, text):
    path = tmp_path / "arm.toml"
    path.write_text(ARM + text)
    began = time.process_time()
    with pytest.raises(fx.RobotError, match=r"arm\.toml") as caught:
        fx.load_robot(path)
    assert time.process_time() - began < 5
    assert len(str(caught.value)) < 100_000 and "\x1b" not in str(caught.value)


def test_devices_and_pipes_are_not_opened(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.nc")
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(fx.FileError, match="expected a file"):
        fx.load_trajectory(tmp_path / "pipe.nc")
    for load in (fx.load_robot, fx.load_urdf, fx.load_drive):
        for path in (tmp_path / "pipe.toml", "/dev/zero"):
            with pytest.raises(ValueError, match="device or a pipe"):
                load(path)


def test_small_numbers_that_become_large(tmp_path):
    """Bytes become numbers of eight bytes, and every column an object."""
    for shape in ((2**25 + 2**24,), (2, 20_000)):
        np.savez_compressed(tmp_path / "x.npz", time=np.zeros(shape, "i1"))
        with pytest.raises(fx.FileError, match=r"x\.npz.*(columns|declares)"):
            read_columns(tmp_path / "x.npz")


def test_fields_of_a_struct_count(tmp_path):
    names = b"".join(b"f%06d\0" % k for k in range(4000))
    body = struct.pack("<2Ii4x", 5, 4, 8) + struct.pack("<2I", 1, len(names)) + names
    (tmp_path / "x.mat").write_bytes(mat5(matrix(2, (1, 20_000), body)))
    with pytest.raises(fx.FileError, match="fields in"):
        read_columns(tmp_path / "x.mat")


def test_chunks_and_shared_texts_of_netcdf_count(tmp_path):
    with h5py.File(tmp_path / "chunk.nc", "w") as file:
        options = {"chunks": (2**28,), "maxshape": (None,), "compression": "gzip"}
        file.create_dataset("time", (10,), "f8", **options).make_scale("time")
    with pytest.raises(fx.FileError, match="a chunk of"):
        read_columns(tmp_path / "chunk.nc")


@pytest.mark.parametrize("name", ["DIMENSION_LIST", "REFERENCE_LIST"])
@pytest.mark.parametrize("value", [["a", "b", "c", "d"], 1.0, np.zeros(0)])
def test_lists_of_dimensions_have_their_type(tmp_path, name, value):
    """HDF5 read texts in their place into a buffer for one reference: the process was aborted."""
    with h5py.File(tmp_path / "x.nc", "w") as file:
        scale = file.create_dataset("time", data=T)
        scale.make_scale("time")
        file.create_dataset("gauge", data=T).dims[0].attach_scale(scale)
        owner = file["gauge" if name == "DIMENSION_LIST" else "time"]
        del owner.attrs[name]
        owner.attrs[name] = value
    with pytest.raises(fx.FileError, match=f"{name}.*expected references to dimensions"):
        read_columns(tmp_path / "x.nc")


def test_sweeps_read_no_other_file_and_run_no_code(tmp_path):
    """A store of zarr may name pickle as a codec, and a chunk may be a link."""
    import shutil

    import zarr

    shutil.copytree(healthy("sweep"), tmp_path / "store")
    chunk = next(p for p in (tmp_path / "store" / "tip").rglob("*") if p.name == "0")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    chunk = chunk if chunk.is_file() else next(p for p in chunk.rglob("*") if p.is_file())
    chunk.unlink()
    chunk.symlink_to(secret)
    with pytest.raises(fx.FileError, match="link or a device"):
        open_store(tmp_path / "store", KEY, 6)
    group = zarr.open_group(str(tmp_path / "pickled"), mode="w", zarr_format=2)
    from numcodecs import Pickle

    group.create_array("status", shape=(6,), dtype="i4", filters=[Pickle()], compressors=None)
    with pytest.raises(fx.FileError, match="codec 'pickle'"):
        open_store(tmp_path / "pickled", KEY, 6)


def test_a_damaged_array_of_a_sweep_names_the_store(tmp_path):
    """Also one that only the list of all arrays opens."""
    import json
    import shutil

    shutil.copytree(healthy("sweep"), tmp_path / "store")
    path = tmp_path / "store" / "tip" / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"links": 1}))
    with pytest.raises(fx.FileError, match="store .*links"):
        open_store(tmp_path / "store", KEY, 6)


@pytest.mark.parametrize(
    "node",
    [
        {"class": "flexjax.__main__:Robot", "fields": {}},
        {"class": "flexjax.cli._main:Args", "fields": {}},
        {"class": "flexjax.simulate._run:Trajectory", "fields": {}},
        {"array": -1},
        {"array": True},
    ],
)
def test_trees_build_known_classes_only(node):
    with pytest.raises(ValueError, match="no class of flexjax|expected one of"):
        restore(node, [T])
