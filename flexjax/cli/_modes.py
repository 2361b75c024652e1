"""Compute natural frequencies, damping ratios and mode shapes at a configuration of the robot.

Examples:

  flexjax modes two-link
  flexjax modes two-link --at elbow=1.2 --lock none --save modes.png
"""

import dataclasses
from typing import Literal

from flexjax.cli import _check, _common


@dataclasses.dataclass
class Args:
    """Natural frequencies of a robot."""

    robot: _common.RobotName
    """path of a robot file, or name of an example"""
    formulation: str = ""
    """name:options, e.g. FiniteElement:elements=8; by default the first that supports the robot"""
    n: int = 6
    """number of modes"""
    lock: Literal["motors", "none"] = "motors"
    """lock every motor, or leave all joints free"""
    at: tuple[str, ...] = ()
    """joint coordinates, e.g. elbow=1.2; the other joints are at home"""
    save: str = ""
    """path of a figure of the mode shapes (.png .pdf .svg)"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    if args.save:
        _check.check_paths((args.save,), _check.FIGURES)
    if args.n < 1:
        raise ValueError(f"n: {args.n}; expected at least 1 mode.")
    at = _check.read_coordinates(args.at, _check.check_robot(args.robot))
    _check.check_supported(args.robot, args.formulation)
    _common.start_jax(0)
    from flexjax.drive import Drive
    from flexjax.robot import load_robot
    from flexjax.simulate import modes

    robot = load_robot(args.robot)
    drive = Drive() if args.lock == "none" else None
    name, formulation = _common.make_formulation(args.formulation, robot, drive)
    _common.log(f"{robot.name} in {name}: tracing, compiling, then computing modes")
    with _common.report_phases():
        model = formulation.bind(robot)
        found = modes(model, at=at or None, lock=args.lock, n=args.n)
    lines = [f"{robot.name} in {name}", str(found)]
    if args.save:
        from flexjax.viz import plot

        plot(found, model=model).savefig(args.save)
        lines.append(f"wrote {args.save}")
    data = {
        "robot": robot.name,
        "formulation": name,
        "frequencies": found.frequencies.tolist(),
        "damping": found.damping.tolist(),
    }
    return "\n".join(lines), data, 0
