"""Elastic links as finite-element beams in a floating frame: r = (s, w), w = sum_j f_j(s/L) c_j.

The beam is clamped at the frame. L is the link's length or, if the link runs through its joint
(Pb), its free length d, which is then one more shape coordinate and stretches the mesh. A material
point X keeps s = X + d - l, so that w changes at the rate
    f_j c_j' + (1 - s/d) f_j'(s/d) c_j d'/d      (prime of f: in xi = s/d),
and the tail s < 0 is straight in the guide. All other terms, convective terms and the
configurational force among them, follow by differentiation of these energies.
"""

import dataclasses
from types import ModuleType
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax._types import ScalarLike
from flexjax.formulation.finite_element._bordered import (
    Bordered,
    BorderedFactors,
    bordered_apply,
    bordered_factor,
    bordered_solve,
    inverse2,
)
from flexjax.formulation.finite_element._integrals import LinkNumbers, Load, local_functions
from flexjax.formulation.finite_element._moving_mesh import (
    Pinned,
    contact_node,
    mesh_nodes,
    pinned_integrals,
    pinned_station,
)
from flexjax.mechanism import Curve
from flexjax.mechanism.chain import AbstractLinks, Bent, Eta, Mass, Tip, Twists
from flexjax.mechanism.chain._links import mass_form_gradient, tip_form_gradient
from flexjax.numerics.beam import Cubics, interpolation
from flexjax.numerics.linalg import mtv, mv
from flexjax.numerics.linalg._banded import (
    BAND,
    band_apply,
    band_square,
    from_elements,
    to_band,
    to_elements,
)
from flexjax.numerics.screw import se2, se3


class Station(eqx.Module):
    """A section of every link: position x, xi = x/L (at least 0), functions of all coefficients."""

    x: Float[Array, " B"]
    xi: Float[Array, " B"]
    out: Float[Array, " B"]  # 1 on the elastic part, 0 in the guide
    f: Float[Array, "B m"]
    f1: Float[Array, "B m"]
    f2: Float[Array, "B m"]
    drift: "Drift | None" = None  # where meshes have a node at a contact


class Drift(eqx.Module):
    """Change of a section per unit of the contact's coordinate; zero for fixed meshes."""

    x: Float[Array, " B"]
    f: Float[Array, "B m"]
    f1: Float[Array, "B m"]
    element: Array  # of the section, in its link


def _columns(x: Float[Array, "k B 3"]) -> list[Float[Array, "k B"]]:
    # In reverse mode one concatenation; an index each would be as many sums of padded arrays.
    return [column[:, :, 0] for column in jax.lax.split(x, (1, 1, 1), axis=2)]


