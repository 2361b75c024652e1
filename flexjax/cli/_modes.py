"""Natural frequencies and damping ratios about the robot's home. Examples:

flexjax modes two-link
flexjax modes two-link --at elbow=1.2 --lock none --save modes.png
"""

import dataclasses
from typing import Literal

from flexjax.cli import _common


@dataclasses.dataclass
class Args:
    """Natural frequencies of a robot."""

    robot: _common.RobotName
    """a robot file, or the name of an example"""
    formulation: str = ""
    """name, and options after a colon, e.g. FiniteElement:elements=8; default: the first that can hold the robot"""
    n: int = 6
    """how many"""
    lock: Literal["motors", "none"] = "motors"
    """hold every motor, or leave all joints free"""
    at: tuple[str, ...] = ()
    """joint coordinates, e.g. elbow=1.2; others at home"""
    save: str = ""
    """a figure of the mode shapes to write (.png .pdf .svg)"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    if args.save:
        _common.check_paths((args.save,), _common.FIGURES)
    if args.n < 1:
        raise ValueError(f"n: {args.n}; expected at least 1 mode.")
    _common.start()
    from flexjax.robot import load_robot
    from flexjax.simulate import modes

    robot = load_robot(args.robot)
    name, formulation = _common.make_formulation(args.formulation, robot)
    at = {}
    for text in args.at:
        joint, _, value = text.partition("=")
        try:
            at[joint] = float(value)
        except ValueError:
            raise ValueError(f"at: {text!r}; expected <joint>=<number>, e.g. elbow=1.2.") from None
    model = formulation.bind(robot)
    found = modes(model, at or None, lock=args.lock, n=args.n)
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
