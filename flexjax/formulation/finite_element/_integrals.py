"""Parameters of finite-element links: banded matrices and vectors over the unit interval."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float, Int

from flexjax.mechanism import PLANAR, beam_properties, payload_inertia, rigid_inertia
from flexjax.mechanism._grouping import vmap_groups
from flexjax.mechanism.chain import Layout
from flexjax.numerics.beam import Cubics
from flexjax.numerics.linalg._banded import to_band, to_vector
from flexjax.numerics.screw import se3
from flexjax.robot import Link, Payload, Robot

GAUSS = 6  # exact for products of cubics with sections that taper linearly in both dimensions


class LinkNumbers(eqx.Module):
    """Integrals over xi = s/L in [0, 1] with mass per length mu, bending stiffness EI, functions f.

    Derivatives of f are in xi. Stacked over stages: zero without an elastic link, with a unit mass
    matrix for the padding.
    """

    length: Float[Array, " B"]
    mu: Float[Array, " B"]  # mean mass per length
    EI: Float[Array, " B"]  # mean bending stiffness
    rhoI: Float[Array, " B"]  # mean rotary inertia of sections per length; zero without it
    rigid: Float[Array, "B 3 3"]  # inertia about the frame, undeformed
    M: Float[Array, "B m w"]  # mu f f, point masses included
    rotary: Float[Array, "B m w"]  # rotary inertia of sections and payloads, f' f'
    rotary_coupling: Float[Array, "B m"]  # its coupling with the frame's rotation, f'
    K: Float[Array, "B m w"]  # EI f'' f''
    Q: Float[Array, "B e 2 4"]  # the same element by element, as Q^T Q
    E: Float[Array, "B m w"]  # f' f'
    a: Float[Array, "B m"]  # mu f
    b: Float[Array, "B m"]  # mu xi f
    strain_rate: Float[Array, " B"]
    drag: Float[Array, " B"]  # mass-proportional damping
    G: Float[Array, "B m w"]  # (mass beyond xi) f' f'
    H: Float[Array, "B m w"]  # (first moment, over L, of the mass beyond xi) f' f'
    # Mass, first and second moment in xi of what moves back with stiffening.
    spread: Float[Array, "B 2 2"]
    guided: "Guided | None" = None  # where any link runs through its joint


class Guided(eqx.Module):
    """Integrals over xi of links that run through their joint, with g' = ((1 - xi) f')'."""

    C: Float[Array, "B m w"]  # mu (1 - xi) f_i f_j'
    F: Float[Array, "B m w"]  # mu (1 - xi)^2 f' f'
    e: Float[Array, "B m"]  # mu (1 - xi) f'
    g: Float[Array, "B m"]  # mu xi (1 - xi) f'
    S: Float[Array, "B m w"]  # rhoI f_i' g_j'
    T: Float[Array, "B m w"]  # rhoI g' g'


class Terms(NamedTuple):
    """What a model contains: foreshortening of this link, rotary inertia, links in guides."""

    stiffening: bool
    rotary: bool
    guided: bool


class Load(eqx.Module):
    """A payload: stage of its link (static), station, inertia about the section's frame."""

    stage: int = eqx.field(static=True)
    s: Float[Array, ""]
    inertia: Float[Array, "3 3"]


def local_functions(powers: Float[Array, "4 4"], x: Float[Array, ""]) -> Float[Array, "3 4"]:
    """Value, first and second derivative in x of an element's functions."""
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    rows = [
        jnp.stack([one, x, x**2, x**3]),
        jnp.stack([zero, one, 2 * x, 3 * x**2]),
        jnp.stack([zero, zero, 2 * one, 6 * x]),
    ]
    return jnp.stack(rows) @ powers


