"""Links that are defined by where their sections are and by their strain energy.

Velocities, inertia, velocity products, forces and strains follow by differentiation. This suits new
models with few unknowns; a formulation with many writes them out in its own `AbstractLinks`.
"""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import ScalarLike
from flexjax.mechanism.bodies._sections import beam_properties
from flexjax.mechanism.chain.geometry._links import AbstractLinks, Eta, Mass, Tip, Twists, twist_of
from flexjax.numerics.linalg import mm, mtv, mv, small_inverse
from flexjax.numerics.screw import Plane, Space, se3
from flexjax.robot import Link, Robot

if TYPE_CHECKING:
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


class AbstractPointLinks(AbstractLinks):
    """Flexible links whose mass is at points: all links of an arm, with m coordinates each.

    ``stations`` and ``masses`` are those of the points (:func:`point_masses`); ``tau`` is the time
    constant of the material's damping, which resists with tau d(elastic force)/dt.

    Of ``elastic_energy`` and ``place``, each link's result depends on its own coordinates only.
    """

    stations: AbstractVar[Float[Array, "B k"]]
    masses: AbstractVar[Float[Array, "B k"]]
    tau: AbstractVar[Float[Array, " B"]]

    @abc.abstractmethod
    def place(self, eta: Eta, s: Float[Array, " B"]) -> se3.Pose:
        """Poses of the sections at stations ``s``, in the frames at the bases of the links."""

    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        def twist(direction: Eta) -> Twists:
            return twist_of(*jax.jvp(lambda eta: self.place(eta, s), (eta,), (direction,)))

        return Tip(self.place(eta, s), jax.vmap(twist, out_axes=-1)(_directions(eta)))

    def tip(self, eta: Eta) -> Tip:
        return self.section(eta, jnp.ones_like(self.length))

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        pose, along = jax.jvp(lambda s: self.place(eta, s), (s,), (jnp.ones_like(s),))
        twist, position = twist_of(pose, along) / self.length[:, None], pose.position
        if position.shape[1] == 2:
            position = jnp.pad(position, ((0, 0), (0, 1)))
            twist = Plane.spatial(twist[:, :2], twist[:, 2])
        straight = jnp.eye(6, dtype=eta.dtype)[:1]
        return position - straight[:, :3] * (s * self.length)[:, None], twist - straight

    def _points(self, eta: Eta) -> Float[Array, "B k d"]:
        position = lambda s: self.place(eta, s).position
        return jax.vmap(position, in_axes=1, out_axes=1)(self.stations)

    def _slopes(self, eta: Eta) -> tuple[Float[Array, "B k d dim"], Float[Array, "B k d m"]]:
        """Velocities of the points per component of the frames' twists, and of the shape rates."""
        r = self._points(eta)
        rates = lambda direction: jax.jvp(self._points, (eta,), (direction,))[1]
        unit = jnp.broadcast_to(jnp.eye(r.shape[2], dtype=r.dtype), (*r.shape, r.shape[2]))
        if r.shape[2] == 2:
            turning = Plane.cross(jnp.ones_like(r[..., 0]), r)[..., None]
        else:
            axes = jnp.eye(3, dtype=r.dtype)[:, None, None]
            turning = jnp.moveaxis(Space.cross(axes, r[None]), 0, -1)
        return (
            jnp.concatenate([unit, turning], -1),
            jax.vmap(rates, out_axes=-1)(_directions(eta)),
        )

    def mass(self, eta: Eta) -> Mass:
        frame, shape = self._slopes(eta)

        def product(a: Array, b: Array) -> Array:
            return jnp.einsum("bk,bkdi,bkdj->bij", self.masses, a, b)

        return Mass(product(frame, frame), product(frame, shape), product(shape, shape))

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return mv(mass.ee, x)

    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        frame, shape = self._slopes(eta)
        velocities = lambda eta: jax.jvp(self._points, (eta,), (rate,))[1]
        moving, bending = jax.jvp(velocities, (eta,), (rate,))
        d = moving.shape[2]
        carried = mv(frame, z[:, None])
        if d == 2:
            turned = Plane.cross(z[:, 2:], carried + 2 * moving)
        else:
            turned = Space.cross(z[:, None, 3:], carried + 2 * moving)
        force = self.masses[..., None] * (turned + bending)
        return jnp.sum(mtv(frame, force), 1), jnp.sum(mtv(shape, force), 1)

    def elastic_force(self, eta: Eta) -> Eta:
        return jax.grad(lambda eta: jnp.sum(self.elastic_energy(eta)))(eta)

    def _stiffness(self, eta: Eta) -> Float[Array, "B m m"]:
        force = lambda direction: jax.jvp(self.elastic_force, (eta,), (direction,))[1]
        return jax.vmap(force, out_axes=-1)(_directions(eta))

    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        return self.tau[:, None] * jax.jvp(self.elastic_force, (eta,), (rate,))[1]

    def factor(
        self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None
    ) -> Float[Array, "B m m"]:
        matrix = mass.ee
        if cv is not None or cq is not None:
            share = (0.0 if cv is None else cv) * self.tau + (0.0 if cq is None else cq)
            matrix = matrix + share[:, None, None] * self._stiffness(eta)
        return jax.vmap(small_inverse)(matrix)

    def solve(
        self, factors: Float[Array, "B m m"], rhs: Float[Array, "B m k"]
    ) -> Float[Array, "B m k"]:
        return mm(factors, rhs)


def _directions(eta: Eta) -> Float[Array, "m B m"]:
    """One unit direction for each coordinate, the same on every link."""
    m = eta.shape[1]
    return jnp.broadcast_to(jnp.eye(m, dtype=eta.dtype)[:, None], (m, *eta.shape))


def point_masses(
    robot: Robot, link: Link, knots: Sequence[float] = (0.0, 1.0), points: int = 2
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """(stations, masses) of a link: Gauss points between ``knots``, then the payloads.

    Arrays are stacked over links. So every link has every payload, with zero mass if it is not its
    own.
    """
    x, w = np.polynomial.legendre.leggauss(points)
    half, dtype = 0.5 * np.diff(knots)[:, None], link.length.dtype
    s = jnp.asarray((np.array(knots)[:-1, None] + half * (x + 1)).ravel(), dtype)
    weights = jnp.asarray((half * w).ravel(), dtype)
    masses = [beam_properties(link, s).rhoA * link.length * weights]
    masses += [jnp.where(p.link == link.name, p.mass, 0.0)[None] for p in robot.payloads]
    return jnp.concatenate([s, *(p.s[None] for p in robot.payloads)]), jnp.concatenate(masses)


def point_link_refusals(robot: Robot) -> list[str]:
    """What :class:`AbstractPointLinks` do not represent, a sentence for each fault."""
    faults = []
    for link in robot.links:
        if not link.elastic or link.curvature is not None:
            faults.append(f"links.{link.name}: rigid or curved; expected an elastic, straight link")
        if link.damping is not None and (link.damping.mass, link.damping.modal) != (None, None):
            faults.append(
                f"links.{link.name}.damping: mass-proportional or modal; expected strain_rate"
            )
    for payload in robot.payloads:
        if payload.offset is not None or payload.inertia is not None:
            faults.append(
                f"payloads.{payload.name}: offset or inertia; expected a point mass on the axis"
            )
    return faults
