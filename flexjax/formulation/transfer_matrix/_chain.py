"""The arm as one chain of bodies and connections: static layout, and the numbers of the
connections."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix._link import Bodies, link_bodies
from flexjax.mechanism import JointHardware, chain_order, joint_hardware
from flexjax.robot import Robot


@dataclasses.dataclass(frozen=True)
class Span:
    """Where a link stands in the chain."""

    link: int
    joint: int  # index among robot.joints
    dof: int  # of that joint in q, or -1
    motor: int  # index among the motors of flexible joints, or -1
    first: int  # body that the joint leads to
    start: int  # first segment (behind the hub body, if any)
    count: int  # segments; 1 for a rigid link
    rigid: bool


@dataclasses.dataclass(frozen=True)
class Layout:
    """Bodies from root to tip; connection i stands before body i. q of the model: angles of the
    bodies against the world, then motor angles."""

    spans: tuple[Span, ...]  # from root to tip
    n: int
    dofs: int
    half: bool

    @property
    def motors(self) -> tuple[Span, ...]:
        return tuple(sorted((s for s in self.spans if s.motor >= 0), key=lambda s: s.motor))

    @property
    def joints(self) -> tuple[Span, ...]:
        """Spans with a joint coordinate, root to tip."""
        return tuple(s for s in self.spans if s.dof >= 0)

    @property
    def inside(self) -> np.ndarray:
        """(n,) connections inside links."""
        mask = np.ones(self.n, bool)
        mask[[s.first for s in self.spans]] = False
        return mask

    def compliant(self) -> np.ndarray:
        """(n,) connections with the compliance of at least one half segment in them."""
        soft_in, soft_out = np.zeros(self.n, bool), np.zeros(self.n, bool)
        for s in self.spans:
            if not s.rigid:
                soft_in[s.start : s.start + s.count] = soft_out[s.start : s.start + s.count] = True
        mask = soft_in | np.concatenate([[False], soft_out[:-1]])
        if not self.half:
            mask &= np.array(
                [self.inside[i] and soft_in[i] and i > 0 and soft_out[i - 1] for i in range(self.n)]
            )
        return mask


def chain_layout(robot: Robot, segments: tuple[int, ...], half: bool, hubs: bool = True) -> Layout:
    """``hubs``: a hub next to a half spring is a body of its own."""
    slices = robot.dof_slices()
    flexible = [j.name for j in robot.tree_joints if j.flexible]
    spans, n = [], 0
    for i in chain_order(robot):
        joint = robot.joints[i]
        index = robot.link_index(joint.child)
        rigid = not robot.links[index].elastic
        hub = 1 if joint.hub is not None and not rigid and half and hubs else 0
        count = 1 if rigid else segments[index]
        dof = slices[joint.name].start if joint.dofs else -1
        motor = flexible.index(joint.name) if joint.flexible else -1
        spans.append(Span(index, i, dof, motor, n, n + hub, count, rigid))
        n += hub + count
    return Layout(tuple(spans), n, robot.dofs, half)


class Connections(eqx.Module):
    """Numbers of the connections (n,). ``spring`` and ``damper`` hold all compliances in series
    (half segments and joint spring); ``joint_share`` is the part of the whole rotation that the
    joint spring takes, ``give`` the compliance of the half segments alone, ``lag`` that times the
    time in which they bend beside a joint that is free to turn."""

    spring: Float[Array, " n"]
    damper: Float[Array, " n"]
    rest: Float[Array, " n"]
    give: Float[Array, " n"]
    lag: Float[Array, " n"]
    joint_share: Float[Array, " n"]


class Chain(eqx.Module):
    """Everything the equations need, from the robot's numbers."""

    bodies: Bodies
    connections: Connections
    joints: JointHardware
    reach: Float[
        Array, "n 2"
        # From the inboard point of a body to that of the next: the lever and the offset of a joint
        # behind it.
    ]
    offset: Float[Array, "2"]  # of the first joint from the ground frame
    gravity: Float[Array, "2"]


def build_chain(robot: Robot, layout: Layout, rotary: bool) -> Chain:
    """Pure and traceable in the robot's leaves."""
    dtype = robot.gravity.dtype
    parts = [
        link_bodies(robot, robot.joints[s.joint], s.count, rotary, s.start > s.first)
        for s in layout.spans
    ]
    bodies = Bodies(
        *(jnp.concatenate([getattr(p, k) for p in parts]) for k in Bodies.__annotations__)
    )
    joints = joint_hardware(robot)
    inside = layout.inside
    keep = jnp.asarray(inside if not layout.half else np.ones(layout.n, bool), dtype)

    def before(x):
        return jnp.concatenate([jnp.zeros(1, dtype), x[:-1]])

    give = keep * (before(bodies.bend_out) + bodies.bend_in)
    slow = keep * (before(bodies.slow_out) + bodies.slow_in)
    lag = keep * (before(bodies.lag_out) + bodies.lag_in)
    rest = before(bodies.turn_out) + bodies.turn_in
    joint_give = jnp.zeros(layout.n, dtype)
    joint_slow = jnp.zeros(layout.n, dtype)
    reach = bodies.lever
    offset = jnp.zeros(2, dtype)
    for s in layout.spans:
        joint = robot.joints[s.joint]
        if joint.rotation is not None:
            rest = rest.at[s.first].add(joint.rotation[2])
        if joint.offset is not None:
            if s.first == 0:
                offset = joint.offset[:2]
            else:
                # In the axes of the tip section; carried by the last segment, whose axes differ
                # from those by half a spring's rotation.
                turn = bodies.turn_out[s.first - 1]
                c, sn = jnp.cos(turn), jnp.sin(turn)
                x, y = joint.offset[0], joint.offset[1]
                reach = reach.at[s.first - 1].add(jnp.stack([c * x - sn * y, sn * x + c * y]))
        if joint.stiffness is not None:
            joint_give = joint_give.at[s.first].set(1 / joint.stiffness)
            if joint.damping is not None:
                joint_slow = joint_slow.at[s.first].set(joint.damping / joint.stiffness**2)
    total = give + joint_give
    # Double where: a connection without any compliance is rigid and must not make an infinity, nor
    # a NaN gradient.
    soft = jnp.asarray(
        layout.compliant()
        | np.isin(np.arange(layout.n), [s.first for s in layout.spans if s.motor >= 0])
    )
    safe = jnp.where(soft, total, 1.0)
    spring = jnp.where(soft, 1 / safe, 0.0)
    damper = spring**2 * (slow + joint_slow)
    share = jnp.where(soft, joint_give / safe, 0.0)
    return Chain(
        bodies,
        Connections(spring, damper, rest, give, lag, share),
        joints,
        reach,
        offset,
        robot.gravity[:2],
    )
