"""A robot in tables: its parts, masses, stiffness, first frequencies of each link, and which formulations can hold it. Examples:

flexjax describe two-link
flexjax describe two-link --paths
"""

import dataclasses

from flexjax.cli import _common


@dataclasses.dataclass
class Args:
    """Describe a robot."""

    robot: _common.RobotName
    """a robot file, or the name of an example"""
    paths: bool = False
    """list the names of all its numbers, for robot.replace and for the command line"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    _common.start()
    from flexjax.formulation import formulations_for
    from flexjax.robot import describe, load_robot, paths

    robot = load_robot(args.robot)
    about = describe(robot)
    holding, refused = formulations_for(robot)
    lines = [
        str(robot),
        "",
        str(about),
        "",
        f"formulations that can hold it: {', '.join(holding) or 'none'}",
    ]
    lines += [f"  {name} cannot: {'; '.join(why)}" for name, why in refused.items()]
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
        "formulations": list(holding),
        "refused": refused,
        "paths": names,
    }
    return "\n".join(lines), data, 0