def _beyond(link: Link, payloads: tuple[Payload, ...], xi: Float[Array, " n"]):
    """Mass beyond xi and its first moment over the length, by Gauss points on [xi, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS)

    def one(start):
        s = start + (1 - start) * jnp.asarray(0.5 * (nodes + 1), start.dtype)
        share = (1 - start) * jnp.asarray(0.5 * weights, start.dtype)
        w = share * link.length * beam_properties(link, s).rhoA
        return jnp.sum(w), jnp.sum(w * s)

    mass, moment = jax.vmap(one)(xi)
    for p in payloads:
        mass = mass + jnp.where(xi < p.s, p.mass, 0.0)
        moment = moment + jnp.where(xi < p.s, p.mass * _ahead(link, p), 0.0)
    return mass, moment


def _ahead(link: Link, payload: Payload):
    return payload.s if payload.offset is None else payload.s + payload.offset[0] / link.length


def _powers(xi: Float[Array, ""]):
    """(1, xi) times (1, xi)."""
    one = jnp.ones_like(xi)
    return jnp.stack([jnp.stack([one, xi]), jnp.stack([xi, xi**2])])


def folds(robot: Robot, payload: Payload, pinned: frozenset[str]) -> bool:
    """Whether a payload has constant coefficients: on the centreline, of a link with fixed mesh."""
    if payload.link in pinned:
        return False
    through = any(j.child == payload.link and j.telescopes for j in robot.tree_joints)
    return payload.offset is None and not through


def _roots(
    cubics: Cubics, element: Array, x: Float[Array, "p q"], EI: Float[Array, "p q"], count: int
) -> Float[Array, "count 2 4"]:
    """Roots of the elements' stiffness, from stiffness times weight at points x of elements.

    Curvature is linear in an element: two coordinates, with functions 1 and sqrt 3 (2 x - 1), in
    which EI is a 2 x 2 matrix.
    """
    phi = jnp.stack([jnp.ones_like(x), 3**0.5 * (2 * x - 1)])
    parts = jnp.sum(EI[None, None] * phi[:, None] * phi[None, :], axis=3)
    D = jnp.zeros((2, 2, cubics.elements), EI.dtype).at[:, :, element].add(parts)
    first = jnp.sqrt(D[0, 0])
    mixed = D[0, 1] / first
    second = jnp.sqrt(D[1, 1] - mixed**2)
    powers = jnp.asarray(cubics.powers, EI.dtype) * cubics.elements**2
    mean, slope = 2 * powers[:, 2] + 3 * powers[:, 3], 3**0.5 * powers[:, 3]
    Q = jnp.stack([first[:, None] * mean + mixed[:, None] * slope, second[:, None] * slope], axis=1)
    return jnp.pad(Q, ((0, count - cubics.elements), (0, 0), (0, 0)))


def _points(
    link: Link, n: int
) -> tuple[Int[Array, " p"], Float[Array, "p q"], Float[Array, "p q"]]:
    """Elements, and Gauss points and weights in them, of all intervals of a link."""
    dtype = link.length.dtype
    nodes = jnp.asarray(np.arange(n + 1) / n, dtype)
    if link.pieces:
        # Borders between pieces cut elements, so that jumps of the section cost no accuracy.
        starts = jnp.cumsum(jnp.stack([p.fraction for p in link.pieces]))[:-1]
        nodes = jnp.sort(jnp.concatenate([nodes, starts.astype(dtype)]))
    x, w = np.polynomial.legendre.leggauss(GAUSS)
    span = jnp.diff(nodes)
    element = jnp.clip(jnp.floor(0.5 * (nodes[1:] + nodes[:-1]) * n).astype(int), 0, n - 1)
    xi = nodes[:-1, None] + span[:, None] * jnp.asarray(0.5 * (x + 1), dtype)[None, :]
    return element, xi, span[:, None] * jnp.asarray(0.5 * w, dtype)[None, :]


def _functions(
    cubics: Cubics, element: Int[Array, " p"], xi: Float[Array, "p q"], size: int
) -> tuple[Int[Array, "p 4"], tuple[Array, Array, Array]]:
    """Coefficients of the functions in each interval (``size``: none), and value, slope and
    curvature of the functions at the points."""
    n = cubics.elements
    powers, index = (
        jnp.asarray(cubics.powers, xi.dtype)[element],
        jnp.asarray(cubics.index)[element],
    )
    f = jax.vmap(lambda p, e, row: jax.vmap(lambda s: local_functions(p, s * n - e))(row))(
        powers, element.astype(xi.dtype), xi
    )
    index = jnp.where(index < cubics.size, index, size)
    return index, (f[:, :, 0], f[:, :, 1] * n, f[:, :, 2] * n**2)


def _damping(link: Link) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Time constant of strain-rate damping, and rate of mass-proportional damping."""
    given, zero = link.damping, jnp.zeros_like(link.length)
    if given is None:
        return zero, zero
    tau, drag = (zero if x is None else x for x in (given.strain_rate, given.mass))
    return tau, drag


