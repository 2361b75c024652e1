"""Checks a robot and reports all faults at once.

The checks read the plain document of the robot (:mod:`flexjax.robot.parts._document`). So a file
with other faults is checked as far as it can be read, and traced parameters are skipped.
"""

from typing import Any

from flexjax.robot.check._joint import check_joint
from flexjax.robot.check._link import check_link
from flexjax.robot.check._parameters import check_gravity, check_parameters
from flexjax.robot.check._sensor import check_payload, check_sensor
from flexjax.robot.check._tree import check_names, check_planar, check_tree
from flexjax.robot.parts._fault import Faults, RobotError as RobotError, items

LISTS = {"links": "Link", "joints": "Joint", "payloads": "Payload", "sensors": "Sensor"}


def check_robot(robot: Any) -> None:
    """Raise one :class:`RobotError` that lists every fault of ``robot``; skip traced parameters."""
    _faults_of(robot).raise_as(f"robot {robot.name!r}")


def robot_faults(robot: Any) -> list[str]:
    """Every fault of ``robot``, one line each; traced parameters are skipped."""
    return list(_faults_of(robot).lines.values())


def _faults_of(robot: Any) -> Faults:
    from flexjax.robot.parts._document import to_document  # imports jax

    return document_faults(to_document(robot))


def document_faults(document: dict) -> Faults:
    """Every fault of a robot document; ``structure_faults`` reports unknown and missing keys."""
    faults = Faults()
    check_gravity(faults, document)
    for key, cls in LISTS.items():
        for path, item in items(document, key):
            check_parameters(faults, path, cls, item, item.get("type") if cls == "Joint" else None)
    for path, link in items(document, "links"):
        check_link(faults, path, link)
    for path, joint in items(document, "joints"):
        check_joint(faults, path, joint, document)
    for path, payload in items(document, "payloads"):
        check_payload(faults, path, payload, document)
    for path, sensor in items(document, "sensors"):
        check_sensor(faults, path, sensor, document)
    check_names(faults, document)
    check_tree(faults, document)
    if document.get("planar") is True:
        check_planar(faults, document)
    return faults
