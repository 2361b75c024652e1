"""Static facts of a mechanism: its tree of links, where joint coordinates stand, what kind of
hardware occurs at all."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax._types import is_traced
from flexjax.robot import Robot

# Numbers in q of each joint type; spherical joints are quaternions (wxyz), free ones a translation
# and a quaternion.
_NUMBERS = {"revolute": 1, "prismatic": 1, "fixed": 0, "universal": 2, "spherical": 4, "free": 7}
_BALL_COLUMN = {"spherical": 0, "free": 3}


@dataclasses.dataclass(frozen=True)
class Structure:
    """Order of q: tree joints in robot order, then motors of flexible joints; v alike, with three
    rates for the four numbers of a ball."""

    elements: int
    planar: bool
    parents: tuple[int, ...]  # link indices, -1: ground
    order: tuple[int, ...]  # links, parents before children
    joint_of: tuple[int, ...]  # index among the robot's joints of the joint that a link hangs on
    kinds: tuple[str, ...]
    dofs: tuple[int, ...]
    v_start: tuple[int, ...]
    q_start: tuple[int, ...]
    rigid: tuple[bool, ...]
    motors: tuple[int, ...]  # links whose joint is flexible, in robot order
    loops: tuple[int, ...]  # indices among the robot's joints
    nq: int
    nv: int
    total_dofs: int

    @property
    def links(self) -> int:
        return len(self.parents)

    @property
    def width(self) -> int:
        """Columns that every joint is padded to."""
        return max(1, *self.dofs)

    @property
    def unknowns(self) -> int:
        return self.width + (1 if self.motors else 0)

    @property
    def dim(self) -> int:
        return 3 if self.planar else 6

    @property
    def lin(self) -> int:
        return 2 if self.planar else 3

    def rate_table(self) -> np.ndarray:
        """(L, unknowns) index into v of a link's joint unknowns, nv where there is none."""
        table = np.full((self.links, self.unknowns), self.nv)
        for i in range(self.links):
            table[i, : self.dofs[i]] = np.arange(self.v_start[i], self.v_start[i] + self.dofs[i])
        for k, i in enumerate(self.motors):
            table[i, -1] = self.total_dofs + k
        return table

    def collect_table(self) -> np.ndarray:
        """(nv,) where a rate stands among the links' joint unknowns, flattened."""
        table = self.rate_table().reshape(-1)
        return np.array([np.flatnonzero(table == k)[0] for k in range(self.nv)], int)

    def v_of_q(self) -> np.ndarray:
        """(nq,) index into v of the rate of every plain coordinate, nv at balls."""
        table = np.full(self.nq, self.nv)
        for v, q in enumerate(self.q_of_v()):
            if q >= 0:
                table[q] = v
        return table

    def plain_table(self) -> np.ndarray:
        """(L, width) index into q of coordinates that are plain numbers, nq elsewhere."""
        table = np.full((self.links, self.width), self.nq)
        for i, kind in enumerate(self.kinds):
            plain = _BALL_COLUMN.get(kind, self.dofs[i])
            table[i, :plain] = np.arange(self.q_start[i], self.q_start[i] + plain)
        return table

    def q_of_v(self) -> np.ndarray:
        """Position in q of every plain coordinate of v; -1 for the rates of balls."""
        table = np.full(self.nv, -1)
        plain = self.plain_table()
        for i in range(self.links):
            for c in range(self.dofs[i]):
                if plain[i, c] < self.nq:
                    table[self.v_start[i] + c] = plain[i, c]
        count = len(self.motors)
        table[self.nv - count :] = np.arange(self.nq - count, self.nq)
        return table

    def balls(self) -> tuple[tuple[int, int, int], ...]:
        """(link, start of the quaternion in q, start of its rates in v)."""
        found = []
        for i, kind in enumerate(self.kinds):
            if kind in _BALL_COLUMN:
                c = _BALL_COLUMN[kind]
                found.append((i, self.q_start[i] + c, self.v_start[i] + c))
        return tuple(found)

    def ball_columns(self) -> np.ndarray:
        """(L, 3, width) which columns of a joint are the rates of its ball."""
        out = np.zeros((self.links, 3, self.width))
        for i, kind in enumerate(self.kinds):
            if kind in _BALL_COLUMN:
                out[i, :, _BALL_COLUMN[kind] : _BALL_COLUMN[kind] + 3] = np.eye(3)
        return out


