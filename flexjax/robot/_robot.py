"""The robot: links, joints, payloads, sensors and gravity, a pytree of float arrays."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from flexjax._html import block
from flexjax._types import NumbersLike, as_float
from flexjax.robot._table import robot_table
from flexjax.robot.check._check import check_robot
from flexjax.robot.parts._facts import GROUND as GROUND, RobotFacts
from flexjax.robot.parts._joint import Joint, Payload, Sensor
from flexjax.robot.parts._link import Link


class Robot(RobotFacts, eqx.Module):
    """A flexible robot, described once for every formulation.

    Names, types and topology are static. Every parameter is a float array, so ``jax.grad``,
    ``jax.vmap`` and ``jax.jit`` work on a robot.

    Arguments:
        name: name of the robot.
        links, joints: the links and the joints between them.
        payloads, sensors: rigid payloads and sensors on them.
        gravity: acceleration of gravity in world axes [m/s2].
        planar: whether the robot moves in the plane z = 0, with every axis along z. More
            formulations support a planar robot.

    >>> import flexjax as fx
    >>> upper = fx.Link("upper", 0.5, fx.Circle(0.02), fx.Material.named("steel"))
    >>> shoulder = fx.Joint("shoulder", "revolute", "ground", "upper")
    >>> robot = fx.Robot("arm", [upper], [shoulder], planar=True)
    >>> float(robot.replace("links.upper.length", 0.6).links[0].length)
    0.6
    """

    name: str = eqx.field(static=True)
    links: tuple[Link, ...] = eqx.field(converter=tuple)
    joints: tuple[Joint, ...] = eqx.field(converter=tuple)
    payloads: tuple[Payload, ...] = eqx.field(converter=tuple, default=())
    sensors: tuple[Sensor, ...] = eqx.field(converter=tuple, default=())
    gravity: Float[Array, "3"] = eqx.field(converter=as_float, default=(0.0, -9.81, 0.0))
    planar: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        check_robot(self)

    @classmethod
    def serial(
        cls,
        links: Sequence[Link],
        joints: Sequence[Joint] | None = None,
        *,
        name: str = "arm",
        **others: Any,
    ) -> "Robot":
        """Build a serial arm, in which link i - 1 carries link i.

        Arguments:
            links: the links from the ground to the tip.
            joints: the joints; by default every joint is revolute about z.
            name: name of the robot.
            others: further fields of :class:`Robot`.

        Returns:
            The robot.

        >>> import flexjax as fx
        >>> aluminium = fx.Material.named("aluminium")
        >>> link = fx.Link("upper", 0.8, section=fx.Rectangle(0.02, 0.005), material=aluminium)
        >>> fx.Robot.serial([link]).joints[0].name
        'joint1'
        """
        links = tuple(links)
        if joints is None:
            parents = (GROUND, *(link.name for link in links[:-1]))
            joints = tuple(
                Joint(f"joint{i + 1}", "revolute", p, link.name)
                for i, (p, link) in enumerate(zip(parents, links, strict=True))
            )
            others.setdefault("planar", True)
        return cls(name, links, joints, **others)

    def dof_slices(self) -> dict[str, slice]:
        """The slice of ``q`` that contains the coordinates of each tree joint."""
        slices, start = {}, 0
        for joint in self.tree_joints:
            slices[joint.name] = slice(start, start + joint.dofs)
            start += joint.dofs
        return slices

    def replace(self, path: str, value: NumbersLike) -> "Robot":
        """A copy of the robot with one parameter changed.

        Arguments:
            path: path of the parameter, e.g. ``"links.upper.material.E"``; see
                :func:`flexjax.paths`.
            value: its new value, which may be traced.

        Returns:
            The new robot.
        """
        from flexjax.robot._paths import set_path

        return set_path(self, path, value)

    def __str__(self) -> str:
        return robot_table(self)

    def _repr_html_(self) -> str:
        from flexjax.robot._home import picture

        return block(str(self), picture(self))
