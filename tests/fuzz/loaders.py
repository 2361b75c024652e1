"""Fuzzes everything that reads a file: ``python -m tests.fuzz.loaders --cases 2000``.

Each case is a healthy file with random damage, or a document with random entries. It ends as "read"
or as "refused": a ValueError that names the file. Any other exception, a file of somebody else that
is opened, a pickle, or too much memory or time is a failure. Prints counts by kind of file.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

import flexjax as fx
from flexjax._files import reading
from flexjax.io import load_run
from flexjax.mechanism import Energy
from flexjax.robot._examples import example_path
from flexjax.simulate.trajectory import ENERGIES, FIELDS, PARTS, Statistics, Trajectory
from flexjax.study.identify.fit._fit import resume
from flexjax.study.identify.records._read import read_columns
from flexjax.study.optimise._guess import _read as _read_move
from flexjax.study.sweep._store import EXPECTED, REMEDY, create_store, open_store
from tests._report import commit
from tests.fuzz.documents import VALUES, changed, damaged, toml

SECONDS, MEGABYTES, LETTERS = 10.0, 1500, 100_000
FOREIGN = "not-to-be-read"  # no loader may open a file of this name
T = np.linspace(0.0, 1.0, 40)
KEY = {"design": "6 runs"}
URDF = """<?xml version="1.0"?><robot name="arm"><link name="base"/>
<link name="a"><inertial><origin xyz="0.2 0 0" rpy="0 0 0"/><mass value="1.0"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<origin xyz="0 0 0.1" rpy="0 0 0.5"/><limit effort="3"/><dynamics damping="0.1"/></joint></robot>
"""
MJCF = """<mujoco model="arm"><compiler angle="degree"/><default><joint damping="0.3"/></default>
<worldbody><body name="upper" pos="0 0 0.3" euler="10 20 30"><joint name="j" axis="0 1 0"/>
<inertial pos="0 0.01 0.2" mass="2" diaginertia="0.03 0.04 0.02"/>
<body name="fore" pos="0 0.1 0.4"><joint name="k" type="slide" axis="1 0 0"/>
<geom type="capsule" fromto="0 0 0.02 0.1 0 0.3" size="0.02"/></body></body></worldbody></mujoco>
"""
XML = {"arm.urdf": URDF, "arm.xml": MJCF}
DRIVE = """
joints.shoulder.motion.quintic = { start = 0.0, end = 1.0, duration = 2.0 }
joints.elbow.pd = { kp = 4.0, kd = 1.0, reference = { ramp = { value = 0.5, duration = 1.0 } } }
joints.wrist.effort.spline = { times = [0.0, 0.5, 1.0], values = [0.0, 1.0, 0.0] }
loads = [{ link = "fore", wrench = { constant = { value = [0.0, -2.0, 0.0, 0.0, 0.0, 0.0] } } }]
start.joints.shoulder = 0.5
start.links.upper = { y = [0.0, 0.1], s = [0.5, 1.0] }
"""


# ---- healthy files ------------------------------------------------------------------------------


def trajectory(robot: fx.Robot | None = None) -> Trajectory:
    """A trajectory of zeros of an arm with two joints, which nothing had to be compiled for."""
    robot = fx.load_robot("two-link") if robot is None else robot
    sizes = {"time": 3, "dof": 2, "link": len(robot.links), "joint": len(robot.joints)}
    sizes |= {"station": 2} | {name: len(parts) for name, parts in PARTS.items()}
    zero = lambda dims: np.zeros([sizes[d] for d in dims])
    return Trajectory(
        ts=np.arange(3.0),
        **{name: zero(dims) for name, (dims, _, _) in FIELDS.items()},
        energy=Energy(**dict.fromkeys(ENERGIES, np.zeros(3))),
        status=np.asarray(0),
        t_fail=np.asarray(np.inf),
        where=np.asarray(-1),
        stats=Statistics(np.asarray(2), np.asarray(1.0), "Newmark", "RigidArm"),
        final=None,  # pyright: ignore[reportArgumentType]
        stations=np.asarray([0.0, 1.0]),
        robot=robot,
    )


@cache
def healthy(kind: str) -> Path:
    """A healthy file of each kind, in a folder of this process."""
    path = _folder() / f"healthy-{kind}"
    if kind in ("trajectory.nc", "trajectory.zarr"):
        return fx.save_trajectory(trajectory(), path)
    if kind == "sweep":
        store = create_store(path, KEY, (2, 2), np.arange(6), np.ones((6, 1)), ["x"])
        rows = {"tip": np.ones((2, 3)), "status": np.zeros(2, "i4")}
        store.declare(rows, lambda name, count: ("axis",) * count)
        for k in range(3):
            store.write(k, rows)
    elif kind == "checkpoint.npz":
        np.savez(path, z=T, loss=1.0, history=T, names=np.array(["a"]), start=T)
    elif kind == "move.npz":
        np.savez(path, names=np.array(["a"]), values=np.array([1.0]), duration=2.0)
    elif kind == "record.npz":
        np.savez_compressed(path, time=T, gauge=np.sin(T))
    elif kind == "record.mat":
        content = {"time": T, "gauge": np.sin(T), "units": {"gauge": "1"}, "cell": [T, "x"]}
        scipy.io.savemat(path, content, do_compression=True)
    elif kind == "plain.mat":
        scipy.io.savemat(path, {"time": T, "gauge": np.sin(T), "units": {"gauge": "1"}})
    elif kind == "record.nc":
        with h5py.File(path, "w") as file:
            scale = file.create_dataset("time", data=T)
            scale.make_scale("time")
            file.create_dataset("gauge", data=np.sin(T)).dims[0].attach_scale(scale)
    elif kind == "record.csv":
        rows = "".join(f"{t:.3f},{np.sin(t):.3f}\n" for t in T[:8])
        path.write_text("time [s],gauge [mm]\n" + rows)
    else:
        text = {"robot.toml": _robot(), "drive.toml": DRIVE}.get(kind) or XML[kind]
        path.write_text(text)
    return path


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="flexjax-fuzz-"))


def _robot() -> str:
    found = example_path("two-link")
    assert found is not None
    return found.read_text()


# ---- damage -------------------------------------------------------------------------------------


@st.composite
def bad_file(draw, kind: str, path: Path) -> None:
    """Write a damaged file of that kind at ``path``."""
    source = healthy(kind)
    if source.is_dir():
        _damage_store(draw, source, path)
    elif kind.endswith(".nc"):
        # Bytes are only cut off: the C library itself crashes on some changes.
        content = source.read_bytes()
        if draw(st.integers(0, 3)) == 0:
            path.write_bytes(content[: draw(st.integers(0, len(content)))])
        else:
            path.write_bytes(content)
            _damage_hdf5(draw, path)
    elif kind.endswith(".toml") and draw(st.integers(0, 3)):
        path.write_text(toml(draw(changed(tomllib.loads(source.read_text())))), "utf-8")
    elif kind in XML and draw(st.integers(0, 3)):
        words = re.split(r'(?<=")([^"<>]*)(?=")', source.read_text())
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(words) - 1))
            words[at] = str(draw(VALUES))[:6000]
        path.write_text("".join(words), "utf-8", "replace")
    else:
        path.write_bytes(draw(damaged(source.read_bytes())))


def _damage_store(draw: Callable, source: Path, path: Path) -> None:
    shutil.copytree(source, path)
    files = sorted(p for p in path.rglob("*") if p.is_file())
    for file in draw(st.lists(st.sampled_from(files), min_size=1, max_size=2, unique=True)):
        how = draw(st.sampled_from(["bytes", "document", "document", "remove", "link"]))
        if how == "document" and file.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup"):
            with contextlib.suppress(RecursionError):
                file.write_text(json.dumps(draw(changed(json.loads(file.read_text())))))
        elif how == "remove":
            file.unlink()
        elif how == "link":
            file.unlink()
            file.symlink_to(_folder() / FOREIGN)
        else:
            file.write_bytes(draw(damaged(file.read_bytes())))


def _damage_hdf5(draw: Callable, path: Path) -> None:
    with h5py.File(path, "a") as file:
        names = sorted(file)
        for _ in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(names))
            how = draw(st.sampled_from(["remove", "attribute", "attribute", "values", "link"]))
            linked = isinstance(file.get(name, getlink=True, default=None), h5py.ExternalLink)
            own = draw(st.booleans()) and name in file and not linked
            owner = file[name] if own else file
            if how == "attribute":
                key = draw(st.sampled_from([*owner.attrs, "units", "_FillValue", "DIMENSION_LIST"]))
                with contextlib.suppress(Exception):  # h5py cannot write every value
                    owner.attrs[key] = draw(VALUES)
                continue
            if linked or name in file:
                del file[name]
            if how == "link":
                file[name] = h5py.ExternalLink(str(_folder() / FOREIGN), "/x")
            elif how == "values":
                with contextlib.suppress(Exception):
                    file[name] = draw(
                        st.sampled_from([0, [], "x", [1, 2], np.zeros((3, 2)), ["a", "b"], 1j])
                    )


# ---- loaders and outcomes -----------------------------------------------------------------------

LOADERS: dict[str, Callable[[Path], Any]] = {
    "robot.toml": fx.load_robot,
    "arm.urdf": fx.load_urdf,
    "arm.xml": fx.load_mjcf,
    "drive.toml": load_run,
    "record.csv": lambda path: fx.Experiment.read(path),
    "record.npz": read_columns,
    "record.mat": read_columns,
    "plain.mat": read_columns,
    "record.nc": read_columns,
    "checkpoint.npz": lambda path: resume(path, _Problem),
    "move.npz": _read_move,
    "trajectory.nc": fx.load_trajectory,
    "trajectory.zarr": fx.load_trajectory,
    "sweep": lambda path: _read_sweep(path),
}


class _Problem:
    class parameters:
        names, start = ("a",), T


def _read_sweep(path: Path) -> Any:
    store = open_store(path, KEY, 6)
    if store is None:
        return None
    with reading(store.where, EXPECTED, REMEDY):
        return store.missing(), {name: x[:] for name, x in store.arrays().items()}


class Failure(AssertionError):
    """A case that broke the rules."""


_events: list[str] = []


@cache
def _watch() -> None:
    """Note every opening of the foreign file and every pickle; cannot be removed again."""

    def hook(event: str, arguments: tuple) -> None:
        if event in ("pickle.find_class", "os.system", "subprocess.Popen"):
            _events.append(f"{event} {arguments!r}"[:200])
        elif event == "open" and FOREIGN in str(arguments[0]):
            _events.append(f"open {arguments[0]!r}")

    sys.addaudithook(hook)


@cache
def _warm(kind: str) -> None:
    """Import what the loader imports; a library may unpickle constants of its own meanwhile."""
    LOADERS[kind](healthy(kind))


def outcome(kind: str, path: Path) -> str:
    """ "read" or "refused" for a file; Failure for everything else."""
    _warm(kind)
    _watch()
    _events.clear()
    began, before = time.process_time(), _peak()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd values, e.g. an overflow in a unit, may warn
            LOADERS[kind](path)
        result = "read"
    except (ValueError, FileNotFoundError) as error:
        text = str(error)
        if str(path) not in text and path.stem not in text:
            raise Failure(f"{kind}: the message does not name the file: {text[:500]}") from error
        if len(text) > LETTERS:
            raise Failure(f"{kind}: a message of {len(text)} characters") from error
        result = "refused"
    except Exception as error:
        raise Failure(
            f"{kind}: {type(error).__name__}\n{traceback.format_exc()[-1500:]}"
        ) from error
    if _events:
        raise Failure(f"{kind}: {_events[0]}")
    if time.process_time() - began > SECONDS:
        raise Failure(f"{kind}: took {time.process_time() - began:.1f} s")
    if _peak() - before > MEGABYTES:
        raise Failure(f"{kind}: took {_peak() - before:.0f} MB")
    return result


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def fuzz(kind: str, cases: int, number: int = 0) -> collections.Counter:
    """Counts of the outcomes of random files of one kind; raises the first Failure, shrunk."""
    counts: collections.Counter = collections.Counter()
    (_folder() / FOREIGN).write_bytes(b"secret" * 100)

    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data):
        with tempfile.TemporaryDirectory(dir=_folder()) as folder:
            path = Path(folder) / f"case-{kind}"
            data.draw(bad_file(kind, path))
            counts[outcome(kind, path)] += 1

    run()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(LOADERS))
    parser.add_argument("--page", action="store_true", help="put the counts into validation.md")
    args = parser.parse_args()
    failures, rows = 0, []
    print(f"{'file':16} {'cases':>6} {'read':>6} {'refused':>8} {'CPU s':>7}")
    for kind in args.kinds:
        began = time.process_time()
        try:
            counts = fuzz(kind, -(-args.cases // len(args.kinds)), args.seed)
        except Failure as error:
            failures += 1
            print(f"{kind:16} FAILED {error}")
            continue
        seconds = time.process_time() - began
        rows.append([kind, counts.total(), counts["read"], counts["refused"]])
        print(
            f"{kind:16} {counts.total():6d} {counts['read']:6d} {counts['refused']:8d} "
            f"{seconds:7.1f}",
            flush=True,
        )
    print(f"commit {commit()}: {failures} kinds with a failure; peak memory {_peak():.0f} MB")
    if args.page:
        from tests.validation.__main__ import keep

        keep("loaders", {"commit": commit(), "failures": failures, "rows": rows})
    shutil.rmtree(_folder(), ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
