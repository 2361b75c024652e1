"""Elements of a link: their strain energy, forces and tangent in a stage, and the integrals of
stiffness, inertia and weight along the true axis.

Twists are on nodes, strains and wrenches on elements. Power is conserved because the same E
appears twice:

    Q' = E+ V_b - E- V_a          E+- = 1 +- ad(kappa)/2          kappa = Q + n_hat l
    wrench on node a: E-^T w,     on node b: -E+^T w

So V_a f_a + V_b f_b = -w Q' for any w: eq. (20) and its adjoint. Over a stage Q = Q* + h Q' is
linear in Q for given twists, (1 + h ad(Vm)) kappa = kappa* + h (V_b - V_a) with the mean twist Vm,
and is solved in closed form.

A section at the fraction x of its element moves with V(x) = (1 - x) T_a V_a + x T_b V_b. T rotates
from the axes of a node to those of the section and adds the offset from the chord to the arc (1 for
straight elements). Elements that do not deform have together the mass, the centre of mass and the
inertia of the rigid link, for any taper, pieces and curvature.

Constants without shear stiffness or rotary inertia are those of an Euler-Bernoulli beam. Sections
then move across the link by the cubic between both ends (`_cubic`), and a force across the element
meets the compliance of the element's own bending (`_across`). For small deflections this is
Hermite's element.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.mechanism import BeamProperties, beam_properties, centreline_pose
from flexjax.numerics.linalg._batch_last import materialise
from flexjax.numerics.linalg._components_first import eye_like, mm, mtv, mv, transpose
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import ad, coad, resolvent
from flexjax.robot import Link

# Gauss points of the mean gradient of a nonlinear strain energy over a step: exact for polynomials
# up to degree 8.
_NODES, _WEIGHTS = (tuple(map(float, x)) for x in np.polynomial.legendre.leggauss(4))

Strains = Float[Array, "d L N *b"]
ElementBlocks = Float[Array, "d d L N *b"]
# (1 + h ad(Vm))^-1 and kappa of a stage: forces and tangent both need them.
Kinematics = tuple[ElementBlocks, Strains]


class Elements(eqx.Module):
    """All elements of all links. A batch may stand behind the axes of all arrays.

    ``stiffness`` is C^-1 / l, as its diagonal (d, L, N) or in full (d, d, L, N). ``density`` is a
    nonlinear strain energy per length, U(q, stiffness times l), or None.
    """

    length: Float[Array, "L *b"]
    # n_hat l; for curved links rotated so that an undeformed element transforms twists as its arc
    # does (`cayley_screw`).
    rest: Strains
    shape: Strains  # n_hat l
    stiffness: Array
    tau: Float[Array, "1 L 1 *b"] | None  # strain-rate damping
    density: Callable | None = eqx.field(static=True)

    def _linear(self, Q: Strains) -> Strains:
        return self.stiffness * Q if self.stiffness.ndim == Q.ndim else mv(self.stiffness, Q)

    def _nonlinear_energy(self, density: Callable, Q: Float[Array, "d L N"]) -> Scalar:
        l = self.length[:, None]
        per_length = l.reshape((1,) * (self.stiffness.ndim - 2) + l.shape) * self.stiffness
        each = jax.vmap(jax.vmap(density, in_axes=-1), in_axes=-1)
        return jnp.sum(self.length[None] * each(Q / l[None], per_length))

    def energy(self, Q: Float[Array, "d L N"]) -> Scalar:
        """Total strain energy."""
        if self.density is None:
            return 0.5 * jnp.sum(Q * self._linear(Q))
        return self._nonlinear_energy(self.density, Q)

    def wrench(self, Q: Strains, start: Strains) -> Strains:
        """Elastic wrench of a stage that starts from ``start``.

        C^-1 q, or the mean of grad U over the midpoint step from start to 2 Q - start.
        """
        if self.density is None:
            return self._linear(Q)
        gradient = jax.grad(functools.partial(self._nonlinear_energy, self.density))
        end = 2.0 * Q - start
        parts = [
            0.5 * w * gradient(start + 0.5 * (1 + x) * (end - start))
            for x, w in zip(_NODES, _WEIGHTS, strict=True)
        ]
        return functools.reduce(operator.add, parts)

    def damped_wrench(
        self, Q: Strains, start: Strains, rate: Callable[[], Strains]
    ) -> tuple[Strains, Float[Array, "*b"]]:
        """(wrench with strain-rate damping C^-1 tau q', power dissipated)."""
        w = self.wrench(Q, start)
        if self.tau is None:
            return w, jnp.zeros(Q.shape[3:], Q.dtype)
        rates = rate()
        damped = self.tau * self._linear(rates)
        return w + damped, jnp.sum(damped * rates, axis=(0, 1, 2))

    # --- in a stage that starts from the strains ``start``; h has the axes of a vector
    def kinematics(
        self, start: Strains, h: Float[Array, "1 1 1 *b"], V: Float[Array, "d L K *b"]
    ) -> Kinematics:
        """((1 + h ad(Vm))^-1, kappa) for the twists V of the nodes."""

        def both():
            Va, Vb = V[:, :, :-1], V[:, :, 1:]
            inverse = resolvent(0.5 * h * (Va + Vb))
            return inverse, mv(inverse, start + self.rest + h * (Vb - Va))

        return materialise(jnp.ravel(h)[0], both) if V.ndim > 3 else both()

    def _stage_wrench(
        self, start: Strains, h: Float[Array, "1 1 1 *b"], Q: Strains
    ) -> tuple[Strains, Float[Array, "*b"]]:
        return self.damped_wrench(Q, start, lambda: (Q - start) / h)

    def forces(
        self, start: Strains, h: Float[Array, "1 1 1 *b"], kinematics: Kinematics
    ) -> tuple[Strains, Strains, Strains, Float[Array, "*b"]]:
        """(wrenches on nodes a, wrenches on nodes b, Q, power dissipated)."""
        kappa = kinematics[1]
        Q = kappa - self.rest
        w, loss = self._stage_wrench(start, h, Q)
        half = mtv(0.5 * ad(kappa), w)
        return w - half, -w - half, Q, loss

    def tangent(
        self, start: Strains, h: Float[Array, "1 1 1 *b"], kinematics: Kinematics
    ) -> tuple[ElementBlocks, ElementBlocks, ElementBlocks, ElementBlocks]:
        """Derivative of (f_a, f_b) with respect to (V_a, V_b): blocks aa, ab, ba, bb."""
        inverse, kappa = kinematics
        half, Q = 0.5 * ad(kappa), kappa - self.rest
        w, _ = self._stage_wrench(start, h, Q)
        eye = eye_like(half)
        plus, minus = transpose(eye + half), transpose(eye - half)
        if self.density is None and self.stiffness.ndim == Q.ndim:
            k = self.stiffness if self.tau is None else (1.0 + self.tau / h) * self.stiffness
            minus_K, plus_K = minus * k[None], plus * k[None]
        else:
            K = self._wrench_slope(Q, start, h)
            minus_K, plus_K = mm(minus, K), mm(plus, K)
        W, G = 0.5 * coad(w), h[None] * inverse
        Ga, Gb = mm(minus_K - W, G), mm(plus_K + W, G)
        Ha, Hb = mm(Ga, half), mm(Gb, half)
        return Ha - Ga, Ga + Ha, Gb - Hb, -Gb - Hb

    def _wrench_slope(
        self, Q: Strains, start: Strains, h: Float[Array, "1 1 1 *b"]
    ) -> ElementBlocks:
        """Derivative of the wrench with damping with respect to the strain."""
        full = self.stiffness
        if full.ndim == Q.ndim:
            full = eye_like(full[:, None]) * full[None]
        K = full
        if self.density is not None:
            # An element's wrench depends on its own strain only: d columns for all elements.
            unit = jnp.eye(Q.shape[0], dtype=Q.dtype)[:, :, None, None]
            columns = [
                jax.jvp(lambda q: self.wrench(q, start), (Q,), (jnp.broadcast_to(e, Q.shape),))[1]
                for e in unit
            ]
            K = jnp.stack(columns, axis=1)
        return K if self.tau is None else K + (self.tau / h)[None] * full


def strain_rate(kappa: Strains, V: Float[Array, "d L K"]) -> Strains:
    """Q' of the elements."""
    Va, Vb = V[:, :, :-1], V[:, :, 1:]
    return Vb - Va + 0.5 * mv(ad(kappa), Va + Vb)


def station_weights(s: Scalar, n: int) -> Float[Array, " K"]:
    """Linear shape functions of the nodes at station s.

    On a node they have a kink. Their derivative there is that of the element towards the tip, at
    the tip that of the last element.
    """
    element = jnp.clip(jnp.floor(lax.stop_gradient(s) * n), 0, n - 1)
    part, node = s * n - element, jnp.arange(n + 1, dtype=s.dtype)
    return jnp.where(node == element, 1.0 - part, jnp.where(node == element + 1, part, 0.0))


# --- integrals over the elements of one link, in space
# Gauss points on every part of an element in one piece: the rotary inertia of a tapered section is
# quartic in s, times two linear shape functions.
_POINTS = 5


class ElementTable(eqx.Module):
    """Integrals over each element of a link; ``coupling`` is its diagonal (n, 6) for straight
    links."""

    stiffness: Float[Array, "n 6"]  # per length, from the mean compliance
    inertia: Float[Array, "n 6"]  # of the sections, in their own axes
    first: Float[Array, "n 6 6"]  # inertia of the first node
    last: Float[Array, "n 6 6"]  # of the last node
    coupling: Array
    weight: Float[Array, "n 2"]  # mass whose weight acts on either node
    moment: Float[Array, "n 2 3"]  # its first moment about the node

    def nodal(self) -> tuple[Array, Array, Array]:
        """(inertia (n+1, 6, 6), mass (n+1,), first moment of mass (n+1, 3)) of the nodes."""
        return (
            _to_nodes(self.first, self.last),
            _to_nodes(self.weight[:, 0], self.weight[:, 1]),
            _to_nodes(self.moment[:, 0], self.moment[:, 1]),
        )


def _to_nodes(a: Array, b: Array) -> Array:
    pad = jnp.zeros_like(a[:1])
    return jnp.concatenate([a, pad]) + jnp.concatenate([pad, b])


def curved(link: Link) -> bool:
    """Whether the elements of a link are arcs (static)."""
    return link.curvature is not None and not link.rigid


def without_shear(link: Link) -> tuple[bool, bool]:
    """Whether the constants of a link have no shear along y, and along z (static)."""
    return _missing(link, "GAy"), _missing(link, "GAz")


def cubic_planes(link: Link) -> tuple[bool, bool]:
    """Whether sections move along y, and along z, by a cubic (static): without shear or rotary
    inertia."""
    y, z = without_shear(link)
    return y or _missing(link, "rhoIz"), z or _missing(link, "rhoIy")


def _missing(link: Link, key: str) -> bool:
    given = [piece.constants for piece in link.pieces or (link,)]
    return any(c is not None and getattr(c, key) is None for c in given)


def couples_fully(link: Link) -> bool:
    """Whether inertia couples the translation of a node with the rotation of the next (static)."""
    return not link.rigid and (curved(link) or any(cubic_planes(link)))


def _shares(link: Link) -> Link:
    """The link with fractions of its pieces divided by their sum: each of them, also the last, then
    has a derivative."""
    if not link.pieces:
        return link
    total = sum(piece.fraction for piece in link.pieces)
    return dataclasses.replace(
        link,
        pieces=tuple(
            dataclasses.replace(piece, fraction=piece.fraction / total) for piece in link.pieces
        ),
    )


def _stations(link: Link, n: int) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """(fractions x of the elements, weights): Gauss points on every part of an element that lies in
    one piece."""
    dtype = link.length.dtype
    fractions = jnp.stack([p.fraction for p in link.pieces]) if link.pieces else jnp.ones(1, dtype)
    ends = jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(fractions[:-1]), jnp.ones(1, dtype)])
    begin = jnp.arange(n, dtype=dtype)[:, None] / n
    low, high = jnp.maximum(begin, ends[None, :-1]), jnp.minimum(begin + 1 / n, ends[None, 1:])
    # A border of pieces on a node belongs to both elements by half: its derivative is the mean
    # of the slopes to either side.
    span = n * jnp.maximum(high - low, 0.0)
    x, w = np.polynomial.legendre.leggauss(_POINTS)
    x, w = jnp.asarray(0.5 * (x + 1), dtype), jnp.asarray(0.5 * w, dtype)
    at = n * (low - begin)[..., None] + span[..., None] * x[None, None]
    return jnp.clip(at, 0.0, 1.0).reshape(n, -1), (span[..., None] * w[None, None]).reshape(n, -1)


