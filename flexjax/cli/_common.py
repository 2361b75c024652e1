"""What the commands share: precision, robots, drives, formulations, saving. Imports of jax are inside the functions."""

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexjax.drive import Drive
    from flexjax.formulation import AbstractFormulation
    from flexjax.robot import Robot


def start() -> None:
    """Double precision: flexible links are stiff."""
    import jax

    jax.config.update("jax_enable_x64", True)


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout holds the result only."""
    print(text, file=sys.stderr, flush=True)


def make_drive(drive: str, motion: tuple[str, ...], robot: "Robot") -> "Drive":
    """The drive of a file, with motions of the command line added."""
    from flexjax.drive import Drive, Motion
    from flexjax.io import load_drive, parse_motion

    made = load_drive(drive) if drive else Drive()
    extra = {joint: Motion(signal) for joint, signal in map(parse_motion, motion)}
    made = Drive(joints={**made.joints, **extra}, loads=made.loads, base=made.base)
    made.check(robot)
    return made


def make_formulation(text: str, robot: "Robot") -> tuple[str, "AbstractFormulation"]:
    """``FiniteElement:elements=8`` as name and formulation; an empty text picks the first flexible one that can hold the robot."""
    from flexjax.formulation import REGISTRY, formulation, formulations_for

    if not text:
        holding, refused = formulations_for(robot)
        if not holding:
            raise ValueError(
                f"robot {robot.name!r}: no formulation can hold it:\n"
                + "\n".join(f"  - {k}: {'; '.join(v)}" for k, v in refused.items())
            )
        elastic = any(not link.rigid for link in robot.links)
        name = next((n for n in holding if n != "RigidArm" or not elastic), "RigidArm")
        return name, holding[name]
    name, _, rest = text.partition(":")
    match = {n.lower(): n for n in REGISTRY}.get(name.lower().replace("-", "").replace("_", ""), name)
    cls = formulation(match)
    options = {}
    for item in filter(None, rest.split(";" if ";" in rest else ",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"formulation: {text!r}; expected options as name=value, e.g. {match}:elements=8.")
        try:
            options[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            options[key.strip()] = value.strip()
    try:
        return match, cls(**options)
    except TypeError as error:
        raise ValueError(f"formulation: {text!r}: {error}".replace("__init__()", match)) from None


def output_times(end: float, outputs: int):
    import jax.numpy as jnp

    if not (end > 0 and outputs >= 2):
        raise ValueError(f"end: {end}, outputs: {outputs}; expected a positive end in seconds and at least 2 outputs.")
    return jnp.linspace(0.0, end, outputs)


def save(traj: Any, paths: tuple[str, ...]) -> list[str]:
    """Write a trajectory to every path, by its suffix."""
    from flexjax.io import save_trajectory, to_csv, to_mat
    from flexjax.viz import animate, plot

    written = []
    for path in map(Path, paths):
        suffix = path.suffix.lower()
        if suffix in (".html", ".gif", ".mp4"):
            animate(traj, path)
        elif suffix in (".png", ".pdf", ".svg"):
            what = path.stem if path.stem in ("tip", "deflection", "strain", "spectrum", "energy") else "joints"
            plot(traj, what).savefig(path)
        else:
            {".csv": to_csv, ".mat": to_mat}.get(suffix, save_trajectory)(traj, path)
        written.append(str(path))
    return written


def check_paths(paths: tuple[str, ...]) -> None:
    """Before a long run: are these names that can be written?"""
    known = (".nc", ".zarr", ".csv", ".mat", ".html", ".gif", ".mp4", ".png", ".pdf", ".svg")
    for path in map(Path, paths):
        if path.suffix.lower() not in known:
            raise ValueError(f"save: {str(path)!r}; expected a name that ends in one of {' '.join(known)}.")
        if not path.parent.is_dir():
            raise ValueError(f"save: {str(path)!r}; the folder {str(path.parent)!r} does not exist. Make it first.")
