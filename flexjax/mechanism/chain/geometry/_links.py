"""The interface of flexible links: stacked over stages (B), padded to m shape coordinates.

A link has a frame at its base with body twist z, shape coordinates eta, and a tip section for the
next joint. Stages without a flexible link (massless bodies, rigid links) return zeros, an identity
tip, and a unit mass matrix for the padding, which therefore never moves.
"""

import abc
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import ScalarLike
from flexjax.mechanism._start import Curve
from flexjax.numerics.linalg import mm, mtv, mv, transpose
from flexjax.numerics.screw import se3

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar

Eta = Float[Array, "B m"]
Twists = Float[Array, "B dim"]


def twist_of(pose: se3.Pose, rate: se3.Pose) -> Twists:
    """Body twists of poses that change at ``rate``, in the plane or in space."""
    back = transpose(pose.rotation)
    spin, linear = mm(back, rate.rotation), mv(back, rate.position)
    if spin.shape[1] == 2:
        return jnp.concatenate([linear, spin[:, 1, :1]], axis=1)
    return jnp.concatenate(
        [linear, spin[:, 2, 1, None], spin[:, 0, 2, None], spin[:, 1, 0, None]], axis=1
    )


class Tip(eqx.Module):
    """The section of the next joint: pose in the link's frame, and body twist per shape rate."""

    pose: se3.Pose
    S: Float[Array, "*B dim m"]


class Mass(eqx.Module):
    """Kinetic energy z^T zz z / 2 + z^T ze eta_dot + eta_dot^T (ee eta_dot) / 2.

    ``ee`` has the link's own form (dense, banded).
    """

    zz: Float[Array, "*B dim dim"]
    ze: Float[Array, "*B dim m"]
    ee: PyTree


class MotionPair(NamedTuple):
    """Two motions of all links: twists of their frames, and rates of their shapes."""

    z: Float[Array, "2 B dim"]
    rate: Float[Array, "2 B m"]


class Bent(NamedTuple):
    """A link with an initial deflection: stage, number of shape coordinates, stations between
    which the deflection is smooth, and length."""

    stage: int
    count: int
    knots: tuple[float, ...]
    length: Array

    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Stations and weights on [0, 1]: eight Gauss points between two knots."""
        x, w = np.polynomial.legendre.leggauss(8)
        edges = np.array([0.0, *self.knots])
        h = np.diff(edges)[:, None]
        return (edges[:-1, None] + 0.5 * h * (x + 1)).ravel(), (0.5 * h * w).ravel()


class AbstractSections(eqx.Module):
    """Sections of flexible links: where they are, how they move with the shape, their strain."""

    length: AbstractVar[Float[Array, " B"]]

    @abc.abstractmethod
    def tip(self, eta: Eta) -> Tip:
        """Pose and Jacobian of the tip sections."""

    @abc.abstractmethod
    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        """Pose and Jacobian of the sections at stations ``s``, one on every link."""

    @abc.abstractmethod
    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        """(deflection from the tangent at the base, strains) at stations ``s``."""

    def shaped(self, eta: Eta, bent: "Bent", curve: Curve) -> Float[Array, " count"]:
        """Shape coordinates of one link with the deflection ``curve``.

        Least squares of the strains, for strains that are linear in the coordinates. ``eta``:
        shape coordinates of all links before.
        """
        s, w = bent.quadrature()
        _, _, curvature = curve(s)
        zero = jnp.zeros_like(curvature[0])
        # Axial, shear y and z; torsion and curvatures times the length, for equal units.
        wanted = (
            jnp.stack([zero, zero, zero, zero, -curvature[1], curvature[0]], axis=1) / bent.length
        )
        one = jnp.ones_like(bent.length)
        size = jnp.stack([one, one, one, bent.length, bent.length, bent.length])

        def strains(own):
            all_ = jnp.zeros_like(eta).at[bent.stage, : bent.count].set(own)

            def at(s):
                return self.strain(all_, jnp.broadcast_to(s, eta.shape[:1]))[1][bent.stage] * size

            return jax.vmap(at)(jnp.asarray(s, eta.dtype))

        J = jax.jacfwd(strains)(jnp.zeros(bent.count, eta.dtype))
        weighted = jnp.asarray(w, eta.dtype)[:, None, None] * J
        normal = jnp.einsum("sci,scj->ij", weighted, J)
        return jnp.linalg.solve(normal, jnp.einsum("sci,sc->i", weighted, wanted))

    def tip_rate(self, eta: Eta, rate: Eta) -> Twists:
        """S_dot eta_dot."""
        return jax.jvp(lambda x: mv(self.tip(x).S, rate), (eta,), (rate,))[1]

    def tip_gradient(
        self, eta: Eta, motions: MotionPair, wrench: Float[Array, "2 B dim"], space: ModuleType
    ) -> Eta:
        """Gradient w.r.t. eta of half the sum of ``wrench`` times the tips' twists."""

        def form(eta):
            tip = self.tip(eta)
            X = jax.vmap(space.adjoint_inverse)(tip.pose)
            twist = jax.vmap(lambda z, rate: mv(X, z) + mv(tip.S, rate))(*motions)
            return 0.5 * jnp.sum(wrench * twist)

        return jax.grad(form)(eta)


