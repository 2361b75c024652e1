"""Elastic links as beams of finite elements in a floating frame, clamped there: r = (s, w(s, t)), w = sum_j f_j(s/L) c_j.

L is the link's length, or, where the link runs through its joint (Pb), its free length d: the mesh then stretches with d, and d is one more shape coordinate.
A material point X keeps s = X + d - l, so that w changes at the rate  f_j c_j' + (1 - s/d) f_j'(s/d) c_j d'/d  (prime of f: in xi = s/d) and the tail
s < 0 lies straight in the guide. Everything else, convective terms and the configurational force included, follows by differentiating these energies.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam import Cubics
from flexjax.chain import AbstractLinks, Mass, Tip
from flexjax.chain._kinematics import mtv, mv
from flexjax.formulation.finite_element._banded import BandFactors, band_apply, band_factor, band_solve, to_band
from flexjax.formulation.finite_element._integrals import LinkNumbers, Load, local_functions
from flexjax.screw import se2, se3


class Bordered(eqx.Module):
    """A banded matrix with one dense row and column for the free length (``side`` and ``corner`` are None where no link runs through its joint)."""

    band: Float[Array, "B m w"]
    side: Float[Array, "B m"] | None
    corner: Float[Array, " B"] | None


class BorderedFactors(eqx.Module):
    band: BandFactors
    side: Array | None
    column: Array | None  # band^-1 side
    pivot: Array | None  # inverse of the Schur complement; zero where the free length is no unknown


class Station(eqx.Module):
    """A section of every link: position x, xi = x/L (at least 0), functions and their derivatives in xi, spread over all coefficients."""

    x: Float[Array, " B"]
    xi: Float[Array, " B"]
    out: Float[Array, " B"]  # 1 on the elastic part, 0 in the guide
    f: Float[Array, "B m"]
    f1: Float[Array, "B m"]
    f2: Float[Array, "B m"]


class FiniteElementLinks(AbstractLinks):
    """Shape coordinates (B, m), or (B, m + 1) with the free length last where ``through`` any joint. ``held``: stages whose free length is prescribed."""

    numbers: LinkNumbers
    loads: tuple[Load, ...]
    tables: tuple[Cubics | None, ...] = eqx.field(static=True)
    through: tuple[bool, ...] = eqx.field(static=True)
    held: tuple[bool, ...] = eqx.field(static=True)
    stiffening: bool = eqx.field(static=True)

    @property
    def length(self):
        return self.numbers.length

    @property
    def _extends(self) -> bool:
        return any(self.through)

    def _split(self, eta):
        """(coefficients, free lengths)."""
        m = self.numbers.a.shape[1]
        if not self._extends:
            return eta, self.numbers.length
        return eta[:, :m], jnp.where(np.array(self.through), eta[:, m], self.numbers.length)

    # --- inertia
    def mass(self, eta) -> Mass:
        n = self.numbers
        c, L = self._split(eta)
        Mc = band_apply(n.M, c)
        sweep = L * jnp.sum(n.a * c, axis=1)
        first, second = n.rigid[:, 1, 2], n.rigid[:, 2, 2]
        if self._extends:
            tail = jnp.where(np.array(self.through), n.length - L, 0.0)
            through = np.array(self.through)
            first = jnp.where(through, 0.5 * n.mu * (L**2 - tail**2), first)
            second = jnp.where(through, n.mu * (L**3 + tail**3) / 3, second)
        polar = second + L * jnp.sum(c * Mc, axis=1)
        ahead = jnp.zeros_like(n.a)
        if self.stiffening:
            Gc = band_apply(n.G, c)
            first = first - 0.5 * jnp.sum(c * Gc, axis=1) / L
            polar = polar - jnp.sum(c * band_apply(n.H, c), axis=1)
            ahead = -Gc / L[:, None]
        zero, m0 = jnp.zeros_like(L), n.rigid[:, 0, 0]
        zz = jnp.stack([jnp.stack([m0, zero, -sweep], 1), jnp.stack([zero, m0, first], 1), jnp.stack([-sweep, first, polar], 1)], 1)
        ze = jnp.stack([ahead, L[:, None] * n.a, (L**2)[:, None] * n.b + n.pull], axis=1)
        side = corner = None
        if self._extends:
            on = jnp.asarray(self.through, eta.dtype)
            column = jnp.stack([m0, jnp.sum(n.e * c, axis=1), L * jnp.sum(n.g * c, axis=1) - sweep], axis=1)
            ze = jnp.concatenate([ze, (on[:, None] * column)[:, :, None]], axis=2)
            side = on[:, None] * band_apply(n.C, c)
            corner = jnp.where(np.array(self.through), m0 + jnp.sum(c * band_apply(n.F, c), axis=1) / L, 1.0)
        mass = Mass(zz, ze, Bordered(L[:, None, None] * n.M + n.turn, side, corner))
        for load in self.loads:
            mass = self._add(mass, load, eta)
        return mass

    def _add(self, mass: Mass, load: Load, eta) -> Mass:
        """A payload, as a rigid body on its section."""
        b, m = load.stage, self.numbers.a.shape[1]
        station = self._station(eta, jnp.full_like(self.length, 1.0) * load.s)
        tip = self._section(eta, station, stretched=False)
        X = se2.adjoint_inverse(se3.Pose(tip.pose.rotation[b], tip.pose.position[b]))
        S, inertia = tip.S[b], load.inertia
        zz = mass.zz.at[b].add(X.T @ inertia @ X)
        ze = mass.ze.at[b].add(X.T @ inertia @ S)
        IS = inertia @ S
        table = self.tables[b]
        element = jnp.clip(jnp.floor(station.xi[b] * table.elements).astype(int), 0, table.elements - 1)
        index = jnp.asarray(table.index)[element]
        picked = jnp.minimum(index, m - 1)
        block = jnp.sum(S[:, picked][:, :, None] * IS[:, picked][:, None, :], axis=0)
        ee = eqx.tree_at(lambda e: e.band, mass.ee, mass.ee.band.at[b].add(to_band(jnp.where(index < table.size, index, m)[None], block[None], m)))
        if self._extends:
            outer = IS[:, m] @ S
            ee = Bordered(ee.band, ee.side.at[b].add(outer[:m]), ee.corner.at[b].add(outer[m]))
        return Mass(zz, ze, ee)

    def apply(self, mass: Mass, x):
        ee, m = mass.ee, self.numbers.a.shape[1]
        if ee.side is None:
            return band_apply(ee.band, x)
        c, d = x[:, :m], x[:, m]
        return jnp.concatenate([band_apply(ee.band, c) + ee.side * d[:, None], (jnp.sum(ee.side * c, axis=1) + ee.corner * d)[:, None]], axis=1)

    def bias(self, eta, rate, z):
        if not self._extends and not self.stiffening and not self.loads:
            return self._plain_bias(eta, rate, z)

        # Lagrange's equations in the moving frame, straight from the mass matrices: exact for any dependence of them on the shape.
        def momenta(eta):
            mass = self.mass(eta)
            return mv(mass.zz, z) + mv(mass.ze, rate), mtv(mass.ze, z) + self.apply(mass, rate)

        def kinetic(eta):
            wrench, shape = momenta(eta)
            return 0.5 * (jnp.sum(z * wrench) + jnp.sum(rate * shape))

        (p, _), (p_rate, shape_rate) = jax.jvp(momenta, (eta,), (rate,))
        return p_rate - jax.vmap(lambda z, p: se2.ad_star(z) @ p)(z, p), shape_rate - jax.grad(kinetic)(eta)

    def _plain_bias(self, c, rate, z):
        """Of links of constant length: only the first and second moments of w depend on the shape."""
        n, L = self.numbers, self.numbers.length
        u, spin = z[:, 0], z[:, 2]
        Mc = band_apply(n.M, c)
        sweep, polar = L * jnp.sum(n.a * c, axis=1), n.rigid[:, 2, 2] + L * jnp.sum(c * Mc, axis=1)
        sweep_rate, polar_rate = L * jnp.sum(n.a * rate, axis=1), 2 * L * jnp.sum(rate * Mc, axis=1)
        m0, first = n.rigid[:, 0, 0], n.rigid[:, 1, 2]
        p = jnp.stack(
            [m0 * u - sweep * spin, m0 * z[:, 1] + first * spin + sweep_rate,
             -sweep * u + first * z[:, 1] + polar * spin + jnp.sum(((L**2)[:, None] * n.b + n.pull) * rate, axis=1)], axis=1,
        )  # fmt: skip
        p_rate = jnp.stack([-sweep_rate * spin, jnp.zeros_like(spin), polar_rate * spin - sweep_rate * u], axis=1)
        wrench = p_rate - jax.vmap(lambda z, p: se2.ad_star(z) @ p)(z, p)
        return wrench, (L * u * spin)[:, None] * n.a - (L * spin**2)[:, None] * Mc

    # --- elasticity
    def elastic_energy(self, eta):
        c, L = self._split(eta)
        return 0.5 * jnp.sum(c * band_apply(self.numbers.K, c), axis=1) / L**3

    def elastic_force(self, eta):
        c, L = self._split(eta)
        Kc = band_apply(self.numbers.K, c)
        bend = Kc / (L**3)[:, None]
        if not self._extends:
            return bend
        # The configurational force that pushes a bent link out of its guide.
        push = jnp.where(np.array(self.through), -1.5 * jnp.sum(c * Kc, axis=1) / L**4, 0.0)
        return jnp.concatenate([bend, push[:, None]], axis=1)

    def damping_force(self, rate):
        # Links that run through a joint have no damping (refused), so the length is constant here.
        n, m = self.numbers, self.numbers.a.shape[1]
        c = rate[:, :m]
        force = (n.strain_rate / n.length**3)[:, None] * band_apply(n.K, c) + (n.drag * n.length)[:, None] * band_apply(n.M, c)
        return jnp.pad(force, ((0, 0), (0, rate.shape[1] - m)))

    # --- solves
    def stiffen(self, mass: Mass, extra) -> Mass:
        ee = mass.ee
        return Mass(mass.zz, mass.ze, Bordered(ee.band, ee.side, ee.corner + extra[:, -1]))

    def factor(self, eta, mass: Mass, cv, cq) -> BorderedFactors:
        n, ee = self.numbers, mass.ee
        band = ee.band
        if cq is not None:
            _, L = self._split(eta)
            bend = (cq + cv * n.strain_rate) / L**3
            band = band + bend[:, None, None] * n.K + (cv * n.drag * L)[:, None, None] * n.M
        factors = band_factor(band)
        if ee.side is None:
            return BorderedFactors(factors, None, None, None)
        column = band_solve(factors, ee.side[:, :, None])[:, :, 0]
        free = np.array(self.through) & ~np.array(self.held)
        schur = jnp.where(free, ee.corner - jnp.sum(ee.side * column, axis=1), 1.0)
        return BorderedFactors(factors, ee.side, column, jnp.where(free, 1.0 / schur, 0.0))

    def solve(self, factors: BorderedFactors, rhs):
        if factors.side is None:
            return band_solve(factors.band, rhs)
        m = self.numbers.a.shape[1]
        y = band_solve(factors.band, rhs[:, :m])
        d = factors.pivot[:, None] * (rhs[:, m] - jnp.sum(factors.side[:, :, None] * y, axis=1))
        return jnp.concatenate([y - factors.column[:, :, None] * d[:, None, :], d[:, None, :]], axis=1)

    # --- sections
    def _station(self, eta, s) -> Station:
        """Sections at material stations ``s`` in [0, 1], one on every link."""
        n, m = self.numbers, self.numbers.a.shape[1]
        _, L = self._split(eta)
        through = jnp.asarray(self.through, eta.dtype)
        x = s * n.length + through * (L - n.length)
        out = (x >= 0).astype(eta.dtype)
        xi = jnp.maximum(x / L, 0.0)
        powers, index, counts = self._padded_tables

        def row(powers, index, count, xi):
            element = jax.lax.stop_gradient(jnp.clip(jnp.floor(xi * count), 0, count - 1).astype(int))
            local = local_functions(powers[element], xi * count - element) * jnp.stack([jnp.ones_like(count), count, count**2])[:, None]
            return jnp.zeros((3, m + 1), eta.dtype).at[:, index[element]].add(local)[:, :m]

        f = jax.vmap(row)(jnp.asarray(powers, eta.dtype), jnp.asarray(index), jnp.asarray(counts, eta.dtype), xi) * out[:, None, None]
        return Station(x, xi, out, f[:, 0], f[:, 1], f[:, 2])

    @property
    def _padded_tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(powers (B, E, 4, 4), places of the coefficients (B, E, 4), numbers of elements (B,)) of all stages alike, so that traces do not grow with the
        links: no functions where a stage has no elastic link."""
        B, m = len(self.tables), self.numbers.a.shape[1]
        counts = np.array([1 if t is None else t.elements for t in self.tables])
        powers, index = np.zeros((B, counts.max(), 4, 4)), np.full((B, counts.max(), 4), m)
        for b, table in enumerate(self.tables):
            if table is not None:
                powers[b, : counts[b]] = table.powers
                index[b, : counts[b]] = np.where(table.index < table.size, table.index, m)
        return powers, index, counts

    def _shortening(self, c, L, xi):
        """-1/2 int_0^s w'^2 of every link, by elements."""
        nodes, weights = np.polynomial.legendre.leggauss(4)
        powers, index, counts = self._padded_tables

        def one(powers, index, count, c, xi, L):
            span = jnp.clip(xi * count - jnp.arange(powers.shape[0]), 0.0, 1.0)
            x = span[:, None] * jnp.asarray(0.5 * (nodes + 1), c.dtype)[None, :]
            slopes = jax.vmap(lambda p, row: jax.vmap(lambda s: local_functions(p, s)[1])(row))(powers, x)
            slope = jnp.sum(slopes * c[index][:, None, :], axis=2)
            square = jnp.sum(slope**2 * jnp.asarray(0.5 * weights, c.dtype)[None, :], axis=1)
            return -0.5 * jnp.sum(span * square) * count / L

        tables = (jnp.asarray(powers, c.dtype), jnp.asarray(index), jnp.asarray(counts, c.dtype))
        return jax.vmap(one)(*tables, jnp.pad(c, ((0, 0), (0, 1))), xi, L)

    def _section(self, eta, at: Station, stretched: bool = True) -> Tip:
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
            linear = jnp.concatenate([linear, (through[:, None] * jnp.stack([jnp.ones_like(w), w1 * rest], axis=1))[:, :, None]], axis=2)
            turning = jnp.concatenate([turning, (through * (w2 * rest - w1 / L) / L)[:, None]], axis=1)
        R = jnp.stack([jnp.stack([cos, -sin], 1), jnp.stack([sin, cos], 1)], 1)
        turned = jnp.stack(
            [cos[:, None] * linear[:, 0] + sin[:, None] * linear[:, 1], cos[:, None] * linear[:, 1] - sin[:, None] * linear[:, 0], turning], axis=1
        )
        return Tip(se3.Pose(R, on[:, None] * jnp.stack([x, w], axis=1)), on[:, None, None] * turned)

    def section(self, eta, s) -> Tip:
        return self._section(eta, self._station(eta, s))

    def tip(self, eta) -> Tip:
        if self._extends:
            return self.section(eta, jnp.ones_like(self.length))
        return self._section(eta, self._end(eta.dtype))

    def _end(self, dtype) -> Station:
        """The sections at the ends of links of constant length: plain numbers."""
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

    def strain(self, eta, s):
        at = self._station(eta, s)
        c, L = self._split(eta)
        w, curvature = jnp.sum(at.f * c, axis=1), jnp.sum(at.f2 * c, axis=1) / L**2
        zero = jnp.zeros_like(w)
        return jnp.stack([zero, w, zero], axis=1), jnp.stack([zero] * 5 + [curvature], axis=1)
