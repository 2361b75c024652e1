"""Bristles of dry friction: a deflection that is stored beside the state and advanced once a step.

The law is Dahl's (with damping: LuGre's), z' = x' - |x'| z / limit, whose force is the bristles'
stiffness times z. It depends on the path alone, so for a step that starts at (z0, x0) it has the
exact solution z(x), which solvers evaluate at any point of the step.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.drive import Drive
from flexjax.mechanism.joints._hardware import PLACES, DryFriction, JointHardware
from flexjax.robot import Robot

KEY = "joints.bristles"  # no joint has a dot in its name
Sides = tuple[Float[Array, " D"], Float[Array, " D"]]  # link side, motor side


class Bristles(eqx.Module):
    """Deflections (D,) of the bristles at the start of a step, by place, and coordinates there.

    ``fresh`` is one until the first step: the coordinates are not known yet.
    """

    deflection: dict[str, Float[Array, " D"]]
    coordinate: dict[str, Float[Array, " D"]]
    fresh: Float[Array, ""]


def initial_memory(drive: Drive, robot: Robot) -> dict[str, Any]:
    """Memory of a run: of sampled controllers, and of bristles if a joint has them."""
    memory: dict[str, Any] = dict(drive.initial_memory(robot))
    fields = dict(zip(PLACES, ("friction", "output_friction", "spring_friction"), strict=True))
    none = jnp.zeros(robot.dofs, robot.gravity.dtype)
    found = {}
    for place, field in fields.items():
        frictions = [f for j in robot.tree_joints if (f := getattr(j, field)) is not None]
        if any(f.bristle is not None for f in frictions):
            found[place] = none
    if found:
        memory[KEY] = Bristles(found, dict(found), jnp.ones((), none.dtype))
    return memory


def place_of(place: str, sides: Sides) -> Float[Array, " D"]:
    """Coordinates, or rates, along which the friction of a place acts."""
    return {"motor": sides[1], "output": sides[0], "across": sides[0] - sides[1]}[place]


def deflection(
    friction: DryFriction, place: str, memory: Any, x: Sides, rate: Float[Array, " D"]
) -> Float[Array, " D"]:
    """Deflection (D,) of the bristles at coordinates ``x`` inside a step."""
    own = memory.get(KEY) if isinstance(memory, Mapping) else None
    if own is None:
        return jnp.zeros_like(rate)
    way = jnp.where(own.fresh > 0, 0.0, place_of(place, x) - own.coordinate[place])
    return friction.relaxed(own.deflection[place], way, rate)


def friction_torque(
    friction: DryFriction, place: str, memory: Any, x: Sides, xd: Sides
) -> Float[Array, " D"]:
    """Friction (D,) that opposes the rates ``xd``."""
    rate = place_of(place, xd)
    if friction.bristle is None:
        return friction.torque(rate)
    return friction.torque(rate, deflection(friction, place, memory, x, rate))


def advanced_bristles(
    hardware: JointHardware, memory: Mapping[str, Any], x: Sides, xd: Sides
) -> dict[str, Any]:
    """The memory with the bristles as they are at ``x``, where the next step starts."""
    if KEY not in memory:
        return dict(memory)
    now, there = {}, {}
    for place in memory[KEY].deflection:
        friction = getattr(hardware, place)
        now[place] = deflection(friction, place, memory, x, place_of(place, xd))
        there[place] = place_of(place, x)
    return {**memory, KEY: Bristles(now, there, jnp.zeros_like(memory[KEY].fresh))}


def bristle_energy(
    hardware: JointHardware, memory: Any, x: Sides, xd: Sides
) -> Float[Array, ""] | float:
    """Energy that the bristles store."""
    if not isinstance(memory, Mapping) or KEY not in memory:
        return 0.0
    parts = []
    for place in memory[KEY].deflection:
        friction = getattr(hardware, place)
        z = deflection(friction, place, memory, x, place_of(place, xd))
        parts.append(0.5 * jnp.sum(friction.bristle * z**2))
    return jnp.sum(jnp.stack(parts))
