"""Links with their frame between their ends (l1 < 0 < l2 of the paper), as the chain needs them.

The chain uses the twist of a link's base, z_B = X_b z + S_b eta'. So z = A (z_B - S_b eta') with
A = X_b^-1. This change of velocities (z, eta') = T (z_B, eta') transforms mass and velocity
products into T^T M T and T^T (h + M T' (z_B, eta')).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._types import ScalarLike
from flexjax.formulation.screw_synthesis._link import ModalLinks
from flexjax.mechanism import Curve
from flexjax.mechanism.chain import AbstractLinks, Bent, Eta, Mass, Tip, Twists
from flexjax.numerics.linalg import mtv, mv, transpose
from flexjax.numerics.screw import se3

_t = transpose


class FramedLinks(AbstractLinks):
    """``inner`` has its frames inside the links, and shape functions clamped there."""

    inner: ModalLinks

    @property
    def length(self) -> Float[Array, " B"]:
        return self.inner.length

    def _base(self, eta: Eta):
        """Pose of the base section in the frame, A, S_b."""
        base = self.inner.section(eta, jnp.zeros_like(self.inner.length))
        return base.pose, jax.vmap(se3.adjoint)(base.pose), base.S

    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        pose, A, Sb = self._base(eta)
        far = self.inner.section(eta, s)
        relative = jax.vmap(lambda a, b: se3.compose(se3.inverse(a), b))(pose, far.pose)
        return Tip(relative, far.S - jax.vmap(se3.adjoint_inverse)(relative) @ Sb)

    def tip(self, eta: Eta) -> Tip:
        return self.section(eta, jnp.ones_like(self.inner.length))

    def mass(self, eta: Eta) -> Mass:
        _, A, Sb = self._base(eta)
        mass = self.inner.mass(eta)
        back = A @ Sb
        zz = mass.zz @ A
        ze = mass.ze - mass.zz @ back
        cross = _t(back) @ mass.ze
        ee = mass.ee - cross - _t(cross) + _t(back) @ mass.zz @ back
        return Mass(_t(A) @ zz, _t(A) @ ze, 0.5 * (ee + _t(ee)))

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return mv(mass.ee, x)

    def bias(self, eta: Eta, rate: Eta, z_base: Twists) -> tuple[Twists, Eta]:
        _, A, Sb = self._base(eta)
        deformation, deformation_rate = jax.jvp(
            lambda e: mv(self._base(e)[2], rate), (eta,), (rate,)
        )
        z = mv(A, z_base - deformation)
        # Velocity product of the base section: ad_(X_b z) S_b eta' + S_b' eta'.
        lost = mv(
            A,
            jax.vmap(lambda a, b: se3.ad(a) @ b)(z_base - deformation, deformation)
            + deformation_rate,
        )
        hz, he = self.inner.bias(eta, rate, z)
        mass = self.inner.mass(eta)
        hz, he = hz - mv(mass.zz, lost), he - mtv(mass.ze, lost)
        at_base = mtv(A, hz)
        return at_base, he - mtv(Sb, at_base)

    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        return self.inner.elastic_energy(eta)

    def elastic_force(self, eta: Eta) -> Eta:
        return self.inner.elastic_force(eta)

    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        return self.inner.damping_force(eta, rate)

    def factor(self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None):
        return self.inner.factor(eta, mass, cv, cq)

    def solve(self, factors: PyTree, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        return self.inner.solve(factors, rhs)

    def shaped(self, eta: Eta, bent: Bent, curve: Curve) -> Float[Array, " m"]:
        return self.inner.shaped(eta, bent, curve)

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        # Of rigid links, whose sections are all the identity, there is none.
        on = jnp.asarray(self.inner.flexible, eta.dtype)[:, None]
        position = self.section(eta, s).pose.position
        deflection = on * position.at[:, 0].add(-self.inner.length * s)
        return deflection, self.inner.strain(eta, s)[1]