class _Folded(NamedTuple):
    """Integrals to which payloads on the centreline add; as in ``LinkNumbers``."""

    M: Float[Array, "m w"]
    rotary: Float[Array, "m w"]
    rotary_coupling: Float[Array, " m"]
    a: Float[Array, " m"]
    b: Float[Array, " m"]
    rigid: Float[Array, "3 3"]


def _with_payload(parts: _Folded, payload: Payload, cubics: Cubics, L: Float[Array, ""]) -> _Folded:
    p, n, size = payload, cubics.elements, parts.a.shape[0]
    at = jnp.clip(jnp.floor(p.s * n).astype(int), 0, n - 1)
    f = local_functions(jnp.asarray(cubics.powers, L.dtype)[at], p.s * n - at)
    where = jnp.asarray(np.where(cubics.index < cubics.size, cubics.index, size))[at][None]
    inertia = payload_inertia(p, se3.identity(L.dtype))
    m, J = inertia[0, 0], inertia[5, 5]
    slopes = f[1][None, :, None] * f[1][None, None, :]
    x = L * p.s
    lever = jnp.stack([jnp.zeros_like(x), m * x])
    own = jnp.diag(jnp.stack([m, m, m * x**2 + J]))
    return _Folded(
        parts.M + to_band(where, m / L * f[0][None, :, None] * f[0][None, None, :], size),
        parts.rotary + to_band(where, J / L**2 * n**2 * slopes, size),
        parts.rotary_coupling + to_vector(where, J / L * n * f[1][None], size),
        parts.a + to_vector(where, m / L * f[0][None], size),
        parts.b + to_vector(where, m * p.s / L * f[0][None], size),
        parts.rigid + own.at[2, :2].add(lever).at[:2, 2].add(lever),
    )


def link_numbers(
    link: Link,
    folded: tuple[Payload, ...],
    others: tuple[Payload, ...],
    cubics: Cubics,
    size: int,
    elements: int,
    terms: Terms,
) -> LinkNumbers:
    """Integrals of one link with the payloads in its mass matrix, padded to ``size``."""
    L, n = link.length, cubics.elements
    element, xi, weight = _points(link, n)
    index, (f0, f1, f2) = _functions(cubics, element, xi, size)
    rest, shape, props = 1 - xi, xi.shape, beam_properties(link, xi.reshape(-1))
    mu, EI = weight * props.rhoA.reshape(shape), weight * props.EIz.reshape(shape)

    def band(c, left, right):
        return to_band(index, jnp.einsum("eq,eqa,eqb->eab", c, left, right), size)

    def vector(c, values):
        return to_vector(index, jnp.einsum("eq,eqa->ea", c, values), size)

    M = band(mu, f0, f0)
    a, b = vector(mu, f0), vector(mu * xi, f0)
    rhoI = weight * props.rhoIz.reshape(shape) if terms.rotary else jnp.zeros_like(mu)
    rotary, rotary_coupling = jnp.zeros_like(M), jnp.zeros_like(a)
    if terms.rotary:
        rotary, rotary_coupling = band(rhoI, f1, f1) / L, vector(rhoI, f1)
    # Without rotary inertia of slices (eq. 8 of the paper) the rigid body has none either.
    polar = jnp.sum(mu * xi**2) * L**3 + jnp.sum(rhoI) * L
    rigid = rigid_inertia(link)[PLANAR][:, PLANAR].at[2, 2].set(polar)
    parts = _Folded(M, rotary, rotary_coupling, a, b, rigid)
    for payload in folded:
        parts = _with_payload(parts, payload, cubics, L)
    M, rotary, rotary_coupling, a, b, rigid = parts
    M = M.at[cubics.size :, 3].set(1.0)
    G, H, spread = jnp.zeros_like(M), jnp.zeros_like(M), jnp.eye(2, dtype=L.dtype)
    if terms.stiffening:
        mass, moment = _beyond(link, folded + others, xi.reshape(-1))
        G, H = (band(weight * y.reshape(shape), f1, f1) for y in (mass, moment))
        spread = L * jnp.sum(mu[None, None] * _powers(xi), axis=(2, 3)) + sum(
            p.mass * _powers(_ahead(link, p)) for p in folded + others
        )
    guided = None
    if terms.guided:
        along = rest[:, :, None] * f2 - f1
        guided = Guided(
            C=band(mu * rest, f0, f1),
            F=band(mu * rest**2, f1, f1),
            e=vector(mu * rest, f1),
            g=vector(mu * xi * rest, f1),
            S=band(rhoI, f1, along),
            T=band(rhoI, along, along),
        )
    tau, drag = _damping(link)
    return LinkNumbers(
        length=L,
        mu=jnp.sum(mu),
        EI=jnp.sum(EI),
        rhoI=jnp.sum(rhoI),
        rigid=rigid,
        M=M,
        rotary=rotary,
        rotary_coupling=rotary_coupling,
        K=band(EI, f2, f2),
        Q=_roots(cubics, element, xi * n - element[:, None], EI, elements),
        E=band(weight, f1, f1),
        a=a,
        b=b,
        strain_rate=tau,
        drag=drag,
        G=G,
        H=H,
        spread=spread,
        guided=guided,
    )


