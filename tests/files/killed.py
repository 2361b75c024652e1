"""kill -9 at random moments of every save: ``python -m tests.files.killed FOLDER --kills 10``.

A child of this process saves a file again and again; this one kills it and reads the file. Prints
as JSON, by file: the kills, the saves that were completed, and the kills that left remains behind.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
import zarr
from PIL import Image

import flexjax as fx
from flexjax._files import read_whole
from tests.files.test_every_save import SAVES

ALONE = ("arm.fmu",)  # traces programs, which a child of a process with jax cannot


def _ends(path: Path, text: bytes) -> None:
    assert path.read_bytes().rstrip(b"\n").endswith(text.rstrip(b"\n"))


def _table(path: Path) -> None:
    rows = path.read_text().split("\n")
    assert not rows[-1] and len({row.count(",") for row in rows[:-1]}) == 1


def _picture(path: Path) -> None:
    with Image.open(path) as image:
        image.load()


def _glb(path: Path) -> None:
    content = path.read_bytes()
    assert int.from_bytes(content[8:12], "little") == len(content)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None and file.namelist()


def _sweep(path: Path) -> None:
    group = zarr.open_group(str(path), mode="r")
    assert group.attrs["format"] and np.all(group["design"][:] == 1.0)


def _netcdf(path: Path) -> None:
    with h5py.File(path) as file:
        assert len(file)
    fx.load_trajectory(path)


# What reads a file of each kind completely.
READ: dict[str, Callable[[Path], Any]] = {
    "run.nc": _netcdf,
    "run.zarr": fx.load_trajectory,
    "run.csv": _table,
    "run.mat": scipy.io.loadmat,
    "arm.toml": fx.load_robot,
    "arm.urdf": fx.load_urdf,
    "run.glb": _glb,
    "view.html": lambda path: _ends(path, b"</html>"),
    "film.gif": _picture,
    "report.html": lambda path: _ends(path, b"</html>"),
    "plot.png": _picture,
    "fit.npz": _zip,
    "move.npz": _zip,
    "move.csv": _table,
    "system.mat": scipy.io.loadmat,
    "sweep.zarr": _sweep,
}


def killed(name: str, folder: Path, kills: int, seed: int = 0) -> dict[str, int]:
    """Kill a process that saves this file, and read the file after each time."""
    save, path = SAVES[name], folder / name
    save(path)  # imports what it needs
    begun = time.perf_counter()
    save(path)
    lasts, found = time.perf_counter() - begun, {"kills": 0, "saves": 0, "remains": 0}
    rng = random.Random(f"{name} {seed}")
    for _ in range(kills if lasts < 1 else 3):  # a film takes seconds
        inside, outside = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                while True:
                    save(path)
                    os.write(outside, b".")
            os._exit(1)
        os.close(outside)
        time.sleep(rng.uniform(0.0, 2.5 * lasts))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{name}: the save raised"
        found["saves"] += len(os.read(inside, 1 << 16))
        os.close(inside)
        found["kills"] += 1
        found["remains"] += len(list(folder.iterdir())) > 1
        read_whole(path, READ[name])
    save(path)
    assert [p.name for p in folder.iterdir()] == [name], "what a killed save left is removed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--names", nargs="*", default=[x for x in SAVES if x not in ALONE])
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
    counts = {}
    for name in args.names:
        (args.folder / name).mkdir(parents=True)
        counts[name] = killed(name, args.folder / name, args.kills)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
