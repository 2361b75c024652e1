"""Sections of finite-element links: functions at a station, pose, Jacobian, strain."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from flexjax.formulation.finite_element._integrals import LinkNumbers, local_functions
from flexjax.formulation.finite_element._moving_mesh import (
    Pinned,
    contact_node,
    mesh_nodes,
    pinned_integrals,
    pinned_station,
)
from flexjax.mechanism import Curve
from flexjax.mechanism.chain import AbstractSlidingLinks, Bent, Eta, Tip
from flexjax.numerics.beam import Cubics, interpolation
from flexjax.numerics.linalg._banded import band_apply
from flexjax.numerics.screw import se3

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


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


class AbstractMeshedLinks(AbstractSlidingLinks):
    """Links with a mesh; fields as in ``FiniteElementLinks``."""

    numbers: AbstractVar[LinkNumbers]
    tables: AbstractVar[tuple[Cubics | None, ...]]
    through: AbstractVar[tuple[bool, ...]]
    pinned: AbstractVar[tuple[bool, ...]]
    stiffening: AbstractVar[tuple[bool, ...]]
    jumps: AbstractVar[bool]

    # --- mesh
    @property
    def length(self):
        return self.numbers.length

    @property
    def _stiffens(self) -> bool:
        return any(self.stiffening)

    @property
    def _extends(self) -> bool:
        return any(self.through) or any(self.pinned)

    def _table(self, stage: int | np.integer) -> Cubics:
        table = self.tables[stage]
        assert table is not None  # asked only of stages with an elastic link
        return table

    def _split(self, eta: Eta):
        """Coefficients and free lengths."""
        m = self.numbers.a.shape[1]
        if not self._extends:
            return eta, self.numbers.length
        return eta[:, :m], jnp.where(np.array(self.through), eta[:, m], self.numbers.length)

    def _pinned_rows(self, eta: Eta) -> list[tuple[int, Pinned]]:
        n, m = self.numbers, self.numbers.a.shape[1]

        def integrals(b: int) -> Pinned:
            table, constants = self._table(b), (n.length[b], n.mu[b], n.EI[b], n.rhoI[b])
            return pinned_integrals(table, m, *constants, eta[b, m], eta[b, :m])

        return [(b, integrals(b)) for b, on in enumerate(self.pinned) if on]

    # --- functions at a station
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

    def _back_at_end(self, c: Eta) -> tuple[Float[Array, " B"], Eta]:
        """-1/2 int_0^L w'^2 of every link, and its derivative."""
        on = jnp.asarray(self.stiffening, c.dtype)
        by_shape = -(on / self.numbers.length)[:, None] * band_apply(self.numbers.E, c)
        return 0.5 * jnp.sum(by_shape * c, axis=1), by_shape

    def _back_at(self, c: Eta, L: Float[Array, " B"], xi: Float[Array, " B"]):
        """The same for -1/2 int_0^s w'^2."""
        on = jnp.asarray(self.stiffening, c.dtype)
        back, by_shape = jax.vjp(lambda c: on * self._shortening(c, L, xi), c)
        return back, by_shape(jnp.ones_like(back))[0]

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

    def _section(
        self, eta: Eta, at: Station, back: tuple[Float[Array, " B"], Eta] | None = None
    ) -> Tip:
        """Sections, which move ``back`` (with its derivative) with stiffening."""
        c, L = self._split(eta)
        w, w1, w2 = (jnp.sum(f * c, axis=1) for f in (at.f, at.f1, at.f2))
        on = jnp.asarray([t is not None for t in self.tables], eta.dtype)
        slope = w1 / L
        cos, sin = jnp.cos(slope), jnp.sin(slope)
        x, x_c = at.x, jnp.zeros_like(at.f)
        if back is not None:
            x, x_c = x + back[0], back[1]
        linear = jnp.stack([x_c, at.f], axis=1)
        angular = at.f1 / L[:, None]
        if self._extends:
            rest = (1 - at.xi) / L
            through = jnp.asarray(self.through, eta.dtype)
            shift = through[:, None] * jnp.stack([jnp.ones_like(w), w1 * rest], axis=1)
            angular_shift = through * (w2 * rest - w1 / L) / L
            if at.drift is not None:
                shift = shift + jnp.stack([at.drift.x, jnp.sum(at.drift.f * c, axis=1)], axis=1)
                angular_shift = angular_shift + jnp.sum(at.drift.f1 * c, axis=1)
            linear = jnp.concatenate([linear, shift[:, :, None]], axis=2)
            angular = jnp.concatenate([angular, angular_shift[:, None]], axis=1)
        R = jnp.stack([jnp.stack([cos, -sin], 1), jnp.stack([sin, cos], 1)], 1)
        jacobian = jnp.stack(
            [
                cos[:, None] * linear[:, 0] + sin[:, None] * linear[:, 1],
                cos[:, None] * linear[:, 1] - sin[:, None] * linear[:, 0],
                angular,
            ],
            axis=1,
        )
        return Tip(
            se3.Pose(R, on[:, None] * jnp.stack([x, w], axis=1)), on[:, None, None] * jacobian
        )

    def end_functions(self) -> np.ndarray:
        """Values, first and second derivatives (3, B, m) in xi of the functions at the ends."""
        m = self.numbers.a.shape[1]
        f = np.zeros((3, len(self.tables), m + 1))
        x = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 2.0, 6.0]])
        for b, table in enumerate(self.tables):
            if table is not None:
                count = table.elements
                index = np.where(table.index < table.size, table.index, m)[-1]
                f[:, b, index] += np.array([[1.0], [count], [count**2]]) * (x @ table.powers[-1])
        return f[:, :, :m]

    def _end(self, dtype: DTypeLike) -> Station:
        """The sections at the ends of links of constant length: no traced values."""
        f = jnp.asarray(self.end_functions(), dtype)
        one = jnp.ones(len(self.tables), dtype)
        return Station(self.numbers.length, one, one, f[0], f[1], f[2])

    # --- sections
    def section(self, eta: Eta, s: Float[Array, " B"]) -> Tip:
        at, back = self._station(eta, s), None
        if self._stiffens:
            back = self._back_at(*self._split(eta), at.xi)
        return self._section(eta, at, back)

    def tip(self, eta: Eta) -> Tip:
        back = self._back_at_end(self._split(eta)[0]) if self._stiffens else None
        if self._extends:
            at = self._station(eta, jnp.ones_like(self.length))
            at = self._at_contacts(eta, at) if any(self.pinned) else at
            return self._section(eta, at, back)
        return self._section(eta, self._end(eta.dtype), back)

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

    def strain(
        self, eta: Eta, s: Float[Array, " B"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 6"]]:
        at = self._station(eta, s)
        c, L = self._split(eta)
        w, curvature = jnp.sum(at.f * c, axis=1), jnp.sum(at.f2 * c, axis=1) / L**2
        back = zero = jnp.zeros_like(w)
        if self._stiffens:
            back = jnp.asarray(self.stiffening, c.dtype) * self._shortening(c, L, at.xi)
        return jnp.stack([back, w, zero], axis=1), jnp.stack([zero] * 5 + [curvature], axis=1)

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