def _resting(like: LinkNumbers) -> LinkNumbers:
    blank = jtu.tree_map(jnp.zeros_like, like)
    unit = (jnp.ones_like(like.length), blank.M.at[:, 3].set(1.0), jnp.eye(2, dtype=blank.M.dtype))
    return eqx.tree_at(lambda n: (n.length, n.M, n.spread), blank, unit)


# Compiled as one: dozens of small operations one by one take seconds.
@eqx.filter_jit
def stacked_numbers(
    robot: Robot,
    layout: Layout,
    tables: tuple[Cubics | None, ...],
    size: int,
    terms: tuple[Terms, ...],
    pinned: frozenset[str],
) -> LinkNumbers:
    """Integrals of all stages; ``tables``: functions of each stage's link, None where rigid."""
    count = max(c.elements for c in tables if c is not None)
    some, like = next((i, c) for i, c in enumerate(tables) if c is not None)

    def numbers(what: tuple[Cubics | None, Terms], parts: tuple[Link, tuple, tuple]):
        cubics, own = what
        link, folded, others = parts
        table = like if cubics is None else cubics
        made = link_numbers(link, folded, others, table, size, count, own)
        return _resting(made) if cubics is None else made

    items = []
    for s, cubics, own in zip(layout.stages, tables, terms, strict=True):
        # A rigid link takes those of an elastic one for the shapes of its zeros.
        link = robot.links[(s if cubics is not None else layout.stages[some]).link]
        held = [
            (folds(robot, p, pinned), dataclasses.replace(p, name="", link=""))
            for p in robot.payloads
            if p.link == link.name
        ]
        folded, others = (tuple(p for on, p in held if on is which) for which in (True, False))
        items.append(((cubics, own), (dataclasses.replace(link, name=""), folded, others)))
    return vmap_groups(numbers, items)


def payload_loads(robot: Robot, layout: Layout, pinned: frozenset[str]) -> tuple[Load, ...]:
    """Payloads of elastic links that are not in the links' own mass matrices."""
    stage_of = {
        robot.links[s.link].name: i
        for i, (s, m) in enumerate(zip(layout.stages, layout.shapes, strict=True))
        if s.link >= 0 and m
    }
    eye = se3.identity(robot.gravity.dtype)
    return tuple(
        Load(stage_of[p.link], p.s, payload_inertia(p, eye)[PLANAR][:, PLANAR])
        for p in robot.payloads
        if p.link in stage_of and not folds(robot, p, pinned)
    )
