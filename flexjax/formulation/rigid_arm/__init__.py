"""The serial arm with rigid links: the limit of every flexible formulation with stiff links."""

from flexjax.formulation.rigid_arm._formulation import RigidArm as RigidArm
