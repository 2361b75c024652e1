"""Links whose points move back as they bend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import flexjax as fx
from tests.transfer_matrix.test_agreement import SLENDER, arm

# First and second frequency of a cantilever that turns at gamma about its clamp, out of the plane
# of turning, all times sqrt(mu L^4 / EI): Wright, Smith, Thresher, Wang, Vibration modes of
# centrifugally stiffened beams, J. Appl. Mech. 49 (1982). In the plane the frequency squared is
# less by gamma^2.
FLAP = {
    0.0: (3.5160, 22.0345),
    2.0: (4.1373, 22.6149),
    5.0: (6.4495, 25.4461),
    10.0: (11.2023, 33.6404),
}


def test_rotating_cantilever(record_number):
    L, EI, mu = 0.8, 1.8, 0.942
    link = fx.Link("link", L, constants=fx.BeamConstants(EA=1.0, EIy=1.0, EIz=EI, GJ=1.0, rhoA=mu))
    links = fx.FiniteElement(elements=16).bind(fx.Robot.serial([link], planar=True)).links
    n = links.numbers.a.shape[1]
    rest, columns = jnp.zeros((1, n)), jnp.eye(n)[:, None, :]
    K = np.asarray(jax.vmap(lambda x: links.elastic_force(x)[0])(columns))
    M = np.asarray(jax.vmap(lambda x: links.apply(links.mass(rest), x)[0])(columns))
    polar = np.asarray(jax.jit(jax.hessian(lambda c: links.mass(c[None]).zz[0, 2, 2]))(rest[0]))
    for gamma, flap in FLAP.items():
        spin = gamma * np.sqrt(EI / (mu * L**4))
        found = np.sqrt(
            scipy.linalg.eigh(K - 0.5 * spin**2 * polar, M, eigvals_only=True)[:2] * mu * L**4 / EI
        )
        error = np.max(np.abs(found / np.sqrt(np.square(flap) - gamma**2) - 1))
        record_number(
            f"cantilever turning at {gamma:g}: frequencies in the plane, relative", error, 1e-4
        )


@pytest.mark.parametrize("elements", [4, 8])
def test_mass_of_bent_links_is_positive_definite(elements, record_number):
    """At bendings of 0 to 100 mm of links of half a metre.

    Energies cut off after second order are not from 5 mm on, and runs end as not finite.
    """
    term = fx.FiniteElement(elements=elements).bind(arm()).term(fx.Drive())
    nv, x = term.layout.nv, np.arange(1, elements + 1) / elements
    bend = np.concatenate(
        [np.zeros(2)] + 2 * [np.stack([x**2, 2 * x / elements], axis=1).reshape(-1)]
    )
    mass = jax.jit(jax.vmap(lambda q: jax.vmap(lambda v: term.momentum(q, v))(jnp.eye(nv))))
    M = np.asarray(mass(jnp.asarray(np.outer([0.0, 0.005, 0.02, 0.059, 0.1], bend))))
    scale = 1 / np.sqrt(np.diagonal(M[0]))
    least = [np.linalg.eigvalsh(scale[:, None] * m * scale)[0] for m in M]
    record_number(
        f"{elements} elements: least eigenvalue of the scaled mass, over that of straight links",
        min(least) / least[0],
        0.5,
        ">",
    )


def test_deflection_is_where_the_section_is():
    """Along the link too: a tip that bends by a tenth of the length moves back by 7e-3 of it."""
    links = fx.FiniteElement(elements=2).bind(arm()).links
    c = 0.05 * jnp.array([[0.3, 0.6, 1.0, 0.9]] * len(links.tables))
    s = jnp.full(len(links.tables), 0.8)
    deflection, _ = links.strain(c, s)
    place = links.section(c, s).pose.position
    straight = jnp.stack([s * links.length, 0 * s], axis=1)
    np.testing.assert_allclose(deflection[:, :2], place - straight, atol=1e-15)
    assert np.all(deflection[:, 0] < -1e-4)


@pytest.mark.slow  # compiled runs of their own
def test_strongly_bent_arm(record_number):
    """Links of half a metre that bend by 59 and 27 mm.

    Elements that keep their length along the chord are off in proportion to the bending; with
    stiffening what is left (slopes as angles, linear curvature) is of second order.
    """
    drive = fx.Drive(joints={n: fx.Motion(fx.quintic(0.0, 0.6, 0.4)) for n in ("j1", "j2")})
    bent, gaps = [], []
    for stiffer in (1.0, 2.0):
        robot = arm().replace("links.*.material.E", stiffer * SLENDER.E)
        ours, theirs = (
            fx.simulate(f.bind(robot), drive, jnp.linspace(0.0, 0.4, 5), substeps=100, stations=2)
            for f in (
                fx.FiniteElement(elements=8),
                fx.PortHamiltonian(elements=16),
            )
        )
        bent.append(float(np.max(np.abs(ours.deflection))))
        gaps.append(float(np.max(np.abs(ours.tip - theirs.tip))) / bent[-1])
        work = np.max(np.abs(ours.energy.work))
        record_number(
            f"arm bent by {1e3 * bent[-1]:.0f} mm: energy balance, relative",
            float(np.ptp(np.asarray(ours.energy.balance)) / work),
            1e-10,
        )
    record_number(
        "tip against PortHamiltonian at the lesser bending, relative to it", gaps[1], 0.02
    )
    record_number(
        "order of that gap in the bending",
        float(np.log(gaps[0] / gaps[1]) / np.log(bent[0] / bent[1])),
        1.8,
        ">",
    )
