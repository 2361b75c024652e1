"""Elastic links as finite-element beams in a floating frame: r = (s, w), w = sum_j f_j(s/L) c_j.

The beam is clamped at the frame. L is the link's length or, if the link runs through its joint
(Pb), its free length d, which is then one more shape coordinate and stretches the mesh. A material
point X keeps s = X + d - l, so that w changes at the rate
    f_j c_j' + (1 - s/d) f_j'(s/d) c_j d'/d      (prime of f: in xi = s/d),
and the tail s < 0 is straight in the guide. All other terms, convective terms and the
configurational force among them, follow by differentiation of these energies.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import ScalarLike
from flexjax.formulation.finite_element._bordered import (
    BorderedFactors,
    bordered_factor,
    bordered_solve,
)
from flexjax.formulation.finite_element._inertia import AbstractHeavyLinks
from flexjax.formulation.finite_element._integrals import LinkNumbers, Load
from flexjax.mechanism.chain import Eta, Mass
from flexjax.numerics.beam import Cubics
from flexjax.numerics.linalg._banded import (
    band_apply,
    from_elements,
    to_elements,
)


class FiniteElementLinks(AbstractHeavyLinks):
    """Shape coordinates (B, m), or (B, m + 1) if a joint coordinate is the last of them.

    That is the free length of links that run ``through`` a joint, or the contact of links with a
    node ``pinned`` to it. ``held``: where it is prescribed. ``jumps``: contacts take the values of
    the next node, as in the paper. ``borrowed``: point masses at pinned contacts, of the bodies
    there; ``taken``: the same as inertia about the frames of those bodies.
    """

    path_points: ClassVar[int] = 3
    numbers: LinkNumbers
    loads: tuple[Load, ...]
    tables: tuple[Cubics | None, ...] = eqx.field(static=True)
    through: tuple[bool, ...] = eqx.field(static=True)
    held: tuple[bool, ...] = eqx.field(static=True)
    stiffening: tuple[bool, ...] = eqx.field(static=True)
    damped: bool = eqx.field(static=True)
    pinned: tuple[bool, ...] = eqx.field(static=True, default=())
    jumps: bool = eqx.field(static=True, default=False)
    borrowed: Float[Array, " B"] | None = None
    taken: Float[Array, "B 3 3"] | None = None

    # --- prescribed lengths
    def held_by(self, prescribed: tuple[bool, ...]) -> "FiniteElementLinks":
        return dataclasses.replace(self, held=prescribed)

    @property
    def _bordered(self) -> np.ndarray:
        """Stages whose last shape coordinate is a joint's."""
        through = np.array(self.through)
        return through | np.array(self.pinned, bool) if self.pinned else through

    # --- elasticity
    def _stiffness(self, eta: Eta) -> Float[Array, "B m w"]:
        _, L = self._split(eta)
        K = self.numbers.K / (L**3)[:, None, None]
        for i, row in self._pinned_rows(eta):
            K = K.at[i].set(row.K)
        return K

    def _curvatures(
        self, c: Eta
    ) -> list[tuple[int, Float[Array, "B e 2 4"], Float[Array, "B e 2"]]]:
        """(stride of the coefficients, Q, Q c) of links with Hermite cubics and with B-splines.

        Forces are Q^T (Q c): the rounding of curvatures is in equilibrium and moves no link as a
        whole. That of K c is not, and limits Newton's iteration (PAPER.md).
        """
        strides = np.array([0 if t is None else t.size // t.elements for t in self.tables])
        if any(self.pinned):
            strides = np.where(self.pinned, 0, strides)
        out, Q = [], self.numbers.Q
        for stride in sorted(set(strides[strides > 0].tolist())):
            own = Q
            if np.any(strides != stride):
                own = jnp.where((strides == stride)[:, None, None, None], Q, 0.0)
            parts = to_elements(c, Q.shape[1], stride)[:, :, None, :]
            out.append((stride, own, jnp.sum(own * parts, axis=3)))
        return out

    def _bending(self, c: Eta) -> Float[Array, "B m"]:
        """K c over the unit interval, of links with fixed meshes."""
        total = jnp.zeros_like(c)
        for stride, Q, curvature in self._curvatures(c):
            parts = jnp.sum(Q * curvature[:, :, :, None], axis=2)
            total = total + from_elements(parts, c.shape[1], stride)
        return total

    def elastic_energy(self, eta: Eta) -> Float[Array, " B"]:
        c, L = self._split(eta)
        energy = jnp.zeros_like(L)
        for _, _, curvature in self._curvatures(c):
            energy = energy + 0.5 * jnp.sum(curvature**2, axis=(1, 2)) / L**3
        for i, row in self._pinned_rows(eta):
            energy = energy.at[i].set(0.5 * jnp.sum(c[i] * band_apply(row.K[None], c[i][None])[0]))
        return energy

    def elastic_force(self, eta: Eta) -> Eta:
        if any(self.pinned):
            return jax.grad(lambda eta: jnp.sum(self.elastic_energy(eta)))(eta)
        c, L = self._split(eta)
        Kc = self._bending(c)
        bending = Kc / (L**3)[:, None]
        if not self._extends:
            return bending
        # The configurational force that pushes a deflected link out of its guide.
        configurational = jnp.where(
            np.array(self.through), -1.5 * jnp.sum(c * Kc, axis=1) / L**4, 0.0
        )
        return jnp.concatenate([bending, configurational[:, None]], axis=1)

    def damping_force(self, eta: Eta, rate: Eta) -> Eta:
        if not self.damped:
            return jnp.zeros_like(rate)
        # Links that run through a joint have no damping (refused), so the length is constant.
        n, m = self.numbers, self.numbers.a.shape[1]
        c = rate[:, :m]
        bending = (n.strain_rate / n.length**3)[:, None] * self._bending(c)
        force = bending + (n.drag * n.length)[:, None] * band_apply(n.M, c)
        return jnp.pad(force, ((0, 0), (0, rate.shape[1] - m)))

    # --- solves
    def stiffen(self, mass: Mass, extra: Eta) -> Mass:
        ee = mass.ee
        return Mass(mass.zz, mass.ze, dataclasses.replace(ee, corner=ee.corner + extra[:, -1]))

    def factor(
        self, eta: Eta, mass: Mass, cv: ScalarLike | None, cq: ScalarLike | None
    ) -> BorderedFactors:
        n, ee = self.numbers, mass.ee
        band = ee.band
        if cq is not None and cv is not None:
            _, L = self._split(eta)
            if self.damped:
                band = band + (cv * n.drag * L)[:, None, None] * n.M
                cq = (cq + cv * n.strain_rate)[:, None, None]
            band = band + cq * self._stiffness(eta)
        free = self._bordered & ~np.array(self.held)
        return bordered_factor(eqx.tree_at(lambda e: e.band, ee, band), free)

    def solve(self, factors: BorderedFactors, rhs: Float[Array, "B m k"]) -> Float[Array, "B m k"]:
        return bordered_solve(factors, rhs)
