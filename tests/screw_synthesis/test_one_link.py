"""One link: theory, and two other formulations, to the error of the truncated expansion, which
falls as predicted.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.screw_synthesis.arms import CONSTANTS, REFERENCE, SLENDER, arm, frequencies

STILL = {"gravity": (0.0, 0.0, 0.0)}
SLOW = fx.Drive(joints={"joint0": fx.Motion(fx.quintic(-0.5 * np.pi, 0.0, 4.0))})


def _first(kinds, r, **over):
    """First elastic frequency of bending in the plane with ``r`` cantilever functions."""
    model = fx.ScrewSynthesis(modes=(0, r, 0, 0), basis="clamped-free").bind(
        arm(kinds, **STILL, **SLENDER, **over)
    )
    return frequencies(model)[sum(k == "revolute" for k in kinds)]


@pytest.mark.slow
def test_truncation_error_falls_as_predicted(record_number):
    """Expanding v'' in the v'' of cantilever functions: integration by parts moves the first
    boundary term that does not vanish to the coefficients. A pinned base leaves the fifth
    derivative (coefficients like k^-4, frequencies like r^-7), a weld at the tip leaves the moment
    (k^-1, so r^-1). Roots of the cantilever lie at (k - 1/2) pi, so r functions leave out what lies
    beyond r pi.
    """
    for kinds, theory, order in (
        (("revolute",), REFERENCE["frequencies"]["pinned_theory_v"][0], 7.0),
        (("fixed", "fixed"), REFERENCE["weld_two_links"]["theory_2L"][0], 1.0),
    ):
        errors = [_first(kinds, r) / theory - 1 for r in (3, 6, 12)]
        for i, name in enumerate(("3 to 6", "6 to 12")):
            record_number(
                f"{' and '.join(kinds)} link, cantilever functions {name}: order of the "
                "frequency's error in their number",
                np.log2(errors[i] / errors[i + 1]),
                (0.85 * order, 1.15 * order),
                "in",
            )


def _link(planar, **over):
    link = fx.Link(
        "link0",
        0.8,
        constants=fx.BeamConstants(**(CONSTANTS | over)),
        damping=fx.Damping(strain_rate=1e-3),
    )
    return fx.Robot.serial(
        [link], [fx.Joint("joint0", "revolute", "ground", "link0")], planar=planar
    )


@pytest.mark.slow
def test_frequencies_are_those_of_finite_elements(record_number):
    robot = _link(True, **SLENDER)
    theirs = fx.modes(fx.FiniteElement(elements=24).bind(robot), n=2).frequencies
    ours = [
        fx.modes(fx.ScrewSynthesis(modes=(0, r, 0, 0)).bind(robot), n=2).frequencies
        for r in (3, 4, 5)
    ]
    gaps = [abs(float(x[0] / theirs[0]) - 1) for x in ours]
    # against theory, in the reference: 3.0e-4 with three polynomials, 4e-8 with five
    assert gaps[0] > gaps[1] > gaps[2]
    record_number(
        "one link, 5 polynomials: first frequency against 24 finite elements", gaps[2], 2e-7
    )


@pytest.mark.slow
def test_frequencies_are_those_of_the_port_hamiltonian_link(record_number):
    """In space, with rotary inertia.

    Shear changes frequencies by some 1e-4 at this stiffness; ten times stiffer, its own modes are
    so fast that the lowest one drowns in the round-off of the eigenvalues. Staggered elements are
    of second order, so two meshes give the limit.
    """
    robot = _link(False, GAy=1e7, GAz=1e7)
    coarse, fine = (
        np.asarray(fx.modes(fx.PortHamiltonian(elements=n).bind(robot), n=3).frequencies)
        for n in (8, 16)
    )
    limit = (4 * fine - coarse) / 3
    ours = np.asarray(fx.modes(fx.ScrewSynthesis(modes=5).bind(robot), n=3).frequencies)
    record_number(
        "one link in space, 3 frequencies against port-Hamiltonian elements",
        np.max(np.abs(ours / limit - 1)),
        1e-3,
    )


def _deflection(formulation, robot, **options):
    ts = jnp.linspace(0.0, 4.0, 9)
    traj = fx.simulate(formulation.bind(robot), SLOW, ts, dt=1e-2, stations=2, **options)
    angle, tip = np.asarray(traj.q[:, 0]), np.asarray(traj.tip)
    return (
        ts,
        angle,
        -np.sin(angle) * tip[:, 0] + np.cos(angle) * tip[:, 1],
    )  # across the link's base


@pytest.mark.slow
def test_slow_large_rotation(record_number):
    """A quarter turn in 4 s under gravity: at every moment the deflection of a cantilever under its
    weight and its angular acceleration.
    """
    ts, angle, ours = _deflection(fx.ScrewSynthesis(modes=(1, 4, 0, 0)), _link(True, **SLENDER))
    c, L, T = CONSTANTS, 0.8, 4.0
    x = np.asarray(ts) / T
    acceleration = 0.5 * np.pi * (60 * x - 180 * x**2 + 120 * x**3) / T**2
    theory = (
        -c["rhoA"] * (9.81 * np.cos(angle) * L**4 / 8 + 11 * acceleration * L**5 / 120) / c["EIz"]
    )
    size = np.max(np.abs(theory))
    record_number(
        "slow quarter turn: deflection of the tip against theory, relative",
        np.max(np.abs(ours - theory)) / size,
        2e-3,
    )
    _, _, elements = _deflection(fx.FiniteElement(elements=4), _link(True, **SLENDER))
    record_number(
        "slow quarter turn: against finite elements, relative",
        np.max(np.abs(ours - elements)) / size,
        1e-4,
    )


@pytest.mark.slow
def test_slow_large_rotation_in_space(record_number):
    robot = _link(False, GAy=1e7, GAz=1e7)
    _, _, ours = _deflection(fx.ScrewSynthesis(modes=(1, 4, 1, 1)), robot)
    _, _, theirs = _deflection(fx.PortHamiltonian(elements=16), robot)
    gap = np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))
    record_number(
        "slow quarter turn in space: against 16 port-Hamiltonian elements, relative", gap, 5e-3
    )
