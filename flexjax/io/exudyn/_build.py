"""Bodies, beams and joints of a robot in Exudyn, in space.

Elastic links are chains of geometrically exact beams of two nodes. Their shear compliance is that
of the link plus h^2 / (12 EI): one point of integration makes elements of length h too stiff in
bending by as much (MacNeal's residual bending flexibility), and links without shear get a finite
stiffness.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import exudyn
import exudyn.itemInterface as eii
import jax.numpy as jnp
import numpy as np

from flexjax.drive import Drive, Motion
from flexjax.io.exudyn._pose import Frame, aligned, joint_axis, mounting, shift
from flexjax.io.exudyn._signals import Tables, joint_force
from flexjax.mechanism import (
    beam_properties,
    centreline_pose,
    hub_inertia,
    payload_inertia,
    rigid_inertia,
    rotor_and_gear,
)
from flexjax.robot import Joint, Link, Robot

ALL = [1, 1, 1, 1, 1, 1]


@dataclasses.dataclass
class Builder:
    """The system under construction. ``elements``: of every elastic link; ``shear``: whether links
    shear as their sections say."""

    mbs: Any
    robot: Robot
    drive: Drive
    frames: dict[str, Frame]
    elements: dict[str, int]
    shear: bool
    tables: Tables = dataclasses.field(default_factory=Tables)
    nodes: dict[tuple[str, float], int] = dataclasses.field(default_factory=dict)
    bodies: dict[str, int] = dataclasses.field(default_factory=dict)  # of rigid links
    springs: dict[str, int] = dataclasses.field(default_factory=dict)  # by name of their joint
    stiffest: float = 0.0  # EA / h of a beam [N/m]

    def build(self) -> None:
        self._ground()
        for link in self.robot.links:
            self._link(link)
        for joint in self.robot.tree_joints:
            self._joint(joint)
        for load in self.drive.loads:
            self._load(load)

    # ---- bodies ----------------------------------------------------------------------------

    def _node(self, frame: Frame) -> int:
        given: dict[str, Any] = {
            "referenceCoordinates": [*frame.place, *frame.euler_parameters],
            "initialVelocities": [*frame.velocity, *frame.euler_rates],
        }
        return self.mbs.AddNode(eii.NodeRigidBodyEP(**given))

    def _body(self, node: int, inertia: np.ndarray) -> int:
        """A rigid body on a node, by its 6 x 6 inertia about the node, [linear; angular]."""
        mass, J = inertia[0, 0], inertia[3:, 3:]
        first = inertia[3:, :3]  # mass times the cross product matrix of the centre of mass
        centre = np.array([first[2, 1], first[0, 2], first[1, 0]]) / (mass or 1.0)
        body = self.mbs.AddObject(
            eii.ObjectRigidBody(
                nodeNumber=node,
                physicsMass=mass,
                physicsCenterOfMass=list(centre),
                physicsInertia=[J[0, 0], J[1, 1], J[2, 2], J[1, 2], J[0, 2], J[0, 1]],
            )
        )
        if mass:
            self._weigh(body)
        return body

    def _weigh(self, body: int) -> None:
        gravity = [float(g) for g in self.robot.gravity]
        if any(gravity):
            marker = self.mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=body))
            self.mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=gravity))

    def _ground(self) -> None:
        """The ground, or the body that the base moves."""
        self.bodies["ground"] = fixed = self.mbs.AddObject(eii.ObjectGround())
        base = self.drive.base
        if base is None:
            return
        # The motion prescribes it: its inertia has no effect.
        node = self._node(self.frames["ground"])
        moving = self.mbs.AddObject(
            eii.ObjectRigidBody(
                nodeNumber=node, physicsMass=1.0, physicsInertia=[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
            )
        )
        self.bodies["ground"] = moving
        turned = aligned(np.asarray(base.axis) / np.linalg.norm(np.asarray(base.axis)), 2)
        x, phi = (None if s is None else self.tables.add(s) for s in (base.translation, base.angle))

        def place(_: Any, t: float, *__: Any) -> list[float]:
            along = np.zeros(3) if x is None else self.tables.at(x, t)[0]
            angle = 0.0 if phi is None else float(self.tables.at(phi, t)[0])
            return [*along, 0.0, 0.0, angle]

        markers = [self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=b)) for b in (fixed, moving)]
        self._constrain(markers, ALL, turned, turned, place)

    def _link(self, link: Link) -> None:
        joint = next(j for j in self.robot.tree_joints if j.child == link.name)
        carried = self._hub(joint)
        payloads = [p for p in self.robot.payloads if p.link == link.name]
        if not link.elastic:
            inertia = np.asarray(rigid_inertia(link)) + carried
            for p in payloads:
                inertia = inertia + np.asarray(payload_inertia(p, centreline_pose(link, p.s)))
            self.bodies[link.name] = self._body(self._node(self.frames[link.name]), inertia)
            return
        self._beams(link)
        if np.any(carried):
            self._body(self.nodes[link.name, 0.0], carried)
        for p in payloads:
            about = np.asarray(payload_inertia(p, centreline_pose(link, 0.0)))
            self._body(self.nodes[link.name, float(p.s)], about)

    def _hub(self, joint: Joint) -> np.ndarray:
        """Inertia of hub, joint and, on the ground, of the rotor, about the child's base."""
        like = self.robot.gravity
        inertia = np.array(hub_inertia(joint, like))
        held = isinstance(self.drive.joints.get(joint.name), Motion)
        if joint.type == "revolute" and joint.parent == "ground" and not held:
            rotor, gear = (float(x) for x in rotor_and_gear(joint, like))
            axis = joint_axis(joint)
            inertia[3:, 3:] += rotor * gear**2 * np.outer(axis, axis)
        return inertia

    def _stations(self, link: Link) -> np.ndarray:
        """Ends of the beams: at payloads, loads and borders of pieces, evenly between them."""
        marks = [0.0, 1.0]
        marks += [float(p.s) for p in self.robot.payloads if p.link == link.name]
        marks += [float(x.s) for x in self.drive.loads if x.link == link.name]
        marks += list(np.cumsum([float(p.fraction) for p in link.pieces])[:-1])
        marks = sorted(set(marks))
        parts = [np.array([0.0])]
        for a, b in zip(marks[:-1], marks[1:], strict=True):
            count = max(1, round(self.elements[link.name] * (b - a)))
            parts.append(np.linspace(a, b, count + 1)[1:])
        return np.concatenate(parts)

    def _beams(self, link: Link) -> None:
        s, length, frame = self._stations(link), float(link.length), self.frames[link.name]
        for x in s:
            at = frame.at(np.array([x * length, 0.0, 0.0]))
            self.nodes[link.name, float(x)] = self._node(at)
        middle = jnp.asarray(0.5 * (s[1:] + s[:-1]))
        props = {k: np.asarray(v) for k, v in vars(beam_properties(link, middle)).items()}
        for i, h in enumerate(np.diff(s) * length):
            one = {k: float(v[i]) for k, v in props.items()}
            pair = [self.nodes[link.name, float(x)] for x in s[i : i + 2]]
            self._weigh(
                self.mbs.AddObject(
                    eii.ObjectBeamGeometricallyExact(
                        nodeNumbers=pair, length=h, sectionData=self._section(one, h)
                    )
                )
            )

    def _section(self, p: dict[str, float], h: float) -> Any:
        soft = {"GAy": h**2 / (12 * p["EIz"]), "GAz": h**2 / (12 * p["EIy"])}
        shear = [1 / (soft[k] + (1 / p[k] if self.shear else 0.0)) for k in ("GAy", "GAz")]
        self.stiffest = max(self.stiffest, p["EA"] / h)
        stiffness = np.diag([p["EA"], *shear, p["GJ"], p["EIy"], p["EIz"]])
        section = exudyn.BeamSection()
        section.massPerLength = p["rhoA"]
        # Sections without rotary inertia get that of a rigid element, which vanishes with h^2.
        least = p["rhoA"] * h**2 / 12
        section.inertia = np.diag([p[k] or least for k in ("rhoIx", "rhoIy", "rhoIz")])
        section.stiffnessMatrix = stiffness
        return section

    # ---- joints and loads ------------------------------------------------------------------

    def marker(self, name: str, s: float, offset: np.ndarray | None = None) -> int:
        """A marker on a section of a link, or on the ground, shifted in its axes."""
        offset = np.zeros(3) if offset is None else offset
        if name in self.bodies:
            link = None if name == "ground" else self.robot.links[self.robot.link_index(name)]
            along = 0.0 if link is None else s * float(link.length)
            local = np.array([along, 0.0, 0.0]) + offset
            body = self.bodies[name]
        else:
            node = self.nodes[name, s]
            if not np.any(offset):
                return self.mbs.AddMarker(eii.MarkerNodeRigid(nodeNumber=node))
            body, local = self._body(node, np.zeros((6, 6))), offset
        return self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=body, localPosition=list(local)))

    def _constrain(
        self,
        markers: list[int],
        axes: list[int],
        turned0: np.ndarray,
        turned1: np.ndarray,
        offset: Callable | None = None,
    ) -> None:
        given: dict[str, Any] = {} if offset is None else {"offsetUserFunction": offset}
        self.mbs.AddObject(
            eii.GenericJoint(
                markerNumbers=markers,
                constrainedAxes=axes,
                rotationMarker0=turned0,
                rotationMarker1=turned1,
                **given,
            )
        )

    def _joint(self, joint: Joint) -> None:
        markers = [self.marker(joint.parent, 1.0, shift(joint)), self.marker(joint.child, 0.0)]
        if joint.type == "fixed":
            self._constrain(markers, ALL, mounting(joint), np.eye(3))
            return
        along = 0 if joint.type == "prismatic" else 2
        free = 0 if joint.type == "prismatic" else 5
        axis = aligned(joint_axis(joint), along)
        frames = mounting(joint) @ axis, axis
        if isinstance(self.drive.joints.get(joint.name), Motion) and not joint.flexible:
            which = self.tables.add(self.drive.joints[joint.name].signals()[0])

            def follow(_: Any, t: float, *__: Any) -> list[float]:
                x = float(np.ravel(self.tables.at(which, t)[0])[0])
                return [x * (k == free) for k in range(6)]

            if free == 5:
                self._constrain(markers, ALL, *frames, follow)
                return
            # A joint that locks all translations takes the shift in the axes of the world, one that
            # locks some in those of its first body.
            self._constrain(markers, [int(k != free) for k in range(6)], *frames)
            self._constrain(markers, [int(k == free) for k in range(6)], *frames, follow)
            return
        self._constrain(markers, [int(k != free) for k in range(6)], *frames)
        self.springs[joint.name] = self._spring(joint, markers, frames)

    def _spring(
        self, joint: Joint, markers: list[int], frames: tuple[np.ndarray, np.ndarray]
    ) -> int:
        """What acts along a joint; it also measures the coordinate."""
        force = joint_force(joint, self.drive, self.tables) or (lambda t, q, qd: 0.0)

        def torque(_: Any, t: float, __: int, q: float, qd: float, *___: Any) -> float:
            return -float(force(t, q, qd))

        against: Any = torque  # Exudyn's stubs name a class of its own

        if joint.type == "prismatic":
            return self.mbs.AddObject(
                eii.LinearSpringDamper(
                    markerNumbers=markers,
                    axisMarker0=list(frames[0][:, 0]),
                    springForceUserFunction=against,
                )
            )
        return self.mbs.AddObject(
            eii.TorsionalSpringDamper(
                markerNumbers=markers,
                rotationMarker0=frames[0],
                rotationMarker1=frames[1],
                springTorqueUserFunction=against,
            )
        )

    def _load(self, load: Any) -> None:
        marker, which = self.marker(load.link, float(load.s)), self.tables.add(load.wrench)

        def part(first: int, _: Any, t: float, *__: Any) -> list[float]:
            return [float(x) for x in self.tables.at(which, t)[0][first : first + 3]]

        fixed = {"markerNumber": marker, "bodyFixed": load.frame == "section"}
        for item, first in ((eii.Force, 0), (eii.Torque, 3)):
            value = functools.partial(part, first)
            self.mbs.AddLoad(
                item(loadVector=[0.0, 0.0, 0.0], loadVectorUserFunction=_plain(value), **fixed)
            )


def _plain(call: Callable) -> Callable:
    """A function that Exudyn may inspect, from a partial one."""
    return lambda mbs, t, vector: call(mbs, t, vector)