class AbstractElasticity(eqx.Module):
    """Elastic and viscous forces of flexible links."""

    @abc.abstractmethod
    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        """Strain energy of every link."""

    @abc.abstractmethod
    def elastic_force(self, eta: Eta) -> Eta:
        """Gradient of the strain energy."""

    @abc.abstractmethod
    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        """Resistance of the material, D(eta) eta_dot."""


class AbstractLinks(AbstractSections, AbstractElasticity):
    """Flexible links of a chain, vectorised over stages: sections, elasticity and inertia."""

    # Gauss points along a step at which DiscreteGradient evaluates the gradients of these links.
    # With two, a rigid arm at 5 ms drifts by 2e-9 of its energy in 10 s; with four, by rounding.
    path_points: ClassVar[int] = 4

    @abc.abstractmethod
    def mass(self, eta: Eta) -> Mass:
        """Mass matrices about the frames."""

    @abc.abstractmethod
    def apply(self, mass: Mass, x: Eta) -> Eta:
        """M_ee x."""

    @abc.abstractmethod
    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        """Velocity products of the inertia for the rows of z and eta, without gravity.

        They complete mass times acceleration (component derivatives of z).
        """

    @abc.abstractmethod
    def factor(self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None) -> PyTree:
        """Factors of M_ee + cv D + cq K."""

    @abc.abstractmethod
    def solve(self, factors: PyTree, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        """The solution for every column."""

    def kinetic_gradient(self, eta: Eta, motions: MotionPair) -> Eta:
        """Gradient w.r.t. eta of half the mass form of two motions."""
        z, rate = motions

        def form(eta):
            mass = self.mass(eta)
            wrench = mv(mass.zz, z[1]) + mv(mass.ze, rate[1])
            shape = mtv(mass.ze, z[1]) + self.apply(mass, rate[1])
            return 0.5 * (jnp.sum(z[0] * wrench) + jnp.sum(rate[0] * shape))

        return jax.grad(form)(eta)


class AbstractSlidingLinks(AbstractLinks):
    """Links along which a joint may slide, or which may run through their joint.

    A chain with such joints requires it (:func:`sliding_links`).
    """

    def contact(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        """The sections of joints that slide along the links."""
        return self.section(eta, s)

    def along(self, eta: Eta, s: Float[Array, " B"]) -> Twists:
        """Body twist of the contact at ``s`` per unit of s, in its own axes."""
        return twist_of(*jax.jvp(lambda s: self.contact(eta, s).pose, (s,), (jnp.ones_like(s),)))

    @abc.abstractmethod
    def held_by(self, prescribed: tuple[bool, ...]) -> Self:
        """The links where the free length or the contact of the marked stages is prescribed."""

    @abc.abstractmethod
    def returned(self) -> Float[Array, "B dim dim"] | None:
        """Inertia of the bodies at the contacts that links include, about those bodies' frames."""

    @abc.abstractmethod
    def kink(
        self, eta: Eta, s: Float[Array, " B"], eta_rate: Eta, s_rate: Float[Array, " B"]
    ) -> Float[Array, " B"]:
        """First fraction of a path at which the contact meets a border of the link's functions.

        Along the path, shape and contact change by ``eta_rate`` and ``s_rate``; 1 if it meets none.
        """

    @abc.abstractmethod
    def stiffen(self, mass: Mass, extra: Eta) -> Mass:
        """``mass`` with ``extra`` on the diagonal of ee, of links that run through their joints."""


def sliding_links(links: AbstractLinks) -> AbstractSlidingLinks:
    """``links`` of a chain in which a joint slides along a link, or a link through its joint."""
    if not isinstance(links, AbstractSlidingLinks):
        raise TypeError(
            f"links: {type(links).__name__}; expected AbstractSlidingLinks, because a joint slides "
            "along an elastic link or an elastic link through its joint. Refuse such joints in the "
            "formulation, or implement that interface."
        )
    return links