def refusals(robot: Robot) -> list[str]:
    """What a mechanism of port-Hamiltonian links cannot hold."""
    faults = []
    for j in robot.joints:
        if j.type == "sliding" or j.telescopes:
            faults.append(
                f"joints.{j.name}: a {j.type} joint that travels along a flexible link; expected "
                "a fixed axis, or another formulation"
            )
    for j in robot.tree_joints:
        if j.flexible and j.dofs != 1:
            faults.append(
                f"joints.{j.name}.stiffness: a flexible {j.type} joint; expected a joint with "
                "one degree of freedom"
            )
    for j in robot.loop_joints:
        if j.type not in ("revolute", "spherical", "fixed"):
            faults.append(
                f"joints.{j.name}: a {j.type} joint closes a loop; expected a revolute, "
                "spherical or fixed joint"
            )
        for field in ("stiffness", "damping", "friction", "hub", "mass", "motor", "stops"):
            if getattr(j, field) is not None:
                faults.append(
                    f"joints.{j.name}.{field}: hardware on a joint that closes a loop; put it on "
                    "a joint of the tree"
                )
    for link in robot.links:
        if link.damping is not None and link.damping.modal is not None:
            faults.append(
                f"links.{link.name}.damping.modal: damping by modes; expected strain_rate or mass"
            )
        if link.body is not None and not link.rigid:
            faults.append(
                f"links.{link.name}.body: mass properties of a rigid link; expected rigid = "
                "true, or a section"
            )
    return faults


def curvature_refusals(robot: Robot, elements: int) -> list[str]:
    """Arcs of half a turn and more are no single element: the tangent of half their angle is
    infinite. Traced numbers are believed."""
    faults = []
    for link in robot.links:
        if (
            link.curvature is None
            or link.rigid
            or is_traced(link.curvature)
            or is_traced(link.length)
        ):
            continue
        turn = float(
            np.max(np.linalg.norm(np.asarray(link.curvature), axis=-1) * np.asarray(link.length))
        )
        if turn / elements >= np.pi:
            least = int(turn / np.pi) + 1
            faults.append(
                f"links.{link.name}.curvature: turns by {turn:.4g} rad along the link, "
                f"{turn / elements:.4g} rad in each of {elements} elements; "
                "expected less than half a turn (3.1416 rad): take "
                f"PortHamiltonian(elements={least}) or more"
            )
    return faults


def stacked(by_link: dict[int, Array]) -> Array:
    """Arrays of the links, in robot order."""
    return jnp.stack([by_link[i] for i in range(len(by_link))])


def structure(robot: Robot, elements: int) -> Structure:
    v_start, q_start, v, q = {}, {}, 0, 0
    for i, joint in enumerate(robot.joints):
        if not joint.loop:
            v_start[i], q_start[i] = v, q
            v, q = v + joint.dofs, q + _NUMBERS[joint.type]
    by_link = {robot.link_index(j.child): i for i, j in enumerate(robot.joints) if not j.loop}
    joint_of = [by_link[link] for link in range(len(robot.links))]
    joints = [robot.joints[i] for i in joint_of]
    parents = tuple(robot.link_index(j.parent) for j in joints)
    order: list[int] = []
    while len(order) < len(parents):
        order += [i for i, p in enumerate(parents) if i not in order and (p < 0 or p in order)]
    flexible = tuple(robot.link_index(j.child) for j in robot.tree_joints if j.flexible)
    return Structure(
        elements=elements,
        planar=robot.planar,
        parents=parents,
        order=tuple(order),
        joint_of=tuple(joint_of),
        kinds=tuple(j.type for j in joints),
        dofs=tuple(j.dofs for j in joints),
        v_start=tuple(v_start[i] for i in joint_of),
        q_start=tuple(q_start[i] for i in joint_of),
        rigid=tuple(link.rigid for link in robot.links),
        motors=flexible,
        loops=tuple(i for i, j in enumerate(robot.joints) if j.loop),
        nq=q + len(flexible),
        nv=v + len(flexible),
        total_dofs=v,
    )
