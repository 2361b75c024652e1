"""Reads and writes robot files in TOML. All faults of a file are reported before compilation."""

import os
from pathlib import Path

from flexjax._files import write_whole
from flexjax.robot._robot import Robot
from flexjax.robot.files._file import complete
from flexjax.robot.files._read import parse_robot, read_robot
from flexjax.robot.files._toml import document_to_toml
from flexjax.robot.parts._document import from_document, to_document


def load_robot(robot: str | os.PathLike[str]) -> Robot:
    """Load a robot from a TOML file, or an example robot by its name.

    All faults of the file are reported together, in one :class:`RobotError`.

    Arguments:
        robot: path of a robot file, or name of an example (:func:`examples` lists them).

    Returns:
        The robot.

    Raises:
        RobotError: the file cannot be read or has faults, which are listed together.

    >>> import flexjax as fx
    >>> fx.load_robot("metal-link").links[0].name
    'link'
    """
    return robot_from_dict(read_robot(robot), where=f"robot file {str(robot)!r}")


def robot_from_toml(text: str, *, where: str = "robot") -> Robot:
    """The robot of a TOML text."""
    return robot_from_dict(parse_robot(text, where), where=where)


def robot_from_dict(document: dict, *, where: str = "robot") -> Robot:
    """The robot of a document: the tree of a robot file as dicts, lists, numbers and texts."""
    return from_document(Robot, complete(document, where))


def robot_to_toml(robot: Robot) -> str:
    """The TOML text of a robot; reading it gives the same robot, bit for bit."""
    document = to_document(robot)
    return document_to_toml(
        {"schema": 1, "name": document.pop("name"), "planar": robot.planar, **document}
    )


def save_robot(robot: Robot, path: str | os.PathLike[str]) -> Path:
    """Write a robot file; :func:`load_robot` reads the same robot, bit for bit.

    The write is atomic: after a failure the old file, if any, is unchanged.

    Arguments:
        robot: the robot; its parameters must not be traced.
        path: path of the file.

    Returns:
        The path.

    Raises:
        RobotError: a parameter is outside its range or not finite.
        TypeError: a parameter is traced, i.e. the call is inside jit, vmap or grad.

    >>> import flexjax as fx
    >>> fx.save_robot(fx.load_robot("two-link"), "arm.toml").name
    'arm.toml'
    """
    content = robot_to_toml(robot).encode("utf-8")
    return write_whole(path, lambda part: part.write_bytes(content))
