"""Parameters of modal links: inertia-shape integrals by quadrature, stiffness, damping."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from flexjax._rules import ruled
from flexjax.formulation.screw_synthesis._frame import FramedLinks
from flexjax.formulation.screw_synthesis._link import (
    LEVI_CIVITA,
    Integrals,
    ModalLinks,
    Points,
    fields,
    shortening,
)
from flexjax.mechanism import beam_properties, inertia_tensor, link_quadrature
from flexjax.mechanism._grouping import vmap_groups
from flexjax.mechanism.chain import Layout, Parameters
from flexjax.numerics.beam import ShapeFunctions
from flexjax.numerics.screw import se3
from flexjax.robot import Link, Payload, Robot


@ruled
def matrix_root(a: Float[Array, "n n"]):
    """Square root of a symmetric positive definite matrix.

    Its derivative solves X dX + dX X = dA, regular at the repeated eigenvalues of round links.
    """
    values, vectors = jnp.linalg.eigh(a)
    return (vectors * jnp.sqrt(values)[None, :]) @ vectors.T


@matrix_root.def_jvp
def _matrix_root_jvp(primals: Any, tangents: Any):
    (a,) = primals
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(a))
    sums = jnp.sqrt(values)[:, None] + jnp.sqrt(values)[None, :]

    def solve(_, b):
        return vectors @ ((vectors.T @ b @ vectors) / sums) @ vectors.T

    # A second derivative differentiates the equation, not the eigenvectors.
    X = matrix_root(a)
    sylvester = lambda Y: X @ Y + Y @ X
    return X, jax.lax.custom_linear_solve(sylvester, tangents[0], solve, symmetric=True)


def _damping(
    link: Link,
    Mee: Float[Array, "m m"],
    K: Float[Array, "m m"],
    mass_of_beam: Float[Array, "m m"],
):
    """D from strain rate, mass and modal damping."""
    damping, D = link.damping, jnp.zeros_like(K)
    if damping is None:
        return D
    if damping.strain_rate is not None:
        D = D + damping.strain_rate * K
    if damping.mass is not None:
        D = D + damping.mass * mass_of_beam
    if damping.modal is not None:
        # 2 zeta omega of every clamped mode: M^1/2 (M^-1/2 K M^-1/2)^1/2 M^1/2.
        root = matrix_root(Mee)
        back = jnp.linalg.inv(root)
        D = D + 2 * damping.modal * root @ matrix_root(back @ K @ back.T) @ root
    return D


def link_integrals(
    link: Link,
    payloads: tuple[Payload, ...],
    basis: ShapeFunctions,
    points: int,
    stiffening: bool,
    origin: float,
) -> tuple[Integrals, Points | None]:
    """Integrals of one link with its payloads, and its mass points with stiffening.

    A payload is a point with rotary inertia that moves as the section does, to first order in the
    rotation.
    """
    L = link.length
    s, w = link_quadrature(link, points)
    w = w * L
    props = beam_properties(link, s)
    f = jax.vmap(lambda x: fields(basis, L, x))(s)
    mu = w * props.rhoA
    J = jax.vmap(jnp.diag)(w[:, None] * jnp.stack([props.rhoIx, props.rhoIy, props.rhoIz], axis=1))
    r0 = jnp.zeros((s.shape[0], 3), L.dtype).at[:, 0].set(L * (s - origin))
    Phi, Psi = f.Phi, f.Psi
    of_beam = jnp.einsum("k,kxi,kxj->ij", mu, Phi, Phi)
    for payload in payloads:
        offset = jnp.zeros(3, L.dtype) if payload.offset is None else payload.offset
        at = fields(basis, L, payload.s)
        mu = jnp.concatenate([mu, payload.mass[None]])
        J = jnp.concatenate([J, inertia_tensor(payload.inertia, payload.mass)[None]])
        r0 = jnp.concatenate([r0, offset.at[0].add(L * (payload.s - origin))[None]])
        Phi = jnp.concatenate([Phi, (at.Phi - se3.skew(offset) @ at.Psi)[None]])
        Psi = jnp.concatenate([Psi, at.Psi[None]])
    rigidity = w[:, None] * jnp.stack([props.GJ, props.EIy, props.EIz], axis=1)
    K = jnp.einsum("kx,kxi,kxj->ij", rigidity, f.Psi_x, f.Psi_x)
    axial = jnp.einsum("k,ki,kj->ij", w * props.EA, f.Phi_x[:, 0], f.Phi_x[:, 0])
    Mee = jnp.einsum("k,kxi,kxj->ij", mu, Phi, Phi) + jnp.einsum("kxi,kxy,kyj->ij", Psi, J, Psi)
    K = K + axial
    integrals = Integrals(
        m0=jnp.sum(mu),
        c0=mu @ r0,
        C1=jnp.einsum("k,kxj->xj", mu, Phi),
        Q0=jnp.einsum("k,kx,ky->xy", mu, r0, r0),
        A1=jnp.einsum("k,kx,kyj->xyj", mu, r0, Phi),
        A2=jnp.einsum("k,kxi,kyj->xyij", mu, Phi, Phi),
        J=jnp.sum(J, axis=0),
        JPsi=jnp.einsum("kxy,kyj->xj", J, Psi),
        Mee=Mee,
        K=K,
        D=_damping(link, Mee, K, of_beam),
    )
    if not stiffening:
        return integrals, None
    stations = jnp.concatenate([s, *(p.s[None] for p in payloads)])
    back = lambda x: shortening(basis, L, x, origin)
    Mxx = jnp.einsum("k,ki,kj->ij", mu, Phi[:, 0], Phi[:, 0])
    return integrals, Points(mu, r0, Phi, jax.vmap(back)(stations), back(jnp.ones_like(L)), Mxx)


def own_modes(
    link: Link,
    payloads: tuple[Payload, ...],
    hub: Float[Array, "6 6"],
    screw: Float[Array, "6 k"],
    wide: ShapeFunctions,
    counts: tuple[int, ...],
) -> ShapeFunctions:
    """The lowest ``counts`` modes of each direction within the span of ``wide``.

    The frame may rotate about the ``screw`` of the joint, with the inertia of the ``hub``. Modes
    are orthonormal for that mass, direction by direction. Frequencies of one direction are
    distinct, so modes are differentiable even where two directions coincide.
    """
    i, _ = link_integrals(link, payloads, wide, wide.series.shape[2] + 3, False, 0.0)
    still = jnp.all(screw == 0, axis=0)
    angular = jnp.einsum("axy,xyj->aj", jnp.asarray(LEVI_CIVITA, hub.dtype), i.A1) + i.JPsi
    ze = screw.T @ jnp.concatenate([i.C1, angular])
    lever = se3.skew(i.c0)
    eye = jnp.eye(3, dtype=hub.dtype)
    moment = jnp.trace(i.Q0) * eye - i.Q0 + i.J
    zz = hub + jnp.block([[i.m0 * eye, -lever], [lever, moment]])
    inertia = screw.T @ zz @ screw + jnp.diag(still.astype(hub.dtype))
    mass = i.Mee - ze.T @ jnp.linalg.solve(inertia, ze)
    series, direction = [], np.array(wide.direction)
    for d, count in enumerate(counts):
        at = np.flatnonzero(direction == d)
        if not count:
            continue
        back = jnp.linalg.inv(jnp.linalg.cholesky(mass[np.ix_(at, at)]))
        _, vectors = jnp.linalg.eigh(back @ i.K[np.ix_(at, at)] @ back.T)
        chosen = (back.T @ vectors[:, :count]).T
        series.append(jnp.einsum("ij,ojn->oin", chosen, wide.series[:, at]))
    directions = tuple(d for d, count in enumerate(counts) for _ in range(count))
    return ShapeFunctions(jnp.concatenate(series, axis=1), directions)


def modal_links(
    robot: Robot,
    layout: Layout,
    parameters: Parameters,
    basis: ShapeFunctions,
    stiffening: bool,
    origin: float = 0.0,
    own: tuple[int, ...] | None = None,
) -> ModalLinks:
    """All links of a chain, with frames at the station ``origin``.

    Stages without a flexible link have zeros and unit masses. ``own``: number of modes of each
    direction that each link has of its own, within the span of ``basis``.
    """
    points = basis.series.shape[2] + 3  # exact for polynomials on tapered sections
    flexible = tuple(n > 0 for n in layout.shapes)
    elastic = [robot.links[s.link] for s, on in zip(layout.stages, flexible, strict=True) if on]
    loaded = [sum(p.link == link.name for p in robot.payloads) for link in elastic]
    stations = max(
        points * max(len(link.pieces), 1) + n for link, n in zip(elastic, loaded, strict=True)
    )
    one = jnp.ones((), robot.gravity.dtype)

    def numbers(on: bool, parts):
        link, payloads, hub, screw = parts
        functions = basis if own is None else own_modes(link, payloads, hub, screw, basis, own)
        integrals, own_points = link_integrals(
            link, payloads, functions, points, stiffening, origin
        )
        if own_points is not None:
            own_points = _padded(own_points, stations)
        if on:
            return integrals, own_points, link.length, functions
        return *_resting(integrals, own_points), one, functions

    items = []
    for i, (s, on) in enumerate(zip(layout.stages, flexible, strict=True)):
        link = robot.links[s.link] if on else elastic[0]  # for the shapes of its zeros
        payloads = tuple(
            dataclasses.replace(p, name="", link="") for p in robot.payloads if p.link == link.name
        )
        parts = (dataclasses.replace(link, name=""), payloads)
        items.append((on, (*parts, parameters.inertia[i], parameters.screw[i])))
    integrals, mass_points, length, functions = vmap_groups(numbers, items)
    end = jax.vmap(lambda f, L: fields(f, L, one))(functions, length)
    return ModalLinks(integrals, length, end, functions, flexible, mass_points, origin)


def _padded(p: Points, count: int) -> Points:
    """``p`` with massless points up to ``count``."""
    more = lambda x: jnp.pad(x, [(0, count - x.shape[0])] + [(0, 0)] * (x.ndim - 1))
    return Points(more(p.mass), more(p.r0), more(p.Phi), more(p.g), p.end, p.Mxx)


def _resting(integrals: Integrals, points: Points | None) -> tuple[Integrals, Points | None]:
    """Zeros with a unit mass matrix, for padded coordinates."""
    zeros, points = jtu.tree_map(jnp.zeros_like, (integrals, points))
    unit = jnp.eye(zeros.Mee.shape[0], dtype=zeros.Mee.dtype)
    return eqx.tree_at(lambda i: i.Mee, zeros, unit), points


def lowest_bending(links: ModalLinks | FramedLinks, stage: int) -> float:
    """First bending frequency [rad/s] of a link clamped at its frame; infinite without bending."""
    modal = links.inner if isinstance(links, FramedLinks) else links
    bending = np.isin(modal.basis.direction, (1, 2))
    if not bending.any():
        return float("inf")
    M, K = (
        np.asarray(x[stage], float)[np.ix_(bending, bending)]
        for x in (modal.integrals.Mee, modal.integrals.K)
    )
    back = np.linalg.inv(np.linalg.cholesky(M))
    return float(np.sqrt(np.linalg.eigvalsh(back @ K @ back.T)[0]))
