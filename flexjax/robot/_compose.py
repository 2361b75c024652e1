"""Assembly of a robot from components with ports, in any order, closed loops included.

The result is a Robot, so files, formulations, drives and plots work on it as on any other.
"""

import dataclasses
from typing import Any

from flexjax.robot._robot import Robot
from flexjax.robot.parts._joint import Joint, Payload
from flexjax.robot.parts._link import Link

GROUND = "ground"


@dataclasses.dataclass(frozen=True)
class Port:
    """One end of a component: a twist and a wrench."""

    component: "Component"
    end: str  # "base", "tip", or "out" for the ground


class Component:
    """A link with the ports ``base`` and ``tip``, or the ground with the port ``out``."""

    def __init__(self, link: Link | None):
        self.link = link

    @property
    def name(self) -> str:
        return GROUND if self.link is None else self.link.name

    @property
    def base(self) -> Port:
        return Port(self, "base")

    @property
    def tip(self) -> Port:
        return Port(self, "tip")

    @property
    def out(self) -> Port:
        return Port(self, "out")


class Mechanism:
    """Components and their connections.

    >>> import flexjax as fx
    >>> from flexjax.robot import Mechanism
    >>> steel, round_bar = fx.Material.named("steel"), fx.Circle(0.01)
    >>> rod = lambda name: fx.Link(name, 1.0, section=round_bar, material=steel)
    >>> m = Mechanism("double pendulum")
    >>> upper, lower = m.add(rod("upper")), m.add(rod("lower"))
    >>> m.connect(m.ground.out, upper.base, "revolute")
    'joint1'
    >>> m.connect(upper.tip, lower.base, "revolute", damping=0.1)
    'joint2'
    >>> m.robot().dofs
    2
    """

    def __init__(self, name: str = "mechanism", **others: Any):
        self.name, self.others = name, others
        self.ground = Component(None)
        self._links: list[Link] = []
        self._joints: list[Joint] = []
        self._payloads: list[Payload] = []

    def add(self, link: Link) -> Component:
        if link.name in [known.name for known in self._links]:
            raise ValueError(
                f"links.{link.name}: the mechanism has a component of that name; "
                "expected another name."
            )
        self._links.append(link)
        return Component(link)

    def attach(self, port: Port, name: str, mass: Any, **fields: Any) -> None:
        """A rigid body on a port of a link."""
        if port.component.link is None:
            raise ValueError(f"payloads.{name}: on the ground; expected a port of a link.")
        self._payloads.append(
            Payload(name, port.component.name, mass, s=1.0 if port.end == "tip" else 0.0, **fields)
        )

    def connect(
        self, a: Port, b: Port, kind: str = "fixed", *, name: str | None = None, **fields: Any
    ) -> str:
        """Connect two ports by a joint, with the fields of :class:`flexjax.Joint`; return its name.

        The first connection of a link's base carries it; another one closes a loop.
        """
        for port in (a, b):
            if port.component.link is not None and port.component.name not in [
                known.name for known in self._links
            ]:
                raise ValueError(
                    f"connect: {port.component.name!r} does not belong to this mechanism; "
                    "expected a component that add() returned."
                )
        if b.end == "out" or (a.end == "base" and b.end == "tip"):
            a, b = b, a
        if a.end == "base" or b.end == "out":
            raise ValueError(
                f"connect: {a.end} to {b.end}; expected a tip or the ground on one side, "
                "and a link's end on the other."
            )
        name = f"joint{len(self._joints) + 1}" if name is None else name
        carried = any(j.child == b.component.name for j in self._joints if not j.loop)
        loop = b.end == "tip" or carried
        self._joints.append(
            Joint(
                name,
                kind,
                a.component.name,
                b.component.name,
                loop=loop,
                child_at=b.end if loop else "base",
                **fields,
            )
        )
        return name

    def robot(self) -> Robot:
        return Robot(self.name, self._links, self._joints, self._payloads, **self.others)