def section_maps(link: Link, n: int, x: Scalar) -> tuple[Array, Array, Array, Array]:
    """(T_a, T_b) (6, 6) of a section at the fraction x of an element, and the offset (3,) from the
    chord to it in the axes of either node."""
    end, here = (centreline_pose(link, part / n) for part in (jnp.ones_like(x), x))
    off = here.position - x * end.position
    last = se3.Pose(end.rotation.T @ here.rotation, end.rotation.T @ off)
    return (
        se3.adjoint_inverse(se3.Pose(here.rotation, off)),
        se3.adjoint_inverse(last),
        off,
        last.position,
    )


class _Quadrature(eqx.Module):
    """Points on the elements of a link: fractions x, weights times length, sections."""

    link: Link
    l: Scalar  # length of an element
    x: Float[Array, "n m"]
    dx: Float[Array, "n m"]
    sections: BeamProperties  # (n, m) each

    @property
    def n(self) -> int:
        return self.x.shape[0]

    def over(self, values: Float[Array, "n m *c"], shape: Array | None = None) -> Array:
        """Integral over each element of ``values`` times a shape (n, m)."""
        factor = self.dx if shape is None else self.dx * shape
        return jnp.sum(factor.reshape(*factor.shape, *(1,) * (values.ndim - 2)) * values, axis=1)

    def inertia(
        self, left: Array, sections: Array, right: Array, shape: Array | None = None
    ) -> Array:
        """Integral of left^T (inertia of the sections) right."""
        return self.over(jnp.einsum("nmki,nmk,nmkj->nmij", left, sections, right), shape)


