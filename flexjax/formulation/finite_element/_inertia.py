"""Inertia of finite-element links: mass matrices, payloads, velocity products."""

import dataclasses
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

    # --- foreshortening
    def _wide(self, c: Eta) -> Float[Array, "B m 2"]:
        """Change of the moments of u = -1/2 int w'^2 with the shape; linear in the shape.

        The moments int mu u and int mu xi u give all terms of second order. The rest of
        u = U0 + U1 xi with the same moments keeps the mass matrix positive definite.
        """
        n = self.numbers
        columns = jnp.stack([band_apply(n.G, c), band_apply(n.H, c)], axis=2)
        return -columns / n.length[:, None, None]

    # --- mass matrices
    def mass(self, eta: Eta) -> Mass:
        n = self.numbers
        c, L = self._split(eta)
        M, a, b = (
            L[:, None, None] * n.M,
            L[:, None] * n.a,
            (L**2)[:, None] * n.b + n.rotary_coupling,
        )
        pinned, moment, rotary = self._pinned_rows(eta), M, n.rotary
        if self._extends:
            rotary = (n.length / L)[:, None, None] * rotary
        for i, row in pinned:
            M, a, b = M.at[i].set(row.M), a.at[i].set(row.a), b.at[i].set(row.b)
            moment, rotary = moment.at[i].set(row.moment), rotary.at[i].set(0.0)
        sweep = jnp.sum(a * c, axis=1)
        first, second = n.rigid[:, 1, 2], n.rigid[:, 2, 2]
        if any(self.through):
            tail = jnp.where(np.array(self.through), n.length - L, 0.0)
            through = np.array(self.through)
            first = jnp.where(through, 0.5 * n.mu * (L**2 - tail**2), first)
            around = n.mu * (L**3 + tail**3) / 3 + n.rhoI * n.length
            second = jnp.where(through, around, second)
        polar = second + (band_square(moment, c) if pinned else L * band_square(n.M, c))
        ahead, wide = jnp.zeros_like(n.a), None
        if self._stiffens:
            wide = self._wide(c)
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
            column, side, corner = self._border(c, L, sweep, pinned)
            ze = jnp.concatenate([ze, column[:, :, None]], axis=2)
        spread = None if wide is None else n.spread
        mass = Mass(zz, ze, Bordered(M + rotary, side, corner, wide, spread))
        for load in self.loads:
            mass = self._add(mass, load, eta)
        return self._add_borrowed(mass, eta, c)

    def _border(
        self, c: Eta, L: Float[Array, " B"], sweep: Float[Array, " B"], pinned: list
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B m"], Float[Array, " B"]]:
        """Coupling of the free length with the frame's twist and with the shape, its inertia."""
        n, g = self.numbers, self.numbers.guided
        through = np.array(self.through)
        on, m0 = jnp.asarray(through, c.dtype)[:, None], n.rigid[:, 0, 0]
        if g is None:
            column = jnp.zeros((c.shape[0], 3), c.dtype)
            side, corner = jnp.zeros_like(c), jnp.ones_like(L)
        else:
            couple = [m0, jnp.sum(g.e * c, axis=1), L * jnp.sum(g.g * c, axis=1) - sweep]
            column = on * jnp.stack(couple, axis=1)
            # Sections rotate at the rate f' c'/d + d' ((1 - xi) f')' c/d^2.
            side = on * (band_apply(g.C, c) + band_apply(g.S, c) / (L**2)[:, None])
            moving = m0 + band_square(g.F, c) / L + band_square(g.T, c) / L**3
            corner = jnp.where(through, moving, 1.0)
        for i, row in pinned:
            column, side = column.at[i].set(row.column), side.at[i].set(row.side)
            corner = corner.at[i].set(row.corner)
        return column, side, corner

    def _add(self, mass: Mass, load: Load, eta: Eta) -> Mass:
        """Add a payload, as a rigid body on its section."""
        b, m = load.stage, self.numbers.a.shape[1]
        station = self._station(eta, jnp.full_like(self.length, 1.0) * load.s)
        tip = self._section(eta, station)  # its shortening is in the moments
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
            side, corner = ee.side.at[b].add(outer[:m]), ee.corner.at[b].add(outer[m])
            ee = dataclasses.replace(ee, side=side, corner=corner)
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
        """Whether length and payloads are constant: velocity products are written out then."""
        return not self._extends and not self.loads

    def _plain_bias(self, c: Eta, rate: Eta, z: Twists):
        """Integrals of the accelerations of points (L xi + u, w) beyond those of z and the shape.

        In body axes: (-s v - s^2 x - 2 s w' + u'', s u - s^2 w + 2 s u').
        """
        n, L = self.numbers, self.numbers.length
        u, v, s = z[:, 0], z[:, 1], z[:, 2]
        Mc, m0 = L[:, None] * band_apply(n.M, c), n.rigid[:, 0, 0]
        first, sweep = n.rigid[:, 1, 2], L * jnp.sum(n.a * c, axis=1)
        across = L * jnp.sum(n.a * rate, axis=1)
        shape = (L * u * s)[:, None] * n.a - (s**2)[:, None] * Mc
        outwards = jnp.sum(rate * Mc, axis=1)  # half the rate of the moment of inertia
        fx, fy = -s * v * m0 - 2 * s * across, s * u * m0 - s**2 * sweep
        turn = s * v * sweep
        if self._stiffens:
            wide, P = self._wide(c), inverse2(n.spread)
            lever = L[:, None, None] * jnp.stack([n.a, n.b], axis=2)
            moments, moving = 0.5 * mtv(wide, c), mtv(wide, rate)
            jolt = mtv(self._wide(rate), rate)  # moments of u'' with a constant rate
            back_rate = mv(P, moving)
            first = first + moments[:, 0]
            levers, lever_rates = mtv(lever, c), mtv(lever, rate)
            outwards = outwards + L * moving[:, 1] + jnp.sum(mv(P, moments) * moving, axis=1)
            fx, fy = fx + jolt[:, 0], fy + 2 * s * moving[:, 0]
            turn = turn - jnp.sum(levers * mv(P, jolt), axis=1)
            along = jolt - (s * v)[:, None] * n.spread[:, 0] - (2 * s)[:, None] * lever_rates
            along = along - (s**2)[:, None] * self._distances(moments)
            shape = shape + mv(wide, mv(P, along)) + (2 * s)[:, None] * mv(lever, back_rate)
        fx, turn = fx - s**2 * first, turn + s * u * first + 2 * s * outwards
        return jnp.stack([fx, fy, turn], axis=1), shape

    def _distances(self, moments: Float[Array, "B 2"]) -> Float[Array, "B 2"]:
        """Moments int mu x and int mu xi x of the distance x = L xi + u."""
        n = self.numbers
        return n.length[:, None] * n.spread[:, 1] + moments

    def kinetic_gradient(self, eta: Eta, motions: MotionPair) -> Eta:
        if not self._plain:
            return super().kinetic_gradient(eta, motions)
        n, L = self.numbers, self.numbers.length
        # Products of one motion with the other: u0 s1 + u1 s0 and 2 s0 s1.
        u, v, s = _columns(motions.z)
        mixed, twice = jnp.sum(u * s[::-1], axis=0), jnp.sum(s * s[::-1], axis=0)
        shape = twice[:, None] * band_apply(n.M, eta) - mixed[:, None] * n.a
        shape = (0.5 * L)[:, None] * shape
        if not self._stiffens:
            return shape
        wide, P = self._wide(eta), inverse2(n.spread)
        lever = L[:, None, None] * jnp.stack([n.a, n.b], axis=2)
        moments, levers = 0.5 * mtv(wide, eta), mtv(lever, eta)
        distances = self._distances(moments)
        wide_rate = jax.vmap(self._wide)(motions.rate)
        moving, lever_rate = (
            jax.vmap(lambda r, x=x: mtv(x, r))(motions.rate) for x in (wide, lever)
        )
        # Moments of the velocities along and across.
        masses = n.spread[None, :, 0]
        along = u[..., None] * masses - s[..., None] * levers[None] + moving
        across = v[..., None] * masses + s[..., None] * distances[None] + lever_rate
        by_back = jnp.sum(s[..., None] * across[::-1], axis=0)
        shape = shape + 0.5 * mv(wide, mv(P, by_back))
        by_lever = jnp.sum(s[::-1, :, None] * moving, axis=0)
        shape = shape - 0.5 * mv(lever, mv(P, by_lever))
        by_rate = jax.vmap(mv, in_axes=(None, 0))(P, along[::-1])
        return shape + 0.5 * jnp.sum(jax.vmap(mv)(wide_rate, by_rate), axis=0)

    def tip_gradient(
        self, eta: Eta, motions: MotionPair, wrench: Float[Array, "2 B dim"], space: ModuleType
    ) -> Eta:
        if not self._plain:
            return super().tip_gradient(eta, motions, wrench, space)
        # The tip is at (l + u, w), rotated by the slope; w and slope are linear in the shape.
        at, L = self._end(eta.dtype), self.numbers.length
        w, slope = jnp.sum(at.f * eta, axis=1), jnp.sum(at.f1 * eta, axis=1) / L
        cos, sin = jnp.cos(slope)[None], jnp.sin(slope)[None]
        (zx, zy, s), (fx, fy, _) = _columns(motions.z), _columns(wrench)
        x, y = zx - s * w[None], zy + s * L[None] + jnp.sum(at.f[None] * motions.rate, axis=2)
        along, across = cos * fx - sin * fy, sin * fx + cos * fy  # forces in axes of the frame
        if self._stiffens:
            back, by_shape = self._back_at_end(eta)
            x = x + jnp.sum(by_shape[None] * motions.rate, axis=2)
            y = y + s * back[None]
        by_w = -0.5 * jnp.sum(s * along, axis=0)
        by_slope = 0.5 * jnp.sum(fx * (cos * y - sin * x) - fy * (cos * x + sin * y), axis=0)
        on = jnp.asarray([t is not None for t in self.tables], eta.dtype)
        total = by_w[:, None] * at.f + (by_slope / L)[:, None] * at.f1
        if self._stiffens:
            weighted = jnp.sum(along[..., None] * motions.rate, axis=0)
            total = total + 0.5 * jnp.sum(s * across, axis=0)[:, None] * by_shape
            total = total + 0.5 * self._back_at_end(weighted)[1]
        return on[:, None] * total
