"""Helpers of the commands: precision, drives, formulations, output files.

jax is imported inside the functions, so that ``--help`` is fast.
"""

import ast
import dataclasses
import difflib
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

if TYPE_CHECKING:
    from flexjax.drive import Drive
    from flexjax.formulation import AbstractFormulation
    from flexjax.mechanism import Start
    from flexjax.robot import Robot


RobotName = conf.Positional[Annotated[str, conf.arg(metavar="ROBOT")]]


def enable_float64() -> None:
    """Switch jax to double precision, which stiff flexible links need."""
    import jax

    jax.config.update("jax_enable_x64", True)


def log(text: str) -> None:
    """Print progress to stderr; stdout is for the result."""
    print(text, file=sys.stderr, flush=True)


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
    from flexjax.drive import Drive, Motion
    from flexjax.io import load_run, parse_motion

    made, start = load_run(drive) if drive else (Drive(), None)
    extra = {joint: Motion(signal) for joint, signal in map(parse_motion, motion)}
    made = Drive(joints={**made.joints, **extra}, loads=made.loads, base=made.base)
    made.check(robot)
    if start is not None:
        start.check(robot)
    return made, start


def make_formulation(
    text: str, robot: "Robot", drive: "Drive | None" = None
) -> tuple[str, "AbstractFormulation"]:
    """Name and formulation of a text such as ``FiniteElement:elements=8``.

    An empty text selects the first formulation with elastic links that supports the robot, and the
    drive if given.
    """
    from flexjax.formulation import REGISTRY, formulation, formulations_for, refused_by_all

    if not text:
        supported, refused = formulations_for(robot, drive)
        if not supported:
            raise refused_by_all(robot, refused)
        elastic = any(link.elastic for link in robot.links)
        name = next(
            (n for n in supported if supported[n].deforms == elastic), next(iter(supported))
        )
        return name, supported[name]
    name, _, rest = text.partition(":")
    match = {n.lower(): n for n in REGISTRY}.get(
        name.lower().replace("-", "").replace("_", ""), name
    )
    cls = formulation(match)
    options = {}
    for item in filter(None, rest.split(";" if ";" in rest else ",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(
                f"formulation: {text!r}; expected options as NAME=VALUE, e.g. {match}:elements=8."
            )
        options[key.strip()] = _option(text, match, cls, key.strip(), value.strip())
    return match, cls(**options)


def _option(text: str, name: str, cls: type, key: str, value: str) -> Any:
    """The value of one option, converted to the type of its default."""
    defaults = {f.name: f.default for f in dataclasses.fields(cls)}
    if key not in defaults:
        near = difflib.get_close_matches(key, defaults, 1)
        listed = f"expected one of {', '.join(defaults)}." if defaults else "it has no options."
        hint = f"did you mean {near[0]!r}?" if near else listed
        raise ValueError(f"formulation: {text!r}; {name} has no option {key!r}; {hint}")
    try:
        found = ast.literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
    except (ValueError, SyntaxError):
        found = value
    if isinstance(defaults[key], int | float) and isinstance(found, str):
        raise ValueError(
            f"formulation: {text!r}; {key} = {value!r}, "
            f"expected a value such as {defaults[key]} (the default)."
        )
    return found


def output_times(end: float, outputs: int, dt: float):
    """Evenly spaced output times; invalid arguments are reported before compilation."""
    import jax.numpy as jnp

    if not (end > 0 and math.isfinite(end)):
        raise ValueError(f"end: {end}; expected a positive time in seconds, e.g. --end 0.5.")
    if outputs < 2:
        raise ValueError(f"outputs: {outputs}; expected at least 2, the start and the end.")
    if not (dt > 0 and math.isfinite(dt)):
        raise ValueError(f"dt: {dt}; expected a positive step in seconds, e.g. --dt 1e-3.")
    return jnp.linspace(0.0, end, outputs)


def save(traj: Any, paths: tuple[str, ...]) -> list[str]:
    """Write a trajectory to every path; the suffix selects the format."""
    from flexjax.io import save_trajectory, to_csv, to_mat
    from flexjax.viz import animate, plot

    written = []
    for path in map(Path, paths):
        suffix = path.suffix.lower()
        if suffix in (".html", ".gif", ".mp4"):
            animate(traj, path)
        elif suffix in (".png", ".pdf", ".svg"):
            named = path.stem in ("tip", "deflection", "strain", "spectrum", "energy")
            plot(traj, path.stem if named else "joints").savefig(path)
        else:
            {".csv": to_csv, ".mat": to_mat}.get(suffix, save_trajectory)(traj, path)
        written.append(str(path))
    return written


FIGURES = (".png", ".pdf", ".svg")
FILMS = (".gif", ".mp4")
RUNS = (".nc", ".zarr", ".csv", ".mat", ".html", *FILMS, *FIGURES)


def check_paths(paths: tuple[str, ...], known: tuple[str, ...] = RUNS, field: str = "save") -> None:
    """Check output paths before a long run: known suffix, existing folder."""
    for path in map(Path, paths):
        if path.suffix.lower() not in known:
            suffixes = ("one of " if len(known) > 1 else "") + " ".join(known)
            raise ValueError(f"{field}: {str(path)!r}; expected a name that ends in {suffixes}.")
        if not path.parent.is_dir():
            folder = f"the folder {str(path.parent)!r} does not exist"
            raise ValueError(f"{field}: {str(path)!r}; {folder}. Create it first.")