def _quadrature(link: Link, n: int) -> _Quadrature:
    x, w = _stations(link, n)
    s = (jnp.arange(n, dtype=x.dtype)[:, None] + x) / n
    sections = jax.tree.map(lambda v: v.reshape(x.shape), beam_properties(link, s.reshape(-1)))
    l = link.length / n
    return _Quadrature(link, l, x, l * w, sections)


def element_table(link: Link, n: int, blend: float) -> ElementTable:
    """``blend``: 1 for the consistent inertia, 0 for the lumped one."""
    points = _quadrature(_shares(link), n)
    p, x, l, over = points.sections, points.x, points.l, points.over
    shear = jnp.stack([_across(g, EI, x, l) for g, EI in ((p.GAy, p.EIz), (p.GAz, p.EIy))], -1)
    others = 1.0 / jnp.stack([p.EA, p.GJ, p.EIy, p.EIz], axis=-1)
    compliance = over(jnp.concatenate([others[..., :1], shear, others[..., 1:]], axis=-1)) / l
    # Torsion and lumped nodes need an inertia. Without one it is that of a body as long as the
    # element, which vanishes with the square of the element's length.
    least = p.rhoA * l**2 / 12
    rotary = [jnp.where(r > 0, r, least) for r in (p.rhoIx, p.rhoIy, p.rhoIz)]
    inertia = jnp.stack([p.rhoA, p.rhoA, p.rhoA, *rotary], axis=-1)
    weight = jnp.stack([over(p.rhoA, 1 - x), over(p.rhoA, x)], axis=1)
    if any(cubic_planes(link)):
        parts = _cubic_inertia(points, inertia, blend)
    elif couples_fully(link):
        parts = _arc_inertia(points, inertia, blend)
    else:
        eye = jnp.eye(6, dtype=x.dtype)[None]
        first, last, coupling = (over(inertia, shape) for shape in _shapes(x, blend))
        moment = jnp.zeros((n, 2, 3), x.dtype)
        parts = first[..., None] * eye, last[..., None] * eye, coupling, moment
    first, last, coupling, moment = parts
    return ElementTable(1.0 / compliance, over(inertia), first, last, coupling, weight, moment)


