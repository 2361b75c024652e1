"""What follows from names, types and absent fields. Imports no jax.

The description classes inherit it, and so do the plain objects of `robot.files._described`.
"""

from typing import TYPE_CHECKING, Any

from flexjax.robot.parts._choices import JOINT_DOFS

if TYPE_CHECKING:
    from flexjax.robot.parts._joint import Joint
    from flexjax.robot.parts._link import Link

GROUND = "ground"


class LinkFacts:
    """Of a link."""

    rigid: bool
    body: Any

    @property
    def elastic(self) -> bool:
        """Whether the link deforms."""
        return not self.rigid and self.body is None


class JointFacts:
    """Of a joint."""

    type: str
    axis: Any
    stiffness: Any

    @property
    def dofs(self) -> int:
        return JOINT_DOFS[self.type]

    @property
    def flexible(self) -> bool:
        return self.stiffness is not None

    @property
    def telescopes(self) -> bool:
        """Whether the child slides along its own x axis through the joint (Pb)."""
        return self.type == "prismatic" and self.axis is None


class RobotFacts:
    """Of a robot."""

    links: "tuple[Link, ...]"
    joints: "tuple[Joint, ...]"

    @property
    def tree_joints(self) -> "tuple[Joint, ...]":
        """The joints of the tree in robot order, without those that close loops."""
        return tuple(j for j in self.joints if not j.loop)

    @property
    def loop_joints(self) -> "tuple[Joint, ...]":
        return tuple(j for j in self.joints if j.loop)

    @property
    def dofs(self) -> int:
        """Number D of joint coordinates, in robot order."""
        return sum(j.dofs for j in self.tree_joints)

    def link_index(self, name: str) -> int:
        """Index of a link; -1 for the ground."""
        return -1 if name == GROUND else [link.name for link in self.links].index(name)

    def joint_index(self, name: str) -> int:
        return [joint.name for joint in self.joints].index(name)
