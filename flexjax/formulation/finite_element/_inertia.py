"""Inertia of finite-element links: mass matrices, payloads, velocity products."""

from types import ModuleType
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.finite_element._bordered import (
    Bordered,
    bordered_apply,
    inverse2,
)
from flexjax.formulation.finite_element._integrals import Load
from flexjax.formulation.finite_element._moving_mesh import (
    contact_node,
)
from flexjax.formulation.finite_element._sections import AbstractMeshedLinks
from flexjax.mechanism.chain import Eta, Mass, MotionPair, Twists
from flexjax.numerics.linalg import mtv, mv
from flexjax.numerics.linalg._banded import (
    BAND,
    band_apply,
    band_square,
    to_band,
)
from flexjax.numerics.screw import se2, se3

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


def _columns(x: Float[Array, "k B 3"]) -> list[Float[Array, "k B"]]:
    # In reverse mode one concatenation; an index each would be as many sums of padded arrays.
    return [column[:, :, 0] for column in jax.lax.split(x, (1, 1, 1), axis=2)]


class AbstractHeavyLinks(AbstractMeshedLinks):
    """Links with a mesh and mass; fields as in ``FiniteElementLinks``."""

    loads: AbstractVar[tuple[Load, ...]]
    borrowed: AbstractVar[Float[Array, " B"] | None]
    taken: AbstractVar[Float[Array, "B 3 3"] | None]

    # --- mass matrices
    def mass(self, eta: Eta) -> Mass:
        n = self.numbers
        c, L = self._split(eta)
        M, a, b = (
            L[:, None, None] * n.M,
            L[:, None] * n.a,
            (L**2)[:, None] * n.b + n.rotary_coupling,
        )
        pinned = self._pinned_rows(eta)
        for i, row in pinned:
            M, a, b = M.at[i].set(row.M), a.at[i].set(row.a), b.at[i].set(row.b)
        sweep = jnp.sum(a * c, axis=1)
        first, second = n.rigid[:, 1, 2], n.rigid[:, 2, 2]
        if any(self.through):
            tail = jnp.where(np.array(self.through), n.length - L, 0.0)
            through = np.array(self.through)
            first = jnp.where(through, 0.5 * n.mu * (L**2 - tail**2), first)
            second = jnp.where(through, n.mu * (L**3 + tail**3) / 3, second)
        polar = second + (band_square(M, c) if pinned else L * band_square(n.M, c))
        ahead, wide = jnp.zeros_like(n.a), None
        if self.stiffening:
            # Sections move back by u = -1/2 int w'^2. The moments int mu u and int mu xi u give all
            # terms of second order. The rest of u = U0 + U1 xi with the same moments keeps the mass
            # matrix positive definite.
            wide = -jnp.stack([band_apply(n.G, c), band_apply(n.H, c)], axis=2) / L[:, None, None]
            moments = 0.5 * mtv(wide, c)
            back = mv(inverse2(n.spread), moments)
            slopes = jnp.sum(wide[:, :, :, None] * inverse2(n.spread)[:, None], axis=2)
            first = first + moments[:, 0]
            polar = polar + 2 * L * moments[:, 1] + jnp.sum(back * moments, axis=1)
            ahead = wide[:, :, 0]
            lever = L[:, None, None] * jnp.stack([n.a, n.b], axis=2)
            b = b + mv(lever, back) - mv(slopes, mtv(lever, c))
        zero, m0 = jnp.zeros_like(L), n.rigid[:, 0, 0]
        zz = jnp.stack(
            [
                jnp.stack([m0, zero, -sweep], 1),
                jnp.stack([zero, m0, first], 1),
                jnp.stack([-sweep, first, polar], 1),
            ],
            1,
        )
        ze = jnp.stack([ahead, a, b], axis=1)
        side = corner = None
        if self._extends:
            on = jnp.asarray(self.through, eta.dtype)
            couple = [m0, jnp.sum(n.e * c, axis=1), L * jnp.sum(n.g * c, axis=1) - sweep]
            column = on[:, None] * jnp.stack(couple, axis=1)
            side = on[:, None] * band_apply(n.C, c)
            moving = m0 + jnp.sum(c * band_apply(n.F, c), axis=1) / L
            corner = jnp.where(np.array(self.through), moving, 1.0)
            for i, row in pinned:
                column, side = column.at[i].set(row.column), side.at[i].set(row.side)
                corner = corner.at[i].set(row.corner)
            ze = jnp.concatenate([ze, column[:, :, None]], axis=2)
        spread = None if wide is None else n.spread
        mass = Mass(zz, ze, Bordered(M + n.rotary, side, corner, wide, spread))
        for load in self.loads:
            mass = self._add(mass, load, eta)
        return self._add_borrowed(mass, eta, c)

    def _add(self, mass: Mass, load: Load, eta: Eta) -> Mass:
        """Add a payload, as a rigid body on its section."""
        b, m = load.stage, self.numbers.a.shape[1]
        station = self._station(eta, jnp.full_like(self.length, 1.0) * load.s)
        tip = self._section(eta, station, stretched=False)
        X = se2.adjoint_inverse(se3.Pose(tip.pose.rotation[b], tip.pose.position[b]))
        S, inertia = tip.S[b], load.inertia
        zz = mass.zz.at[b].add(X.T @ inertia @ X)
        ze = mass.ze.at[b].add(X.T @ inertia @ S)
        IS = inertia @ S
        table = self._table(b)
        place = jnp.floor(station.xi[b] * table.elements).astype(int)
        element = jnp.clip(place, 0, table.elements - 1)
        if station.drift is not None and self.pinned[b]:
            element = station.drift.element[b]
        index = jnp.asarray(table.index)[element]
        picked = jnp.minimum(index, m - 1)
        block = jnp.sum(S[:, picked][:, :, None] * IS[:, picked][:, None, :], axis=0)
        own = to_band(jnp.where(index < table.size, index, m)[None], block[None], m)
        ee = eqx.tree_at(lambda e: e.band, mass.ee, mass.ee.band.at[b].add(own))
        if self._extends:
            outer = IS[:, m] @ S
            ee = Bordered(ee.band, ee.side.at[b].add(outer[:m]), ee.corner.at[b].add(outer[m]))
        return Mass(zz, ze, ee)

    def _add_borrowed(self, mass: Mass, eta: Eta, c: Eta) -> Mass:
        """Add point masses at pinned contacts.

        A straight carrier alone does not resist a motion of the contact: its elimination would be
        singular.
        """
        zz, ze, ee = mass.zz, mass.ze, mass.ee
        band, corner = ee.band, ee.corner
        for b in np.flatnonzero(self.pinned):
            assert self.borrowed is not None  # it comes with pinned contacts
            m, d, k = self.borrowed[b], eta[b, -1], contact_node(self._table(b).elements)[0]
            w, none = c[b, k], jnp.zeros_like(d)
            one = none + 1
            rows = [[one, none, -w], [none, one, d], [-w, d, d**2 + w**2]]
            zz = zz.at[b].add(m * jnp.stack([jnp.stack(row) for row in rows]))
            ze = ze.at[b, 1, k].add(m).at[b, 2, k].add(m * d)
            ze = ze.at[b, 0, -1].add(m).at[b, 2, -1].add(-m * w)
            band, corner = band.at[b, k, BAND].add(m), corner.at[b].add(m)
        return Mass(zz, ze, Bordered(band, ee.side, corner, ee.wide, ee.spread))

    def returned(self):
        return self.taken

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return bordered_apply(mass.ee, x)

    # --- velocity products and gradients
    def bias(self, eta: Eta, rate: Eta, z: Twists) -> tuple[Twists, Eta]:
        if self._plain:
            return self._plain_bias(eta, rate, z)

        # Lagrange's equations in the moving frame, from the mass matrices.
        def momenta(eta):
            mass = self.mass(eta)
            return mv(mass.zz, z) + mv(mass.ze, rate), mtv(mass.ze, z) + self.apply(mass, rate)

        def kinetic(eta):
            wrench, shape = momenta(eta)
            return 0.5 * (jnp.sum(z * wrench) + jnp.sum(rate * shape))

        (p, _), (p_rate, shape_rate) = jax.jvp(momenta, (eta,), (rate,))
        wrench = p_rate - jax.vmap(lambda z, p: se2.ad_star(z) @ p)(z, p)
        return wrench, shape_rate - jax.grad(kinetic)(eta)

    @property
    def _plain(self) -> bool:
        """Whether length and mass are constant: only moments of w depend on the shape then."""
        return not self._extends and not self.stiffening and not self.loads

    def _plain_bias(self, c: Eta, rate: Eta, z: Twists):
        n, L = self.numbers, self.numbers.length
        u, spin = z[:, 0], z[:, 2]
        Mc = band_apply(n.M, c)
        sweep, polar = L * jnp.sum(n.a * c, axis=1), n.rigid[:, 2, 2] + L * jnp.sum(c * Mc, axis=1)
        sweep_rate, polar_rate = L * jnp.sum(n.a * rate, axis=1), 2 * L * jnp.sum(rate * Mc, axis=1)
        m0, first = n.rigid[:, 0, 0], n.rigid[:, 1, 2]
        couple = jnp.sum(((L**2)[:, None] * n.b + n.rotary_coupling) * rate, axis=1)
        p = jnp.stack(
            [
                m0 * u - sweep * spin,
                m0 * z[:, 1] + first * spin + sweep_rate,
                -sweep * u + first * z[:, 1] + polar * spin + couple,
            ],
            axis=1,
        )
        p_rate = jnp.stack(
            [-sweep_rate * spin, jnp.zeros_like(spin), polar_rate * spin - sweep_rate * u], axis=1
        )
        wrench = p_rate - jax.vmap(lambda z, p: se2.ad_star(z) @ p)(z, p)
        return wrench, (L * u * spin)[:, None] * n.a - (L * spin**2)[:, None] * Mc

    def kinetic_gradient(self, eta: Eta, motions: MotionPair) -> Eta:
        if not self._plain:
            return super().kinetic_gradient(eta, motions)
        n = self.numbers
        # Products of one motion with the other: u0 s1 + u1 s0 and 2 s0 s1.
        u, _, spin = _columns(motions.z)
        mixed, twice = jnp.sum(u * spin[::-1], axis=0), jnp.sum(spin * spin[::-1], axis=0)
        shape = twice[:, None] * band_apply(n.M, eta) - mixed[:, None] * n.a
        return (0.5 * n.length)[:, None] * shape

    def tip_gradient(
        self, eta: Eta, motions: MotionPair, wrench: Float[Array, "2 B dim"], space: ModuleType
    ) -> Eta:
        if not self._plain:
            return super().tip_gradient(eta, motions, wrench, space)
        # The tip is at (l, w), rotated by the slope; both are linear in the coefficients.
        at, L = self._end(eta.dtype), self.numbers.length
        w, slope = jnp.sum(at.f * eta, axis=1), jnp.sum(at.f1 * eta, axis=1) / L
        cos, sin = jnp.cos(slope)[None], jnp.sin(slope)[None]
        (zx, zy, spin), (fx, fy, _) = _columns(motions.z), _columns(wrench)
        x, y = zx - spin * w[None], zy + spin * L[None] + jnp.sum(at.f[None] * motions.rate, axis=2)
        ahead, across = cos * x + sin * y, cos * y - sin * x
        by_w = -0.5 * jnp.sum(spin * (cos * fx - sin * fy), axis=0)
        by_slope = 0.5 * jnp.sum(fx * across - fy * ahead, axis=0)
        on = jnp.asarray([t is not None for t in self.tables], eta.dtype)
        return on[:, None] * (by_w[:, None] * at.f + (by_slope / L)[:, None] * at.f1)