# Inertia of the first and the last node, their coupling, first moments of mass about them.
_Inertia = tuple[Float[Array, "n 6 6"], Float[Array, "n 6 6"], Array, Float[Array, "n 2 3"]]


def _shapes(x: Array, blend: float) -> tuple[Array, Array, Array]:
    """Products of the linear shape functions of both ends, blended with lumped ones."""
    return (1 - x) * (1 - blend * x), x * (1 - blend * (1 - x)), blend * x * (1 - x)


def _maps(points: _Quadrature) -> tuple[Array, Array, Float[Array, "n 2 3"]]:
    """(T_a, T_b (n, m, 6, 6), first moments of mass about both nodes)."""
    one = functools.partial(section_maps, points.link, points.n)
    Ta, Tb, off_a, off_b = jax.vmap(jax.vmap(one))(points.x)
    mass = points.sections.rhoA[..., None]
    ends = (off_a, 1 - points.x), (off_b, points.x)
    return Ta, Tb, jnp.stack([points.over(mass * off, shape) for off, shape in ends], axis=1)


def _arc_inertia(points: _Quadrature, inertia: Float[Array, "n m 6"], blend: float) -> _Inertia:
    Ta, Tb, moment = _maps(points)
    first, last, coupling = (
        points.inertia(left, inertia, right, shape)
        for left, right, shape in zip(
            (Ta, Tb, Ta), (Ta, Tb, Tb), _shapes(points.x, blend), strict=True
        )
    )
    return first, last, coupling, moment


