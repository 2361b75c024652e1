"""Helpers of the commands: precision, drives, formulations, output files; checks in `_check.py`.

jax is imported inside the functions, so that ``--help`` is fast.
"""

import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

from flexjax.cli import _check

if TYPE_CHECKING:
    from flexjax.drive import Drive
    from flexjax.formulation import AbstractFormulation
    from flexjax.mechanism import Start
    from flexjax.robot import Robot


RobotName = conf.Positional[Annotated[str, conf.arg(metavar="ROBOT")]]


# Steps of a command's simulations below which optimised programs do not pay: their compilation
# takes seconds more, and the run saves less than a millisecond per step.
FEW_STEPS = 10_000


def start_jax(steps: float = math.inf) -> None:
    """Import jax with double precision, one thread per program, and compiled programs on disk.

    ``steps``: about how many the command will simulate; for few, programs are compiled quickly. A
    program that calls ``main`` and has imported jax itself keeps its own settings but precision.
    """
    if "jax" not in sys.modules:
        from flexjax._configure import configure

        threads = None if "PJRT_NPROC" in os.environ else 1
        configure(threads=threads, quick=steps <= FEW_STEPS)
    import jax

    jax.config.update("jax_enable_x64", True)


def log(text: str) -> None:
    """Print progress to stderr; stdout is for the result."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def report_phases() -> Iterator[None]:
    """Print when a long compilation begins, with an estimate of its time."""
    from flexjax._phases import phases

    def show(phase: str) -> None:
        if phase.startswith("compiling"):
            log(f"  {phase}")

    with phases(show, least=1.0):
        yield


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Print each warning once, as a line on stderr, and collect them for a report."""
    kept: list[str] = []
    before = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if not issubclass(category, UserWarning):
            before(message, category, filename, lineno, file, line)
        elif str(message) not in kept:
            kept.append(str(message))
            log(f"warning: {message}")

    warnings.showwarning = show
    try:
        yield kept
    finally:
        warnings.showwarning = before


def make_drive(drive: str, motion: tuple[str, ...], robot: "Robot") -> "tuple[Drive, Start | None]":
    """The drive of a file, with motions of the command line added, and the file's start."""
    from flexjax.drive import Drive, Motion, signal
    from flexjax.io import load_run

    made, start = load_run(drive) if drive else (Drive(), None)
    extra = {
        joint: Motion(getattr(signal, name)(*numbers))
        for joint, name, numbers in map(_check.read_motion, motion)
    }
    made = Drive(joints={**made.joints, **extra}, loads=made.loads, base=made.base)
    made.check(robot)
    if start is not None:
        start.check(robot)
    return made, start


def make_formulation(
    text: str, robot: "Robot", drive: "Drive | None" = None, prefer: str = ""
) -> tuple[str, "AbstractFormulation"]:
    """Name and formulation of a text such as ``FiniteElement:elements=8``.

    An empty text selects the first formulation with elastic links that supports the robot, and the
    drive if given; ``prefer`` comes before the others.
    """
    from flexjax.formulation import formulation, formulations_for, refused_by_all

    if not text:
        supported, refused = formulations_for(robot, drive)
        if not supported:
            raise refused_by_all(robot.name, refused)
        elastic = any(link.elastic for link in robot.links)
        names = sorted(supported, key=lambda n: n != prefer)
        name = next((n for n in names if supported[n].deforms == elastic), names[0])
        return name, supported[name]
    name, options = _check.read_formulation(text)
    return name, formulation(name)(**options)


def save(traj: Any, paths: tuple[str, ...], drive: "Drive | None" = None) -> list[str]:
    """Write a trajectory to every path; the suffix selects the format. Pages show the loads."""
    from flexjax.io import save_trajectory, to_csv, to_mat
    from flexjax.viz import animate, plot

    written = []
    for path in map(Path, paths):
        suffix = path.suffix.lower()
        if suffix in (".html", ".gif", ".mp4"):
            animate(traj, path, drive=drive)
        elif suffix in (".png", ".pdf", ".svg"):
            named = path.stem in _check.RUN_FIGURES and path.stem != "difference"
            plot(traj, path.stem if named else "joints").savefig(path)
        else:
            {".csv": to_csv, ".mat": to_mat}.get(suffix, save_trajectory)(traj, path)
        written.append(str(path))
    return written
