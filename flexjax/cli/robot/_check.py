"""Report every fault of robot files, each with its line.

Exit code: 0 if the files are valid, 1 if any has a fault.

Examples:

  flexjax check two-link
  flexjax check arm.toml --json
"""

import dataclasses
from typing import Annotated, Any

from tyro import conf

from flexjax._files import parse_toml
from flexjax.robot._examples import example_path
from flexjax.robot.parts._fault import RobotError


@dataclasses.dataclass
class Args:
    """Report every fault of robot files."""

    robots: conf.Positional[Annotated[tuple[str, ...], conf.arg(metavar="ROBOT")]]
    """paths of robot files, or names of examples"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    if not args.robots:
        raise ValueError("robots: none; expected at least one file, e.g. flexjax check arm.toml.")
    found = {robot: faults_with_lines(robot) for robot in args.robots}
    lines = []
    for robot, faults in found.items():
        count = "no fault" if not faults else f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        lines.append(f"{robot}: {count}")
        name = example_path(robot) or robot
        lines += [f"{name}:{fault['line']}: {fault['text']}" for fault in faults]
    data = [{"robot": robot, "faults": faults} for robot, faults in found.items()]
    return "\n".join(lines), {"files": data}, int(any(found.values()))


def faults_with_lines(robot: str) -> list[dict[str, Any]]:
    """Line, path and text of every fault of a robot file, in the order of the lines."""
    from flexjax.robot.files._file import file_faults
    from flexjax.robot.files._lines import labelled_lines, line_in_message, line_of
    from flexjax.robot.files._read import read_text

    try:
        text, _ = read_text(robot)
    except RobotError as error:
        return [{"line": 1, "path": "", "text": fault} for fault in error.faults]
    try:
        document = parse_toml(text)
    except ValueError as error:
        return [{"line": line_in_message(error), "path": "", "text": f"is not valid TOML: {error}"}]
    lines = labelled_lines(text, document)
    faults = [
        {"line": line_of(path, lines), "path": path, "text": fault}
        for (path, _), fault in file_faults(document).lines.items()
    ]
    return sorted(faults, key=lambda fault: fault["line"])
