"""Robots as plain objects, for rules about names, types and absent fields. Imports no jax."""

import os
from types import SimpleNamespace
from typing import Any

from flexjax.robot.files._file import complete
from flexjax.robot.files._read import read_robot
from flexjax.robot.parts._choices import MATERIALS
from flexjax.robot.parts._facts import JointFacts, LinkFacts, RobotFacts
from flexjax.robot.parts._part import parts, values_of


class Plain(SimpleNamespace):
    """A description object; its parameters are Python numbers and lists."""


class PlainLink(LinkFacts, Plain):
    pass


class PlainJoint(JointFacts, Plain):
    pass


class PlainRobot(RobotFacts, Plain):
    pass


FACTS = {"Link": PlainLink, "Joint": PlainJoint, "Robot": PlainRobot}


def describe_file(robot: str | os.PathLike[str]) -> PlainRobot:
    """The robot of a file or an example, without jax. All faults of the file are one error."""
    return _plain("Robot", complete(read_robot(robot), f"robot file {str(robot)!r}"))


def _plain(cls: str, document: Any) -> Any:
    if cls == "Material" and isinstance(document, str):
        document = MATERIALS[document]
    absent = {part.name: () if part.many else part.default for part in parts(cls)}
    return FACTS.get(cls, Plain)(**absent | values_of(cls, document, _plain))
