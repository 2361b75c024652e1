"""The registry: public name -> dotted name of the class. A new formulation joins with one line."""

import difflib
import importlib

from flexjax.robot import Robot

REGISTRY = {
    "RigidArm": "flexjax.formulation.rigid_arm.RigidArm",
    "ScrewSynthesis": "flexjax.formulation.screw_synthesis.ScrewSynthesis",
    "FiniteElement": "flexjax.formulation.finite_element.FiniteElement",
    "MovingBeam": "flexjax.formulation.moving_beam.MovingBeam",
    "TransferMatrix": "flexjax.formulation.transfer_matrix.TransferMatrix",
    "PortHamiltonian": "flexjax.formulation.port_hamiltonian.PortHamiltonian",
}


def formulation(name: str):
    """The formulation class of that name."""
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, REGISTRY, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"formulation: {name!r} is unknown; expected one of {', '.join(REGISTRY)}.{hint}"
        )
    module, _, attribute = REGISTRY[name].rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def formulations_for(robot: Robot) -> tuple[dict, dict]:
    """Every registered formulation with its default options: (name -> formulation that can hold the robot, name -> refusals of the others)."""
    holding, refusing = {}, {}
    for name in REGISTRY:
        candidate = formulation(name)()
        refusals = candidate.refusals(robot)
        if refusals:
            refusing[name] = refusals
        else:
            holding[name] = candidate
    return holding, refusing
