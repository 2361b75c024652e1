"""Masses and clamped-free frequencies of one link, on the host with numpy: what :func:`flexjax.describe` tells, and
nothing else uses.

Beam elements with the shape functions of Przemieniecki: Hermite cubics where shear is not modelled, exact in statics
where it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg

from flexjax.robot._link import BeamConstants, Link, Material, Piece
from flexjax.robot._section import AbstractSection

ELEMENTS = 24  # per piece; the third frequency of a uniform link is then right to 1e-5
GAUSS, WEIGHTS = (a / 2 + b for a, b in zip(np.polynomial.legendre.leggauss(4), (0.5, 0.0), strict=True))


class Constants(NamedTuple):
    """Stiffness and inertia per length at one place; ``inf`` for a shear stiffness that is not modelled."""

    EA: float
    EIy: float
    EIz: float
    GJ: float
    rhoA: float
    GAy: float
    GAz: float
    rhoIy: float
    rhoIz: float


def constants_at(link: Link, s: float) -> Constants:
    """The constants of a link at station ``s`` from 0 to 1; at the border of two pieces those of the first."""
    start, pieces = 0.0, spans(link)
    for fraction, piece in pieces:
        if s <= start + fraction or piece is pieces[-1][1]:
            return _constants(piece, (s - start) / fraction)
        start += fraction
    raise AssertionError("a link has at least one piece")


def spans(link: Link) -> list[tuple[float, Link | Piece]]:
    """The pieces of a link with their fractions; a link without pieces is one piece."""
    return [(float(piece.fraction), piece) for piece in link.pieces] if link.pieces else [(1.0, link)]


def _constants(piece: Link | Piece, x: float) -> Constants:
    c = piece.constants
    if c is not None:
        return _from_constants(c)
    assert piece.section is not None and piece.material is not None
    return _from_section(tapered(piece.section, piece.section_end, x), piece.material)


def tapered(section: AbstractSection, end: AbstractSection | None, x: float) -> AbstractSection:
    """The section at fraction ``x`` of a piece whose dimensions change linearly."""
    return section if end is None else jax.tree.map(lambda a, b: (1 - x) * a + x * b, section, end)


def _from_constants(c: BeamConstants) -> Constants:
    shear = [float(np.inf) if v is None else float(v) for v in (c.GAy, c.GAz)]
    rotary = [0.0 if v is None else float(v) for v in (c.rhoIy, c.rhoIz)]
    return Constants(float(c.EA), float(c.EIy), float(c.EIz), float(c.GJ), float(c.rhoA), *shear, *rotary)


def _from_section(section: AbstractSection, material: Material) -> Constants:
    p = section.properties()
    A, Iy, Iz, J, ky, kz = (float(v) for v in (p.A, p.Iy, p.Iz, p.J, p.ky, p.kz))
    E, G, rho = float(material.E), float(material.shear_modulus), float(material.rho)
    return Constants(E * A, E * Iy, E * Iz, G * J, rho * A, ky * G * A, kz * G * A, rho * Iy, rho * Iz)


def link_mass(link: Link) -> float:
    """The mass of a link: that of its body, or of its sections along the length."""
    if link.body is not None:
        return float(link.body.mass)
    per_length = 0.0
    for fraction, piece in spans(link):
        per_length += fraction * sum(w * _constants(piece, x).rhoA for x, w in zip(GAUSS, WEIGHTS, strict=True))
    return float(link.length) * per_length


class PointMass(NamedTuple):
    """A rigid payload at ``station`` (0 base, 1 tip): mass, distance of its centre along the link, inertia about its
    centre."""

    station: float
    mass: float
    arm: float
    inertia: float


def link_frequencies(
    link: Link, plane: str, *, length: float | None = None, loads: Sequence[PointMass] = (), n: int = 3
) -> np.ndarray:
    """The first ``n`` frequencies [Hz] of bending in ``plane`` ("y" or "z"), clamped at the base and free at the
    tip."""
    length = float(link.length) if length is None else length
    pieces = spans(link)
    size = 2 * (ELEMENTS * len(pieces) + 1)
    M, K = np.zeros((size, size)), np.zeros((size, size))
    start, node = 0.0, 0
    for fraction, piece in pieces:
        step = fraction / ELEMENTS
        for e in range(ELEMENTS):
            where, last = slice(2 * node, 2 * node + 4), node == size // 2 - 2
            m, k, phi = _element(piece, plane, e / ELEMENTS, (e + 1) / ELEMENTS, step * length)
            M[where, where] += m
            K[where, where] += k
            for load in loads:
                x = (load.station - start) / step
                if 0 <= x < 1 or (last and x >= 1):
                    N, T, _ = _shapes(min(x, 1.0), step * length, phi)
                    row = N + load.arm * T
                    M[where, where] += load.mass * np.outer(row, row) + load.inertia * np.outer(T, T)
            start, node = start + step, node + 1
    # The first modes are the largest values of 1 / omega^2; solving for those keeps their digits.
    largest = scipy.linalg.eigh(M[2:, 2:], K[2:, 2:], eigvals_only=True, subset_by_index=(size - 2 - n, size - 3))
    return np.sqrt(1 / largest[::-1]) / (2 * np.pi)


def _element(piece: Link | Piece, plane: str, x0: float, x1: float, h: float) -> tuple[np.ndarray, np.ndarray, float]:
    bend, shear, rotary = ("EIz", "GAy", "rhoIz") if plane == "y" else ("EIy", "GAz", "rhoIy")
    middle = _constants(piece, (x0 + x1) / 2)
    phi = 12 * getattr(middle, bend) / (getattr(middle, shear) * h**2)
    M, K = np.zeros((4, 4)), np.zeros((4, 4))
    uniform = piece.section_end is None
    for x, weight in zip(GAUSS, WEIGHTS, strict=True):
        c = middle if uniform else _constants(piece, x0 + x * (x1 - x0))
        N, T, dT = _shapes(x, h, phi)
        M += weight * h * (c.rhoA * np.outer(N, N) + getattr(c, rotary) * np.outer(T, T))
        K += weight * h * getattr(c, bend) * np.outer(dT, dT)
        if phi > 0:
            gamma = phi / (1 + phi) * np.array([-1 / h, -0.5, 1 / h, -0.5])
            K += weight * h * getattr(c, shear) * np.outer(gamma, gamma)
    return M, K, phi


def _shapes(x: float, h: float, phi: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Deflection, rotation and derivative of the rotation of the four shape functions at ``x`` from 0 to 1."""
    N = np.array([1 - 3 * x**2 + 2 * x**3 + phi * (1 - x), h * (x - 2 * x**2 + x**3 + phi * (x - x**2) / 2), 0, 0])
    N[2:] = 3 * x**2 - 2 * x**3 + phi * x, h * (x**3 - x**2 + phi * (x**2 - x) / 2)
    T = np.array(
        [6 * (x**2 - x) / h, 1 - 4 * x + 3 * x**2 + phi * (1 - x), 6 * (x - x**2) / h, 3 * x**2 - 2 * x + phi * x]
    )
    dT = np.array([(12 * x - 6) / h, 6 * x - 4 - phi, (6 - 12 * x) / h, 6 * x - 2 + phi]) / h
    return N / (1 + phi), T / (1 + phi), dT / (1 + phi)
