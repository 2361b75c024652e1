"""What a chain asks of its flexible links: all answers are stacked over stages (B) and padded to the same number m of
shape coordinates.

A link has a frame at its base with body twist z, shape coordinates eta, and a tip section that the next joint hangs on.
Stages without a flexible link
(massless bodies, rigid links) answer with zeros, an identity tip, and a unit mass matrix in the padded places, so that
padding never moves.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax.screw import se3

Eta = Float[Array, "B m"]
Twists = Float[Array, "B dim"]


class Tip(eqx.Module):
    """The section that the next joint hangs on: its pose in the link's frame and its body twist per shape rate."""

    pose: se3.Pose
    S: Float[Array, "B dim m"]


class Mass(eqx.Module):
    """Kinetic energy z^T zz z / 2 + z^T ze eta_dot + eta_dot^T (ee eta_dot) / 2; ``ee`` stays in the form that the link
    likes (dense, banded)."""

    zz: Float[Array, "B dim dim"]
    ze: Float[Array, "B dim m"]
    ee: PyTree


class AbstractLinks(eqx.Module):
    """Flexible links of a chain, vectorised over stages."""

    @abc.abstractmethod
    def tip(self, eta: Eta) -> Tip:
        """Pose and Jacobian of the tip sections."""

    @abc.abstractmethod
    def mass(self, eta: Eta) -> Mass:
        """Mass matrices about the frames."""

    @abc.abstractmethod
    def apply(self, mass: Mass, x: Eta) -> Eta:
        """M_ee x."""

    @abc.abstractmethod
    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        """Velocity products of the inertia: what z and eta rows need beyond mass times acceleration (component
        derivatives of z), without gravity."""

    @abc.abstractmethod
    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        """Strain energy of every link."""

    @abc.abstractmethod
    def elastic_force(self, eta: Eta) -> Eta:
        """Gradient of the strain energy."""

    @abc.abstractmethod
    def damping_force(self, rate: Eta) -> Eta:
        """Resistance of the material, D eta_dot."""

    @abc.abstractmethod
    def factor(self, eta: Eta, mass: Mass, cv, cq) -> PyTree:
        """Factors of M_ee + cv D + cq K."""

    @abc.abstractmethod
    def solve(self, factors: PyTree, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        """The solution for every column."""

    @abc.abstractmethod
    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        """Pose and Jacobian of the sections at stations ``s``, one on every link."""

    @abc.abstractmethod
    def strain(self, eta: Eta, s: Float[Array, " B"]) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        """(deflection from the tangent at the base, strains) at stations ``s``."""

    def along(self, eta: Eta, s: Float[Array, " B"]) -> Twists:
        """Body twist of the section at ``s`` per unit of s, in its own axes: what a joint that slides along the link
        moves with."""
        tip, rate = jax.jvp(lambda s: self.section(eta, s).pose, (s,), (jnp.ones_like(s),))
        back = jnp.swapaxes(tip.rotation, 1, 2)
        spin = jnp.sum(back[:, :, :, None] * rate.rotation[:, None, :, :], axis=2)
        linear = jnp.sum(back * rate.position[:, None, :], axis=2)
        if spin.shape[1] == 2:
            return jnp.concatenate([linear, spin[:, 1, :1]], axis=1)
        return jnp.concatenate([linear, spin[:, 2, 1, None], spin[:, 0, 2, None], spin[:, 1, 0, None]], axis=1)

    def stiffen(self, mass: Mass, extra: Eta) -> Mass:
        """``mass`` with ``extra`` on the diagonal of ee, for Newton matrices; asked only of links that run through
        their joints."""
        raise NotImplementedError(f"{type(self).__name__} has no links that run through a joint")

    def tip_rate(self, eta: Eta, rate: Eta) -> Twists:
        """S_dot eta_dot."""
        return jax.jvp(lambda x: jnp.sum(self.tip(x).S * rate[:, None, :], axis=2), (eta,), (rate,))[1]
