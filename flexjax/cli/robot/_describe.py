"""Print a robot's links, joints, masses, natural frequencies and supported formulations.

Examples:

  flexjax describe two-link
  flexjax describe two-link --paths
"""

import dataclasses

from flexjax.cli import _common
from flexjax.robot.files._read import read_robot


@dataclasses.dataclass
class Args:
    """Describe a robot."""

    robot: _common.RobotName
    """path of a robot file, or name of an example"""
    paths: bool = False
    """list the paths of all parameters, for robot.replace and flexjax identify --free"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    read_robot(args.robot)
    _common.start_jax(0)
    from flexjax.formulation import formulations_for
    from flexjax.mechanism import describe
    from flexjax.robot import load_robot, paths

    robot = load_robot(args.robot)
    about = describe(robot)
    supported, refused = formulations_for(robot)
    lines = [
        str(robot),
        "",
        str(about),
        "",
        f"supported by: {', '.join(supported) or 'no formulation'}",
    ]
    lines += [f"  not by {name}: {'; '.join(why)}" for name, why in refused.items()]
    names = [str(path) for path in paths(robot)]
    if args.paths:
        lines += ["", *names]
    data = {
        "robot": robot.name,
        "mass": about.mass,
        "reach": about.reach,
        "links": [
            {
                "name": link.name,
                "length": link.length,
                "mass": link.mass,
                "frequencies_y": link.frequencies_y.tolist(),
            }
            for link in about.links
        ],
        "formulations": list(supported),
        "refused": refused,
        "paths": names,
    }
    return "\n".join(lines), data, 0
