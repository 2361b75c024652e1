"""Checks of a robot, all faults at once."""


class RobotError(ValueError):
    """A robot that cannot be: every fault on its own line, with path, value, what was expected and how to mend it."""


def check_robot(robot) -> None:
    """Raise one :class:`RobotError` that lists every fault of ``robot``."""