class FiniteElementLinks(AbstractLinks):
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
    stiffening: bool = eqx.field(static=True)
    damped: bool = eqx.field(static=True)
    pinned: tuple[bool, ...] = eqx.field(static=True, default=())
    jumps: bool = eqx.field(static=True, default=False)
    borrowed: Float[Array, " B"] | None = None
    taken: Float[Array, "B 3 3"] | None = None

    @property
    def length(self):
        return self.numbers.length

    @property
    def _extends(self) -> bool:
        return any(self.through) or any(self.pinned)

    @property
    def _bordered(self) -> np.ndarray:
        """Stages whose last shape coordinate is a joint's."""
        through = np.array(self.through)
        return through | np.array(self.pinned, bool) if self.pinned else through

    def held_by(self, prescribed: tuple[bool, ...]) -> "FiniteElementLinks":
        return dataclasses.replace(self, held=prescribed)

    def _table(self, stage: int | np.integer) -> Cubics:
        table = self.tables[stage]
        assert table is not None  # asked only of stages with an elastic link
        return table

    def _pinned_rows(self, eta: Eta) -> list[tuple[int, Pinned]]:
        n, m = self.numbers, self.numbers.a.shape[1]

        def integrals(b: int) -> Pinned:
            table, constants = self._table(b), (n.length[b], n.mu[b], n.EI[b])
            return pinned_integrals(table, m, *constants, eta[b, m], eta[b, :m])

        return [(b, integrals(b)) for b, on in enumerate(self.pinned) if on]

    def _split(self, eta: Eta):
        """Coefficients and free lengths."""
        m = self.numbers.a.shape[1]
        if not self._extends:
            return eta, self.numbers.length
        return eta[:, :m], jnp.where(np.array(self.through), eta[:, m], self.numbers.length)

    # --- inertia
    def mass(self, eta: Eta) -> Mass:
        n = self.numbers
        c, L = self._split(eta)
        M, a, b = L[:, None, None] * n.M, L[:, None] * n.a, (L**2)[:, None] * n.b + n.pull
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
        mass = Mass(zz, ze, Bordered(M + n.turn, side, corner, wide, spread))
        for load in self.loads:
            mass = self._add(mass, load, eta)
        return self._add_borrowed(mass, eta, c)

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

    def apply(self, mass: Mass, x: Eta) -> Eta:
        return bordered_apply(mass.ee, x)

    @property
    def _plain(self) -> bool:
        """Whether length and mass are constant: only moments of w depend on the shape then."""
        return not self._extends and not self.stiffening and not self.loads

    def kinetic_gradient(
        self, eta: Eta, z: Float[Array, "2 B dim"], rate: Float[Array, "2 B m"]
    ) -> Eta:
        if not self._plain:
            return mass_form_gradient(self, eta, z, rate)
        n = self.numbers
        # Products of one motion with the other: u0 s1 + u1 s0 and 2 s0 s1.
        u, _, spin = _columns(z)
        mixed, twice = jnp.sum(u * spin[::-1], axis=0), jnp.sum(spin * spin[::-1], axis=0)
        shape = twice[:, None] * band_apply(n.M, eta) - mixed[:, None] * n.a
        return (0.5 * n.length)[:, None] * shape

    def tip_gradient(
        self,
        eta: Eta,
        z: Float[Array, "2 B dim"],
        rate: Float[Array, "2 B m"],
        wrench: Float[Array, "2 B dim"],
        space: ModuleType,
    ) -> Eta:
        if not self._plain:
            return tip_form_gradient(self, eta, z, rate, wrench, space)
        # The tip is at (l, w), rotated by the slope; both are linear in the coefficients.
        at, L = self._end(eta.dtype), self.numbers.length
        w, slope = jnp.sum(at.f * eta, axis=1), jnp.sum(at.f1 * eta, axis=1) / L
        cos, sin = jnp.cos(slope)[None], jnp.sin(slope)[None]
        (zx, zy, spin), (fx, fy, _) = _columns(z), _columns(wrench)
        x, y = zx - spin * w[None], zy + spin * L[None] + jnp.sum(at.f[None] * rate, axis=2)
        ahead, across = cos * x + sin * y, cos * y - sin * x
        by_w = -0.5 * jnp.sum(spin * (cos * fx - sin * fy), axis=0)
        by_slope = 0.5 * jnp.sum(fx * across - fy * ahead, axis=0)
        on = jnp.asarray([t is not None for t in self.tables], eta.dtype)
        return on[:, None] * (by_w[:, None] * at.f + (by_slope / L)[:, None] * at.f1)

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

    def _plain_bias(self, c: Eta, rate: Eta, z: Twists):
        n, L = self.numbers, self.numbers.length
        u, spin = z[:, 0], z[:, 2]
        Mc = band_apply(n.M, c)
        sweep, polar = L * jnp.sum(n.a * c, axis=1), n.rigid[:, 2, 2] + L * jnp.sum(c * Mc, axis=1)
        sweep_rate, polar_rate = L * jnp.sum(n.a * rate, axis=1), 2 * L * jnp.sum(rate * Mc, axis=1)
        m0, first = n.rigid[:, 0, 0], n.rigid[:, 1, 2]
        couple = jnp.sum(((L**2)[:, None] * n.b + n.pull) * rate, axis=1)
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
        bend = Kc / (L**3)[:, None]
        if not self._extends:
            return bend
        # The configurational force that pushes a deflected link out of its guide.
        push = jnp.where(np.array(self.through), -1.5 * jnp.sum(c * Kc, axis=1) / L**4, 0.0)
        return jnp.concatenate([bend, push[:, None]], axis=1)

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
        return Mass(mass.zz, mass.ze, Bordered(ee.band, ee.side, ee.corner + extra[:, -1]))

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

    def shaped(self, eta: Eta, bent: Bent, curve: Curve) -> Float[Array, " m"]:
        table = self._table(bent.stage)
        n = table.elements
        if bent.stage < len(self.pinned) and self.pinned[bent.stage]:
            # Nodes move with the contact, and slopes are in physical units.
            nodes = mesh_nodes(eta[bent.stage, -1], bent.length, n)
            value, slope, _ = curve(nodes / bent.length)
            return jnp.stack([value[0], slope[0] / bent.length], axis=1).reshape(-1)
        value, slope, _ = curve(np.arange(1, n + 1) / n)
        to_coefficients = jnp.asarray(interpolation(table), eta.dtype)
        return jnp.einsum("cdn,dn->c", to_coefficients, jnp.stack([value[0], slope[0] / n]))

    # --- sections
    def _station(self, eta: Eta, s: Float[Array, " B"]) -> Station:
        """Sections at material stations ``s`` in [0, 1], one on every link."""
        n, m = self.numbers, self.numbers.a.shape[1]
        _, L = self._split(eta)
        through = jnp.asarray(self.through, eta.dtype)
        x = s * n.length + through * (L - n.length)
        out = (x >= 0).astype(eta.dtype)
        xi = jnp.maximum(x / L, 0.0)

        def row(powers, index, count, xi):
            place = jnp.clip(jnp.floor(xi * count), 0, count - 1).astype(int)
            element = jax.lax.stop_gradient(place)
            scale = jnp.stack([jnp.ones_like(count), count, count**2])[:, None]
            local = local_functions(powers[element], xi * count - element) * scale
            return jnp.zeros((3, m + 1), eta.dtype).at[:, index[element]].add(local)[:, :m]

        f = jax.vmap(row)(*self._padded_tables(eta.dtype), xi) * out[:, None, None]
        return self._on_pinned(eta, Station(x, xi, out, f[:, 0], f[:, 1], f[:, 2]))

    def _on_pinned(self, eta: Eta, at: Station) -> Station:
        """``at`` with the sections of links that have a node at their contact."""
        if not any(self.pinned):
            return at
        n, m = self.numbers, self.numbers.a.shape[1]
        f, nothing = jnp.stack([at.f, at.f1, at.f2], axis=1), jnp.zeros_like(at.f)
        drift = Drift(jnp.zeros_like(at.x), nothing, nothing, jnp.zeros(at.x.shape, int))
        for b in np.flatnonzero(self.pinned):
            here, rate, element = pinned_station(self._table(b), m, n.length[b], eta[b, m], at.x[b])
            # Derivatives are in xi = x/L here.
            scale = jnp.stack([jnp.ones_like(at.x[b]), n.length[b], n.length[b] ** 2])
            f = f.at[b].set(here * scale[:, None])
            f_d, f1_d = drift.f.at[b].set(rate[0]), drift.f1.at[b].set(rate[1])
            drift = Drift(drift.x, f_d, f1_d, drift.element.at[b].set(element))
        return Station(at.x, at.xi, at.out, f[:, 0], f[:, 1], f[:, 2], drift)

    def _at_contacts(self, eta: Eta, at: Station) -> Station:
        """``at`` with the contacts of pinned links, whose deflection and slope are coefficients."""
        n, m = self.numbers, self.numbers.a.shape[1]
        x, f, f1, drift = at.x, at.f, at.f1, at.drift
        for b in np.flatnonzero(self.pinned):
            assert drift is not None  # made with the stations of pinned links
            w, slope = contact_node(self._table(b).elements)
            x, f = x.at[b].set(eta[b, m]), f.at[b].set(jnp.zeros(m, f.dtype).at[w].set(1.0))
            f1 = f1.at[b].set(jnp.zeros(m, f.dtype).at[slope].set(n.length[b]))
            f_d, f1_d = drift.f.at[b].set(0.0), drift.f1.at[b].set(0.0)
            drift = Drift(drift.x.at[b].set(1.0), f_d, f1_d, drift.element)
        return Station(x, at.xi, at.out, f, f1, at.f2, drift)

    def _padded_tables(self, dtype: DTypeLike) -> tuple[Array, Array, Array]:
        """Powers (B, E, 4, 4), indices of coefficients (B, E, 4) and elements (B,) of all stages.

        Stacked, so that traces do not grow with the links; no functions for rigid links.
        """
        B, m = len(self.tables), self.numbers.a.shape[1]
        counts = np.array([1 if t is None else t.elements for t in self.tables])
        powers, index = np.zeros((B, counts.max(), 4, 4)), np.full((B, counts.max(), 4), m)
        for b, table in enumerate(self.tables):
            if table is not None:
                powers[b, : counts[b]] = table.powers
                index[b, : counts[b]] = np.where(table.index < table.size, table.index, m)
        return jnp.asarray(powers, dtype), jnp.asarray(index), jnp.asarray(counts, dtype)

    def _shortening(self, c: Eta, L: Float[Array, " B"], xi: Float[Array, " B"]):
        """-1/2 int_0^s w'^2 of every link, by elements."""
        nodes, weights = np.polynomial.legendre.leggauss(4)

        def one(powers, index, count, c, xi, L):
            span = jnp.clip(xi * count - jnp.arange(powers.shape[0]), 0.0, 1.0)
            x = span[:, None] * jnp.asarray(0.5 * (nodes + 1), c.dtype)[None, :]
            at_points = jax.vmap(lambda p, s: local_functions(p, s)[1], in_axes=(None, 0))
            slopes = jax.vmap(at_points)(powers, x)
            slope = jnp.sum(slopes * c[index][:, None, :], axis=2)
            square = jnp.sum(slope**2 * jnp.asarray(0.5 * weights, c.dtype)[None, :], axis=1)
            return -0.5 * jnp.sum(span * square) * count / L

        return jax.vmap(one)(*self._padded_tables(c.dtype), jnp.pad(c, ((0, 0), (0, 1))), xi, L)

    def _section(self, eta: Eta, at: Station, stretched: bool = True) -> Tip:
        c, L = self._split(eta)
        w, w1, w2 = (jnp.sum(f * c, axis=1) for f in (at.f, at.f1, at.f2))
        on = jnp.asarray([t is not None for t in self.tables], eta.dtype)
        slope = w1 / L
        cos, sin = jnp.cos(slope), jnp.sin(slope)
        x, x_c = at.x, jnp.zeros_like(at.f)
        if self.stiffening and stretched:
            u, back = jax.vjp(lambda c: self._shortening(c, L, at.xi), c)
            x, x_c = x + u, back(jnp.ones_like(u))[0]
        linear = jnp.stack([x_c, at.f], axis=1)
        turning = at.f1 / L[:, None]
        if self._extends:
            rest = (1 - at.xi) / L
            through = jnp.asarray(self.through, eta.dtype)
            shift = through[:, None] * jnp.stack([jnp.ones_like(w), w1 * rest], axis=1)
            turn = through * (w2 * rest - w1 / L) / L
            if at.drift is not None:
                shift = shift + jnp.stack([at.drift.x, jnp.sum(at.drift.f * c, axis=1)], axis=1)
                turn = turn + jnp.sum(at.drift.f1 * c, axis=1)
            linear = jnp.concatenate([linear, shift[:, :, None]], axis=2)
            turning = jnp.concatenate([turning, turn[:, None]], axis=1)
        R = jnp.stack([jnp.stack([cos, -sin], 1), jnp.stack([sin, cos], 1)], 1)
        turned = jnp.stack(
            [
                cos[:, None] * linear[:, 0] + sin[:, None] * linear[:, 1],
                cos[:, None] * linear[:, 1] - sin[:, None] * linear[:, 0],
                turning,
            ],
            axis=1,
        )
        return Tip(se3.Pose(R, on[:, None] * jnp.stack([x, w], axis=1)), on[:, None, None] * turned)

    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        return self._section(eta, self._station(eta, s))

    def contact(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        if not self.jumps:
            return self.section(eta, s)
        # The paper's rule: deflection and slope of the distal node of the contact's element.
        counts = jnp.asarray([1 if t is None else t.elements for t in self.tables], s.dtype)
        node = jax.lax.stop_gradient(jnp.clip(jnp.ceil(s * counts), 1.0, counts) / counts)
        there = self.section(eta, node)
        position = there.pose.position.at[:, 0].add((s - node) * self.length)
        return Tip(se3.Pose(there.pose.rotation, position), there.S)

    def kink(
        self, eta: Eta, s: Float[Array, " B"], eta_rate: Eta, s_rate: Float[Array, " B"]
    ) -> Float[Array, " B"]:
        n, L = self.numbers, self._split(eta)[1]
        L1 = self._split(eta + eta_rate)[1]
        counts = jnp.asarray([1 if t is None else t.elements for t in self.tables], s.dtype)
        # In elements from the base, times the free length: linear along the path.
        x0, x1 = (counts * (s * n.length + L - n.length) for s, L in ((s, L), (s + s_rate, L1)))
        e0, e1 = x0 / L, x1 / L1
        border = jax.lax.stop_gradient(jnp.where(e1 > e0, jnp.floor(e0) + 1, jnp.ceil(e0) - 1))
        between = (border > jnp.minimum(e0, e1)) & (border < jnp.maximum(e0, e1))
        inside = (border > 0) & (border < counts) & between
        g0, g1 = x0 - border * L, x1 - border * L1
        return jnp.where(inside, g0 / jnp.where(inside, g0 - g1, 1.0), 1.0)

    def tip(self, eta: Eta) -> Tip:
        if self._extends:
            at = self._station(eta, jnp.ones_like(self.length))
            return self._section(eta, self._at_contacts(eta, at) if any(self.pinned) else at)
        return self._section(eta, self._end(eta.dtype))

    def _end(self, dtype: DTypeLike) -> Station:
        """The sections at the ends of links of constant length: no traced values."""
        m = self.numbers.a.shape[1]
        f = np.zeros((3, len(self.tables), m + 1))
        x = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 2.0, 6.0]])
        for b, table in enumerate(self.tables):
            if table is not None:
                count = table.elements
                index = np.where(table.index < table.size, table.index, m)[-1]
                f[:, b, index] += np.array([[1.0], [count], [count**2]]) * (x @ table.powers[-1])
        f = jnp.asarray(f[:, :, :m], dtype)
        one = jnp.ones(len(self.tables), dtype)
        return Station(self.numbers.length, one, one, f[0], f[1], f[2])

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        at = self._station(eta, s)
        c, L = self._split(eta)
        w, curvature = jnp.sum(at.f * c, axis=1), jnp.sum(at.f2 * c, axis=1) / L**2
        zero = jnp.zeros_like(w)
        return jnp.stack([zero, w, zero], axis=1), jnp.stack([zero] * 5 + [curvature], axis=1)
