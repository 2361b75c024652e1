"""The arm at rest with its motors held: shape, holding efforts and energy in one call."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._html import bars, block
from flexjax._types import is_traced
from flexjax.drive import Drive, Motion
from flexjax.drive.signal import constant, stack
from flexjax.formulation import AbstractModel, Start
from flexjax.mechanism import Energy
from flexjax.numerics.term import State
from flexjax.simulate._start import read_start, starting_state
from flexjax.simulate.analysis._equilibrium import equilibrium


class Rest(eqx.Module):
    """Result of :func:`rest`.

    ``q`` and ``motor`` (D,) are the coordinates of the joints and of their motors, ``effort`` (D,)
    holds them [N m or N]. ``deflection`` (L, 3) is that of every link's tip, and ``tip`` (3,) is
    the position of the arm's tip [m]. ``drive`` holds the motors, e.g. to continue a run from
    ``state``.
    """

    state: State
    drive: Drive
    q: Float[Array, " D"]
    motor: Float[Array, " D"]
    effort: Float[Array, " D"]
    energy: Energy
    deflection: Float[Array, "L 3"]
    tip: Float[Array, "3"]

    def __str__(self) -> str:
        if is_traced(self.q) or self.q.ndim != 1:
            return "Rest(traced, or a batch)"
        listed = lambda x: ", ".join(f"{v:.6g}" for v in np.ravel(np.asarray(x)))
        return "\n".join(
            [
                f"at rest: joints {listed(self.q)} (motors {listed(self.motor)}) rad or m",
                f"held by {listed(self.effort)} N m or N",
                f"tip at ({listed(self.tip)}) m; elastic energy {float(self.energy.elastic):.4g} J",
                *(
                    f"deflection of link {k + 1} at its tip ({listed(d)}) m"
                    for k, d in enumerate(np.asarray(self.deflection))
                ),
            ]
        )

    def _repr_html_(self) -> str:
        if is_traced(self.q) or self.q.ndim != 1:
            return block(str(self))
        efforts = {str(k + 1): float(x) for k, x in enumerate(np.asarray(self.effort))}
        return block(str(self), bars(efforts, "holding effort of coordinate [N m or N]"))


def rest(model: AbstractModel, at: Start | dict | None = None) -> Rest:
    """The state in which the arm rests while its motors hold given coordinates.

    Gravity bends the links; a flexible joint gives way behind its motor.

    Arguments:
        model: a robot in a formulation.
        at: coordinates by name of the joint, or a :class:`Start`; other joints are at home. The
            motor of a flexible joint is held there.

    Returns:
        :class:`Rest` with ``state``, ``effort``, ``energy``, ``tip`` and ``drive``. It is
        differentiable in the robot's parameters and in the coordinates.

    Raises:
        ValueError: the goal does not fit the robot.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> fx.rest(model, {"shoulder": 0.4}).effort.shape
    (3,)
    """
    drive = held_motors(model, at)
    return rest_of(model, drive, at, undeformed(model, drive))


def rest_of(model: AbstractModel, drive: Drive, at: Start | dict | None, undeformed: bool) -> Rest:
    """As :func:`rest`, with the motors held by ``drive``; nothing is searched if it is known that
    the arm rests undeformed."""
    if undeformed:
        state = starting_state(model, drive, at)
    else:
        state = equilibrium(model, drive, at)
    return Rest(state, drive, *_observed(model, drive, state))


def undeformed(model: AbstractModel, drive: Drive) -> bool:
    """Whether it is known that nothing bends the arm: no weight, and every joint held."""
    robot = model.robot
    if is_traced(robot.gravity) or np.any(np.asarray(robot.gravity)):
        return False
    tree = len(robot.tree_joints) == len(robot.joints)
    return tree and bool(np.all(drive.prescribed(robot)))


def held_motors(model: AbstractModel, at: Start | dict | None) -> Drive:
    """A drive that holds every motor where ``at`` has it."""
    start = read_start(at, model, Drive(), None)
    if isinstance(start, State):
        raise ValueError("at: a State; expected joint coordinates, as fx.Start or a dict.")
    q, _, motor = start.vectors(model.robot)
    slices = model.robot.dof_slices()
    held = {}
    for j in model.robot.tree_joints:
        if j.dofs and j.type not in ("spherical", "free"):
            value = (motor if j.flexible else q)[slices[j.name]]
            held[j.name] = Motion(
                constant(value[0]) if j.dofs == 1 else stack([constant(x) for x in value])
            )
    return Drive(joints=held)


@filter_jit
def _observed(model: AbstractModel, drive: Drive, state: State):
    t = jnp.zeros((), model.robot.gravity.dtype)
    names = frozenset({"q", "motor", "effort", "energy", "deflection", "positions"})
    found = model.outputs(t, state, drive, jnp.ones(1, t.dtype), None, names)
    joints = found["q"], found["motor"], found["effort"]
    return *joints, found["energy"], found["deflection"][:, 0], found["positions"][-1, 0]
