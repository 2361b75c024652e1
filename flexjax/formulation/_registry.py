"""Formulations by name, and those that support a robot."""

import importlib

from flexjax._registry import (
    REGISTRY as REGISTRY,
    check_formulation_name,
    refused_by_all as refused_by_all,
)
from flexjax.drive import Drive
from flexjax.robot import Robot


def formulation(name: str):
    """The formulation class of that name."""
    check_formulation_name(name)
    module, _, attribute = REGISTRY[name].rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def formulations_for(robot: Robot, drive: Drive | None = None) -> tuple[dict, dict]:
    """Every registered formulation with its default options: (name -> formulation that supports
    the robot, and the drive if given; name -> refusals of the others)."""
    supporting, refusing = {}, {}
    for name in REGISTRY:
        candidate = formulation(name)()
        refusals = candidate.refusals(robot)
        if drive is not None and not refusals:
            refusals = candidate.drive_refusals(robot, drive)
        if refusals:
            refusing[name] = refusals
        else:
            supporting[name] = candidate
    return supporting, refusing
