"""Rest and vibration of TransferMatrix under a base or a joint that rotates at a constant rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate.analysis._linear import jacobian

SOFT = fx.Material(E=5e9, nu=0.3, rho=1200.0)
SECTION = fx.Rectangle(0.02, 0.008)  # width along z, height along y


def beam(planar: bool) -> fx.Robot:
    links = [fx.Link("a", 0.8, section=SECTION, material=SOFT)]
    joints = [fx.Joint("j", "revolute", "ground", "a", axis=(0.0, 0.0, 1.0))]
    return fx.Robot.serial(links, joints, planar=planar, gravity=(0.0, 0.0, 0.0))


def scale(second_moment: float) -> float:
    """sqrt(EI / (rho A L^4)): unit of the dimensionless frequencies."""
    return float(np.sqrt(5e9 * second_moment / (1200.0 * 0.02 * 0.008 * 0.8**4)))


IN_PLANE, OUT_OF_PLANE = scale(0.02 * 0.008**3 / 12), scale(0.008 * 0.02**3 / 12)
RATE = 4 * IN_PLANE  # rad/s
# Wright, Smith, Thresher and Wang, J. Applied Mechanics 49 (1982): first flapping frequency of a
# rotating cantilever at four times the unit; in the plane of rotation it is less by the rate.
FLAP = 5.5850
CHORD = np.sqrt(FLAP**2 - 4**2)

TURN = fx.polynomial((0.0, RATE))
HELD = fx.Motion(fx.constant(0.0))
DRIVES = {
    "joint": fx.Drive(joints={"j": fx.Motion(TURN)}),
    "base": fx.Drive(joints={"j": HELD}, base=fx.Base(angle=TURN)),
}


def speeds(model, y, drive):
    snap = jax.jit(lambda y: model.observe(jnp.zeros(()), y, drive, jnp.linspace(0, 1, 3)))(y)
    return snap.velocity[0, :, 1]


def frequencies(planar: bool, segments: int, driven: str):
    """Dimensionless, about the state at rest; they are those about the undeformed state, which is
    at rest too."""
    model, drive = fx.TransferMatrix(segments=segments).bind(beam(planar)), DRIVES[driven]
    rest = fx.equilibrium(model, drive)
    wanted = RATE * 0.8 * np.linspace(0, 1, 3)
    np.testing.assert_allclose(speeds(model, rest, drive), wanted, rtol=1e-9, atol=1e-9)
    found = fx.modes(model, drive, rest, n=2).frequencies
    start = model.initial_state(drive, jnp.zeros(()), fx.Start())
    np.testing.assert_allclose(found, fx.modes(model, drive, start, n=2).frequencies, 1e-9)
    return 2 * np.pi * np.asarray(found) / IN_PLANE


@pytest.mark.parametrize("driven", DRIVES)
def test_a_beam_that_rotates_in_its_plane(driven):
    """Bodies move at rest, and the frequency is that of the closed form."""
    coarse, fine = (frequencies(True, n, driven)[0] for n in (6, 12))
    # The error is of second order in the length of the segments.
    np.testing.assert_allclose((4 * fine - coarse) / 3, CHORD, rtol=5e-4)


@pytest.mark.slow
def test_a_beam_that_rotates_in_space():
    found = frequencies(False, 6, "joint")
    np.testing.assert_allclose(found[0], frequencies(True, 6, "joint")[0], rtol=1e-8)
    # Southwell's formula; six segments have three quarters of a per cent at rest.
    stiff = 3.5160 * OUT_OF_PLANE / IN_PLANE
    np.testing.assert_allclose(found[1], np.sqrt(stiff**2 + 1.193 * 4**2), rtol=1.5e-2)


@pytest.mark.slow
@pytest.mark.parametrize("driven", DRIVES)
@pytest.mark.parametrize("other", [fx.FiniteElement(elements=3), fx.PortHamiltonian(elements=48)])
def test_other_formulations_agree(driven, other):
    """24 segments have an error of a half per cent in the second frequency."""
    drive, found = DRIVES[driven], []
    for method in (fx.TransferMatrix(segments=24), other):
        model = method.bind(beam(True))
        rest = fx.equilibrium(model, drive)
        found.append(fx.modes(model, drive, rest, n=2).frequencies)
    np.testing.assert_allclose(found[0], found[1], rtol=6e-3)


def test_slaved_bodies_are_no_unknowns():
    """Without half springs the first body of a held link follows the joint. The eigenvalue problem
    has the other bodies only, and their frequencies, from a dense one of its own."""
    segments = 10
    links = [fx.Link(name, 0.8, section=SECTION, material=SOFT) for name in "ab"]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "a"),
        fx.Joint("elbow", "revolute", "a", "b"),
    ]
    robot = fx.Robot.serial(links, joints, planar=True, gravity=(0.0, 0.0, 0.0))
    model = fx.TransferMatrix(segments=segments, half_springs=False).bind(robot)
    hold = fx.Drive(joints={j.name: fx.Motion(fx.constant(0.0)) for j in joints})
    rest = model.initial_state(hold, 0.0, fx.Start())
    A = jax.eval_shape(lambda: jacobian(model, hold, rest)[0])
    assert A.shape == (4 * segments, 4 * (segments - 1))
    found = np.asarray(fx.modes(model, n=4).frequencies)
    # Rods of mass m, joined by springs EI / l, and rigidly at the joints.
    n, length = 2 * segments, 0.8 / segments
    m = 1200.0 * 0.02 * 0.008 * length
    spring = 5e9 * 0.02 * 0.008**3 / 12 / length
    rotary = 1200.0 * 0.02 * 0.008**3 / 12 * length
    centre = length * np.tril(np.ones((n, n)), -1) + 0.5 * length * np.eye(n)
    M = m * centre.T @ centre + (m * length**2 / 12 + rotary) * np.eye(n)
    bent = np.delete(np.arange(n), [0, segments])
    angles = np.tril(np.ones((n, n)))[:, bent]  # of the rods, from those of the springs
    M, K = angles.T @ M @ angles, spring * np.eye(n - 2)
    lower = np.linalg.inv(np.linalg.cholesky(M))
    exact = np.sqrt(np.linalg.eigvalsh(lower @ K @ lower.T))[:4] / (2 * np.pi)
    np.testing.assert_allclose(found, exact, rtol=1e-9)
