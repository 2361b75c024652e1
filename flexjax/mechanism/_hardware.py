"""Springs, dampers, friction and end stops of the joints: parameters, forces, energy, slopes."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.mechanism._joints import or_zero, rotor_and_gear
from flexjax.robot import Robot


class JointHardware(eqx.Module):
    """Parameters (D,) in robot order, zero where a joint has none.

    ``coulomb``, ``v_eps`` and ``stops`` are None if no joint has any, which saves code. Friction
    acts on the motor's side of a joint spring, end stops on the link's side.
    """

    stiffness: Float[Array, " D"]  # spring of a flexible joint
    damping: Float[Array, " D"]  # along the spring of a flexible joint, otherwise at the joint
    rotor: Float[Array, " D"]
    gear: Float[Array, " D"]
    coulomb: Float[Array, " D"] | None
    v_eps: Float[Array, " D"] | None
    stops: Float[Array, "D 4"] | None  # lower, upper, stiffness, damping

    def friction(self, rate: Float[Array, " D"]) -> Float[Array, " D"]:
        """Friction torque that opposes a motor-side ``rate``."""
        if self.coulomb is None or self.v_eps is None:
            return jnp.zeros_like(rate)
        return self.coulomb * jnp.tanh(rate / self.v_eps)

    def friction_slope(self, rate: Float[Array, " D"]) -> Float[Array, " D"]:
        """Derivative of the friction torque with respect to the rate."""
        if self.coulomb is None or self.v_eps is None:
            return jnp.zeros_like(rate)
        return self.coulomb / self.v_eps * (1 - jnp.tanh(rate / self.v_eps) ** 2)

    def stop_force(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Elastic force of the end stops on link-side coordinates."""
        if self.stops is None:
            return jnp.zeros_like(x)
        return -self.stops[:, 2] * _beyond(self.stops, x)

    def stop_slopes(self, x: Float[Array, " D"]) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Stiffness and damping of the end stops that are in contact at ``x``."""
        if self.stops is None:
            return jnp.zeros_like(x), jnp.zeros_like(x)
        touching = _beyond(self.stops, x) != 0
        stiffness, damping = self.stops[:, 2], self.stops[:, 3]
        return jnp.where(touching, stiffness, 0.0), jnp.where(touching, damping, 0.0)

    def stop_energy(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Energy in the end stops, per coordinate."""
        if self.stops is None:
            return jnp.zeros_like(x)
        return 0.5 * self.stops[:, 2] * _beyond(self.stops, x) ** 2


def _beyond(stops: Float[Array, "D 4"], x: Float[Array, " D"]) -> Float[Array, " D"]:
    """How far coordinates are beyond their end stops; zero between them."""
    lower, upper, stiffness, _ = stops.T
    beyond = jnp.minimum(x - lower, 0.0) + jnp.maximum(x - upper, 0.0)
    return jnp.where(stiffness > 0, beyond, 0.0)


def joint_hardware(robot: Robot) -> JointHardware:
    """The hardware of all tree joints; pure and traceable in the robot's leaves."""
    like, joints = robot.gravity, robot.tree_joints

    def per_dof(value, width=()):
        rows = [x for joint in joints for x in [value(joint)] * joint.dofs]
        return jnp.stack(rows) if rows else jnp.zeros((0, *width), like.dtype)

    def stops(joint):
        s = joint.stops
        if s is None:
            return jnp.array([-jnp.inf, jnp.inf, 0.0, 0.0], like.dtype)
        return jnp.stack([s.lower, s.upper, s.stiffness, s.damping])

    friction = any(j.friction is not None for j in joints)
    stopped = any(j.stops is not None for j in joints)
    one = jnp.ones((), like.dtype)
    coulomb = lambda j: or_zero(j.friction and j.friction.coulomb, like)
    v_eps = lambda j: one if j.friction is None else j.friction.v_eps
    return JointHardware(
        stiffness=per_dof(lambda j: or_zero(j.stiffness, like)),
        damping=per_dof(lambda j: or_zero(j.damping, like)),
        rotor=per_dof(lambda j: rotor_and_gear(j, like)[0]),
        gear=per_dof(lambda j: rotor_and_gear(j, like)[1]),
        coulomb=per_dof(coulomb) if friction else None,
        v_eps=per_dof(v_eps) if friction else None,
        stops=per_dof(stops, (4,)) if stopped else None,
    )
