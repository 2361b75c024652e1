"""Print the JSON schema of robot files, for editors and other programs.

Example:

  flexjax schema > robot.schema.json
"""

import dataclasses
import json as json_


@dataclasses.dataclass
class Args:
    """Print the JSON schema of robot files."""

    json: bool = False
    """no effect: the schema is JSON"""


def run(args: Args):
    from flexjax.robot import robot_schema

    schema = robot_schema()
    return json_.dumps(schema, indent=1), schema, 0
