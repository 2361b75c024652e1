"""Reads the document of a robot file. Imports no jax: the command line looks for names in it."""

import difflib
import os
from pathlib import Path

from flexjax._files import FileError, parse_toml, read_bounded
from flexjax.robot._examples import example_path, examples
from flexjax.robot.parts._fault import RobotError


def read_robot(robot: str | os.PathLike[str]) -> dict:
    """The document of a robot file, or of an example by its name; its content is not checked."""
    return parse_robot(*read_text(robot))


def read_text(robot: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a robot file, or of an example by its name, and how an error names it."""
    path, where = example_path(robot) or Path(robot), f"robot file {str(robot)!r}"
    try:
        return read_bounded(path, where).decode("utf-8"), where
    except OSError as error:
        near = difflib.get_close_matches(str(robot), examples(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        listed = f"{hint}the examples are: {', '.join(examples())}"
        raise RobotError(where, [f"cannot be read ({error.strerror}); {listed}"]) from None
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
        raise RobotError(where, [f"is not UTF-8 text ({reason})"]) from None
    except FileError as error:
        raise RobotError(where, [str(error).removeprefix(f"{where}: ")]) from None


def parse_robot(text: str, where: str) -> dict:
    """The document of a TOML text."""
    try:
        return parse_toml(text)
    except ValueError as error:  # TOMLDecodeError, or an integer with thousands of digits
        raise RobotError(where, [f"is not valid TOML: {error}"]) from None
