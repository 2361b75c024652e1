"""The serial arm with rigid links: the reference that every flexible formulation must reach when its links stiffen."""

from flexjax.formulation.rigid_arm._formulation import RigidArm as RigidArm