def _cubic_inertia(points: _Quadrature, inertia: Float[Array, "n m 6"], blend: float) -> _Inertia:
    p, x, over = points.sections, points.x, points.over
    Ta, Tb, moment = _maps(points)
    ratios = [
        12 * over(_finite_inverse(g)) / (over(1.0 / EI) * points.l**2)
        for g, EI in ((p.GAy, p.EIz), (p.GAz, p.EIy))
    ]
    planes = cubic_planes(points.link)
    A, B = _cubic(points.link, points.n, x, ratios, planes)
    A, B = A @ Ta, B @ Tb
    own = jnp.stack([p.rhoA, p.rhoA, p.rhoA, inertia[..., 3], p.rhoIy, p.rhoIz], axis=-1)
    first, last = (
        blend * points.inertia(N, own, N) + (1 - blend) * points.inertia(T, inertia, T, share)
        for N, T, share in ((A, Ta, 1 - x), (B, Tb, x))
    )
    if all(planes):
        # Weight acts on the nodes by the same cubic: half of it on each, and a moment.
        chord, at_last = _chord(points.link, points.n)
        lever = 0.5 * blend * over(p.rhoA, x * (1 - x))[:, None]
        moment = moment + jnp.stack([lever * chord[None], -lever * at_last[None]], axis=1)
    return first, last, blend * points.inertia(A, own, B), moment


def _finite_inverse(stiffness: Array) -> Array:
    """1 / stiffness; zero where the stiffness is infinite."""
    infinite = jnp.isinf(stiffness)
    return jnp.where(infinite, 0.0, 1.0 / jnp.where(infinite, 1.0, stiffness))


def _across(GA: Array, EI: Array, x: Array, l: Scalar) -> Array:
    """Compliance per length against a force across the element.

    Without shear it is that of the bending which the force adds to the constant curvature of the
    element; its mean is l^2 / (12 EI).
    """
    return jnp.where(jnp.isinf(GA), (l * (x - 0.5)) ** 2 / EI, _finite_inverse(GA))


def _chord(link: Link, n: int) -> tuple[Array, Array]:
    """The chord (3,) of an element, from its first node to its last, in the axes of either."""
    end = centreline_pose(link, jnp.ones_like(link.length) / n)
    return end.position, end.rotation.T @ end.position


def _cubic(
    link: Link, n: int, x: Float[Array, "n m"], ratios: list[Array], planes: tuple[bool, bool]
) -> tuple[Float[Array, "n m 6 6"], Float[Array, "n m 6 6"]]:
    """(N_a, N_b) with V(x) = N_a T_a V_a + N_b T_b V_b; exact for rigid motion.

    Along y and z, where ``planes`` is True, this is the deflection of a beam whose ends move and
    rotate, with the ratios 12 EI/(GA l^2) (n,) of shear to bending.
    """
    chord, _ = _chord(link, n)
    towards = jax.vmap(jax.vmap(lambda x: centreline_pose(link, x / n).rotation.T @ chord))(x)
    eye = jnp.eye(6, dtype=x.dtype)[None, None]
    a, b = (1 - x)[..., None, None] * eye, x[..., None, None] * eye
    # A rotation w adds w x chord across the link.
    zero = jnp.zeros_like(x)
    across = (
        jnp.stack([-towards[..., 2], zero, towards[..., 0]], axis=-1),
        jnp.stack([towards[..., 1], -towards[..., 0], zero], axis=-1),
    )
    for row, phi, arm, on in zip((1, 2), ratios, across, planes, strict=True):
        if not on:
            continue
        phi = phi[:, None]
        shift = (2 * x**3 - 3 * x**2 + x) / (1 + phi)
        angle_a = (x**3 - (2 + phi / 2) * x**2 + (1 + phi / 2) * x) / (1 + phi)
        angle_b = (x**3 - (1 - phi / 2) * x**2 - phi / 2 * x) / (1 + phi)
        a = a.at[..., row, row].add(shift).at[..., row, 3:].add(angle_a[..., None] * arm)
        b = b.at[..., row, row].add(-shift).at[..., row, 3:].add(angle_b[..., None] * arm)
    return a, b
