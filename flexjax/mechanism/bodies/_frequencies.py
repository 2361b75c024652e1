"""Mass and clamped-free frequencies of one link, computed on the host with numpy.

Only :func:`flexjax.describe` uses them. The beam elements have Przemieniecki's shape functions:
Hermite cubics without shear, and the exact static solution of a uniform element with shear.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.mechanism.bodies._sections import BeamProperties, beam_properties, link_quadrature
from flexjax.robot import Link

# Total, but at least 6 per piece: the third frequency of a uniform link has an error of 1e-5.
ELEMENTS = 24
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)
GAUSS, WEIGHTS = _POINTS / 2 + 0.5, _WEIGHTS / 2


@jax.jit  # one compilation instead of one per operation
def _properties(link: Link, s: np.ndarray) -> BeamProperties:
    return beam_properties(link, jnp.asarray(s, link.length.dtype))


def properties_at(link: Link, s: np.ndarray) -> BeamProperties:
    """Stiffness and inertia per length at stations ``s``, as numpy arrays."""
    return jax.tree.map(np.asarray, _properties(link, s))


def link_mass(link: Link) -> float:
    """The mass of a link: the mass of its body, or rhoA integrated along its length."""
    if link.body is not None:
        return float(link.body.mass)
    s, w = link_quadrature(link)
    return float(link.length) * float(np.asarray(w) @ properties_at(link, np.asarray(s)).rhoA)


class PointMass(NamedTuple):
    """A rigid payload at ``station`` (0 base, 1 tip).

    ``arm`` is the distance of its centre of mass from the station along the link; ``inertia`` is
    about its centre of mass.
    """

    station: float
    mass: float
    arm: float
    inertia: float


def link_frequencies(
    link: Link,
    plane: str,
    *,
    length: float | None = None,
    loads: Sequence[PointMass] = (),
    n: int = 3,
) -> np.ndarray:
    """The first ``n`` clamped-free frequencies [Hz] of bending in ``plane`` ("y" or "z")."""
    length = float(link.length) if length is None else length
    pieces = [float(piece.fraction) for piece in link.pieces] or [1.0]
    count = max(6, ELEMENTS // len(pieces))
    size = 2 * (count * len(pieces) + 1)
    M, K = np.zeros((size, size)), np.zeros((size, size))
    steps = np.repeat(pieces, count) / count
    borders = np.concatenate([[0.0], np.cumsum(steps)])
    carrier = [
        int(np.clip(np.searchsorted(borders, load.station, "right") - 1, 0, len(steps) - 1))
        for load in loads
    ]
    # Gauss points and middle of each element.
    places = borders[:-1, None] + steps[:, None] * np.array([*GAUSS, 0.5])
    along = properties_at(link, places.ravel())
    for node, step in enumerate(steps):
        where, h = slice(2 * node, 2 * node + 4), step * length
        here = jax.tree.map(lambda x, node=node: x.reshape(places.shape)[node], along)
        m, k, phi = _element(here, plane, h)
        for load, element in zip(loads, carrier, strict=True):
            if element == node:
                N, T, _ = _shapes((load.station - borders[node]) / step, h, phi)
                row = N + load.arm * T
                m += load.mass * np.outer(row, row) + load.inertia * np.outer(T, T)
        M[where, where] += m
        K[where, where] += k
    from scipy.linalg import eigh  # few calls need it, and importing takes a while

    # The lowest modes are the largest values of 1 / omega^2, which the solver finds accurately.
    largest = eigh(
        M[2:, 2:], K[2:, 2:], eigvals_only=True, subset_by_index=(size - 2 - n, size - 3)
    )
    return np.sqrt(1 / largest[::-1]) / (2 * np.pi)


def _element(c: BeamProperties, plane: str, h: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Mass and stiffness matrix of an element, and its shear parameter 12 EI / (GA h^2)."""
    EI, GA, rotary = (c.EIz, c.GAy, c.rhoIz) if plane == "y" else (c.EIy, c.GAz, c.rhoIy)
    phi = float(12 * EI[-1] / (GA[-1] * h**2))
    M, K = np.zeros((4, 4)), np.zeros((4, 4))
    gamma = phi / (1 + phi) * np.array([-1 / h, -0.5, 1 / h, -0.5])
    for i, (x, weight) in enumerate(zip(GAUSS, WEIGHTS, strict=True)):
        N, T, dT = _shapes(x, h, phi)
        M += weight * h * (c.rhoA[i] * np.outer(N, N) + rotary[i] * np.outer(T, T))
        K += weight * h * EI[i] * np.outer(dT, dT)
        K += weight * h * GA[i] * np.outer(gamma, gamma) if phi > 0 else 0.0
    return M, K, phi


def _shapes(x: float, h: float, phi: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Deflection, rotation and curvature of the four shape functions at ``x`` in [0, 1]."""
    N = np.array(
        [
            1 - 3 * x**2 + 2 * x**3 + phi * (1 - x),
            h * (x - 2 * x**2 + x**3 + phi * (x - x**2) / 2),
            3 * x**2 - 2 * x**3 + phi * x,
            h * (x**3 - x**2 + phi * (x**2 - x) / 2),
        ]
    )
    T = np.array(
        [
            6 * (x**2 - x) / h,
            1 - 4 * x + 3 * x**2 + phi * (1 - x),
            6 * (x - x**2) / h,
            3 * x**2 - 2 * x + phi * x,
        ]
    )
    dT = np.array([(12 * x - 6) / h, 6 * x - 4 - phi, (6 - 12 * x) / h, 6 * x - 2 + phi]) / h
    return N / (1 + phi), T / (1 + phi), dT / (1 + phi)
