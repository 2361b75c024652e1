"""Static structure of a chain: where links and joints are, and what a drive makes of them."""

import dataclasses
from functools import cached_property, lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.drive import PD, Drive, Voltage
from flexjax.mechanism import chain_order
from flexjax.robot import Robot


@dataclasses.dataclass(frozen=True)
class Span:
    """A link and the joint before it in the chain."""

    link: int
    joint: int  # index among robot.joints
    axes: int  # degrees of freedom of the joint
    dof: int  # first of them in q, or -1
    motor: int  # index among the motors of flexible joints, or -1
    first: int  # body behind the joint
    start: int  # first segment (behind the body of the hub, if there is one)
    count: int  # segments; 1 for a rigid link
    rigid: bool
    rotor: bool
    stops: bool
    resists: bool  # damper or friction act at the joint itself

    @property
    def segments(self) -> slice:
        return slice(self.start, self.start + self.count)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Bodies from root to tip; connection i is before body i."""

    spans: tuple[Span, ...]  # from root to tip
    n: int
    dofs: int
    half: bool  # half segments at the ends of links are springs
    planar: bool

    @cached_property
    def motors(self) -> int:
        """Number of flexible joints."""
        return sum(s.motor >= 0 for s in self.spans)

    @cached_property
    def joints(self) -> tuple[Span, ...]:
        """Spans with a joint coordinate, root to tip."""
        return tuple(s for s in self.spans if s.dof >= 0)

    @cached_property
    def compliant(self) -> np.ndarray:
        """(n,) connections with the compliance of at least one half segment."""
        elastic, inside = np.zeros(self.n, bool), np.ones(self.n, bool)
        for s in self.spans:
            elastic[s.segments] = not s.rigid
            inside[s.first] = False
        before = np.concatenate([[False], elastic[:-1]])
        return elastic | before if self.half else elastic & before & inside


def chain_layout(robot: Robot, segments: tuple[int, ...], half: bool) -> Layout:
    slices = robot.dof_slices()
    flexible = [j.name for j in robot.tree_joints if j.flexible]
    spans, n = [], 0
    for i in chain_order(robot):
        joint = robot.joints[i]
        index = robot.link_index(joint.child)
        rigid = not robot.links[index].elastic
        # In the plane a hub beside a half spring is a body of its own.
        hub = 1 if joint.hub is not None and not rigid and half and robot.planar else 0
        count = 1 if rigid else segments[index]
        spans.append(
            Span(
                link=index,
                joint=i,
                axes=joint.dofs,
                dof=slices[joint.name].start if joint.dofs else -1,
                motor=flexible.index(joint.name) if joint.flexible else -1,
                first=n,
                start=n + hub,
                count=count,
                rigid=rigid,
                rotor=joint.motor is not None and joint.motor.rotor is not None,
                stops=joint.stops is not None,
                # The damper of a flexible joint lies beside its spring.
                resists=joint.friction is not None
                or (joint.damping is not None and not joint.flexible),
            )
        )
        n += hub + count
    return Layout(tuple(spans), n, robot.dofs, half, robot.planar)


class JointAxes:
    """Static: where the joint coordinates (D, robot order) act, and which of them a Motion holds.

    ``controlled``: coordinates whose effort depends on the joint itself: of PD controllers, motors
    at a voltage and motors with ripple.
    """

    def __init__(self, layout: Layout, given: np.ndarray, controlled: np.ndarray):
        D, width = layout.dofs, 1 if layout.planar else 2
        self.given, self.controlled = given, controlled
        self.n, self.first, self.column = layout.n, np.zeros(D, int), np.zeros(D, int)
        self.motor = np.full(D, -1)
        self.rotor, self.stops, resists = np.zeros((3, D), bool)
        for s in layout.joints:
            own = slice(s.dof, s.dof + s.axes)
            self.first[own], self.column[own] = s.first, np.arange(s.axes)
            self.motor[own], self.rotor[own], self.stops[own] = s.motor, s.rotor, s.stops
            resists[own] = s.resists
        self.flexible = self.motor >= 0
        self.free_axes = np.zeros((layout.n, width), bool)  # axes about which connections rotate
        self.free_axes[self.first, self.column] = ~given
        self.free_joints = [s for s in layout.joints if not given[s.dof]]
        self.slot = np.full((layout.n, width), D)
        self.slot[self.first, self.column] = np.arange(D)
        # Coordinates whose torque depends on the rate: the deflection beside them is a state.
        self.series = (resists | controlled) & ~given

    def to_connections(self, per_dof: Float[Array, "*k D"]) -> Float[Array, "*k n 2"]:
        """Zero where a connection has no axis."""
        pad = jnp.zeros((*per_dof.shape[:-1], 1), per_dof.dtype)
        return jnp.concatenate([per_dof, pad], axis=-1)[..., self.slot]

    def from_connections(self, per_axis: Float[Array, "n 2"]) -> Float[Array, " D"]:
        return per_axis[self.first, self.column]


class ConnectionMasks(JointAxes):
    """Static: what each connection of a planar chain is under one drive."""

    def __init__(self, layout: Layout, given: np.ndarray, controlled: np.ndarray):
        super().__init__(layout, given, controlled)
        flexible, first = self.flexible, self.first
        self.given_motor, self.given_joint = given & flexible, given & ~flexible
        self.driven_motor = ~given & flexible & self.rotor
        self.idle_motor = ~given & flexible & ~self.rotor  # no inertia: it stays with its joint
        self.free = (~given & ~flexible) | self.idle_motor
        self.springs = layout.compliant.copy()  # (n,) the spring of the connection acts
        self.springs[first[flexible]] = True
        self.springs[first[self.free]] = False
        self.rigid = ~layout.compliant  # (n,) the drive prescribes the rotation
        self.rigid[first[flexible | self.free]] = False
        self.series = self.series & self.free & layout.compliant[first]
        self.dof_of_motor = np.argsort(np.where(flexible, self.motor, given.size))
        self.dof_of_motor = self.dof_of_motor[: flexible.sum()]

    def to_connections(
        self, per_dof: Float[Array, "*k D"], where: np.ndarray | None = None
    ) -> Float[Array, "*k n"]:
        """Zero where a connection has no joint, or the static mask ``where`` is false."""
        # A gather from a padded vector: scatters are slow to compile and to run.
        index = np.full(self.n, per_dof.shape[-1])
        pick = np.arange(per_dof.shape[-1]) if where is None else np.flatnonzero(where)
        index[self.first[pick]] = pick
        pad = jnp.zeros((*per_dof.shape[:-1], 1), per_dof.dtype)
        return jnp.concatenate([per_dof, pad], axis=-1)[..., index]

    def from_connections(self, per_connection: Float[Array, " n"]) -> Float[Array, " D"]:
        return per_connection[self.first]

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """For rigidly held bodies: index (0 is the ground) of the leading body, and the matrix that
        sums the rotations since."""
        leader, inside = np.arange(1, self.n + 1), np.zeros((self.n, self.n))
        for i in np.flatnonzero(self.rigid):
            leader[i] = 0 if i == 0 else leader[i - 1]
            if i > 0 and self.rigid[i - 1]:
                inside[i] = inside[i - 1]
            inside[i, i] = 1.0
        return leader, inside


@lru_cache(maxsize=256)
def _tables(layout: Layout, given: bytes, controlled: bytes) -> JointAxes:
    make = ConnectionMasks if layout.planar else JointAxes
    return make(layout, *(np.frombuffer(x, bool) for x in (given, controlled)))


def joint_tables(robot: Robot, layout: Layout, drive: Drive | None) -> JointAxes:
    """The static tables of a chain under a drive, built once; None: every joint is free."""
    given, controlled = np.zeros((2, layout.dofs), bool)
    if drive is not None:
        given, slices = drive.prescribed(robot), robot.dof_slices()
        for joint in robot.tree_joints:
            own = isinstance(drive.joints.get(joint.name), PD | Voltage)
            controlled[slices[joint.name]] = own or joint.cogs
    return _tables(layout, given.tobytes(), controlled.tobytes())
