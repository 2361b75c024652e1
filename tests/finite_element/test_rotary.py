"""Rotary inertia of sections: Rayleigh's beam."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import flexjax as fx

L, EI, RHOA, RHOI = 0.4, 2.0, 0.9, 0.9 * 0.03**2  # radius of gyration: 3 cm of 40 cm


def rayleigh(count):
    """Frequencies [rad/s] of a cantilever, EI w'''' + rhoI w^2 w'' = rhoA w^2 w.

    At the free end EI w'' = 0 and EI w''' + rhoI omega^2 w' = 0.
    """

    def determinant(omega):
        p, q = RHOI * omega**2 / (2 * EI), RHOA * omega**2 / EI
        a, b = np.sqrt(np.sqrt(p**2 + q) - p), np.sqrt(np.sqrt(p**2 + q) + p)
        ch, sh, c, s = np.cosh(a * L), np.sinh(a * L), np.cos(b * L), np.sin(b * L)
        moment = [a**2 * ch + b**2 * c, a * sh + b * s]
        # w''' + 2 p w' of cosh - cos and of sinh/a - sin/b
        shear = [
            a**3 * sh - b**3 * s + 2 * p * (a * sh + b * s),
            a**2 * ch + b**2 * c + 2 * p * (ch - c),
        ]
        return moment[0] * shear[1] - moment[1] * shear[0]

    grid = np.linspace(1.0, 6e3, 20000)
    signs = np.sign([determinant(x) for x in grid])
    found = np.flatnonzero(signs[1:] != signs[:-1])[:count]
    return np.array([scipy.optimize.brentq(determinant, grid[i], grid[i + 1]) for i in found])


@pytest.mark.parametrize("variant", ["complete", "paper"])
def test_frequencies_of_a_thick_cantilever(variant, record_number):
    beam = fx.BeamConstants(EA=1.0, EIy=1.0, EIz=EI, GJ=1.0, rhoA=RHOA, rhoIz=RHOI)
    robot = fx.Robot.serial([fx.Link("link", L, constants=beam)], planar=True)
    links = fx.FiniteElement(elements=12, variant=variant).bind(robot).links
    n = links.numbers.a.shape[1]
    rest, columns = jnp.zeros((1, n)), jnp.eye(n)[:, None, :]
    K = np.asarray(jax.vmap(lambda x: links.elastic_force(x)[0])(columns))
    M = np.asarray(jax.vmap(lambda x: links.apply(links.mass(rest), x)[0])(columns))
    found = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True)[:3])
    error = np.max(np.abs(found / rayleigh(3) - 1))
    if variant == "complete":
        record_number("thick cantilever: three frequencies against Rayleigh's", error, 1e-4)
    else:
        assert error > 0.1  # so much it is on the third
