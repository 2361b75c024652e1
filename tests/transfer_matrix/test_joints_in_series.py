"""Joints between half segments with controllers, dampers and friction: the bend of the half
segments is a state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx


def mixed_arm(**elbow) -> fx.Robot:
    """Three links: an elastic joint, one for a controller, a free one."""
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    section, hub = fx.Rectangle(0.02, 0.008), fx.Hub(0.1, 1e-3)
    links = [
        fx.Link(name, length, section=section, material=soft)
        for name, length in (("a", 0.4), ("b", 0.35), ("c", 0.3))
    ]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "a", stiffness=20.0, hub=hub),
        fx.Joint("elbow", "revolute", "a", "b", hub=hub, **elbow),
        fx.Joint("wrist", "revolute", "b", "c", hub=hub),
    ]
    payload = fx.Payload("tool", "c", 0.1, inertia=1e-4)
    return fx.Robot.serial(links, joints, payloads=[payload], planar=True)


def mixed_drive(controller) -> fx.Drive:
    return fx.Drive(joints={"shoulder": fx.Motion(fx.constant(0.0)), "elbow": controller})


def run(method, robot, drive, substeps, **options):
    return fx.simulate(
        method.bind(robot), drive, jnp.linspace(0.0, 0.1, 101), substeps=substeps, **options
    )


def imbalance(traj) -> float:
    e = traj.energy
    scale = np.abs(e.work).max() + np.abs(e.dissipated).max()
    return float(np.abs(e.balance - e.balance[0]).max() / scale)


JUMP = fx.PD(20.0, 1.0, fx.constant(0.6))


def test_energy_of_driven_elastic_and_free_joints(record_number):
    """A controller whose target jumps by 0.6 rad bends the half segments beside its joint within
    milliseconds, not at once: when they bent at once, the segments beside the joint left with 60
    rad/s, the balance was off by 60 % at 1 ms, and the reported rate of the joint was that of the
    segments."""
    traj = run(fx.TransferMatrix(segments=4), mixed_arm(), mixed_drive(JUMP), 1)
    record_number(
        "driven, elastic and free joints, dt = 1 ms: energy balance", imbalance(traj), 1e-3
    )
    # The target asks for kp 0.6 / kd = 12 rad/s at the start, and for less ever after.
    rate = np.asarray(traj.qd[:, 1])
    record_number("largest rate of the driven joint [rad/s]", np.abs(rate).max(), 12.0)
    record_number("largest change of that rate in 1 ms [rad/s]", np.abs(np.diff(rate)).max(), 1.0)


@pytest.mark.slow
def test_order_of_the_energy_of_driven_elastic_and_free_joints(record_number):
    method, robot, drive = fx.TransferMatrix(segments=4), mixed_arm(), mixed_drive(JUMP)
    coarse, fine = (run(method, robot, drive, n) for n in (1, 4))
    fall = imbalance(coarse) / imbalance(fine)
    record_number(
        "driven, elastic and free joints: fall of the balance at 0.25 ms", fall, 10.0, ">"
    )
    gap = np.abs(coarse.q - fine.q)[:, 1].max()
    record_number("the driven joint at dt = 1 ms and 0.25 ms [rad]", gap, 1e-3)


@pytest.mark.slow
def test_driven_elastic_and_free_joints_beside_port_hamiltonian(record_number):
    robot, drive = mixed_arm(), mixed_drive(JUMP)
    other = run(fx.PortHamiltonian(elements=12), robot, drive, 4)
    traj = run(fx.TransferMatrix(segments=16), robot, drive, 4)
    angles, tip = np.abs(traj.q - other.q).max(), np.abs(traj.tip - other.tip).max()
    record_number("driven, elastic and free joints, against PortHamiltonian [rad]", angles, 5e-3)
    record_number("driven, elastic and free joints, against PortHamiltonian: tip [m]", tip, 2e-4)


CASES = {
    "friction": (mixed_arm(friction=fx.Friction(0.05, 0.01)), JUMP),
    "limit": (mixed_arm(), fx.PD(20.0, 1.0, fx.constant(0.6), limit=1.0)),
    "no damping": (mixed_arm(), fx.PD(20.0, 0.0, fx.constant(0.05))),
}


@pytest.mark.parametrize(
    "name", [n if n == "no damping" else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_laws_that_do_not_give_the_rate(name, record_number):
    """Friction that slips, a limit that the controller reaches, no damping at all: the half
    segments give the rate."""
    robot, controller = CASES[name]
    traj = run(fx.TransferMatrix(segments=4), robot, mixed_drive(controller), 1)
    record_number(f"law with {name}, dt = 1 ms: energy balance", imbalance(traj), 5e-3)
    assert np.diff(traj.energy.dissipated).min() >= 0
    assert np.abs(traj.qd).max() < 30


def test_bend_is_part_of_modes_and_rest():
    """The rate of the bend follows from the state: what a strong controller holds vibrates as with
    a held joint, and at rest the controller carries the load."""
    model = fx.TransferMatrix(segments=4).bind(mixed_arm())
    at = {"elbow": 0.3, "wrist": 0.2}
    stiff = mixed_drive(fx.PD(1e6, 1.0, fx.constant(0.3)))
    held = fx.modes(model, mixed_drive(fx.Motion(fx.constant(0.3))), at, n=3).frequencies
    driven = fx.modes(model, stiff, at, n=3).frequencies
    # What remains is the time in which the half segments bend.
    np.testing.assert_allclose(driven, held, rtol=1e-4)
    soft = mixed_drive(fx.PD(20.0, 1.0, fx.constant(0.3)))
    rest = fx.equilibrium(model, soft, at)
    snap = model.observe(jnp.zeros(()), rest, soft, jnp.linspace(0.0, 1.0, 3))
    assert np.abs(snap.qd).max() < 1e-9
    assert np.abs(snap.acceleration).max() < 1e-6
    np.testing.assert_allclose(snap.effort[1], 20.0 * (0.3 - snap.q[1]), rtol=1e-12)


TS = jnp.linspace(0.0, 0.01, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "friction"])
def test_gradient_through_the_bend(name):
    """Forward, reverse and differences, with respect to gain and stiffness."""
    robot, controller = CASES["friction"] if name == "friction" else (mixed_arm(), JUMP)
    base = fx.TransferMatrix(segments=2).bind(robot)

    @jax.jit
    def tip(p):
        drive = mixed_drive(fx.PD(p[0], p[1], controller.reference))
        material = fx.Material(E=p[2] * 1e9, nu=0.3, rho=1200.0)
        model = base.rebind(
            eqx.tree_at(lambda r: [link.material for link in r.links], robot, [material] * 3)
        )
        traj = fx.simulate(model, drive, TS, substeps=2, throw=False)
        return jnp.sum(traj.tip[-1]) + 1e-3 * jnp.sum(traj.qd[-1]) + 1e-3 * jnp.sum(traj.effort[-1])

    p = jnp.array([20.0, 1.0, 5.0])
    forward, reverse = jax.jacfwd(tip)(p), jax.grad(tip)(p)
    step = 1e-4 * p
    eye = np.eye(3)
    differences = [(tip(p + e * step) - tip(p - e * step)) / (2 * step @ e) for e in eye]
    np.testing.assert_allclose(forward, reverse, rtol=1e-8)
    np.testing.assert_allclose(forward, np.array(differences), rtol=1e-5)


def pair(planar: bool = True) -> fx.Robot:
    soft, section = fx.Material(E=5e9, nu=0.3, rho=1200.0), fx.Rectangle(0.02, 0.008)
    damping = fx.Damping(strain_rate=2e-3)
    links = [fx.Link(n, 0.4, section=section, material=soft, damping=damping) for n in "ab"]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "a"),
        fx.Joint("elbow", "revolute", "a", "b", damping=0.01),
    ]
    return fx.Robot.serial(links, joints, planar=planar)


def started(segments: int, shape: fx.Shape, planar: bool = True):
    """Joint angles at the start."""
    model, drive = fx.TransferMatrix(segments=segments).bind(pair(planar)), fx.Drive()
    start = fx.Start(joints={"elbow": 0.3}, links={"a": shape})
    state = model.initial_state(drive, jnp.zeros(()), start)
    return model.observe(jnp.zeros(()), state, drive, jnp.array([0.0, 1.0])).q


@pytest.mark.parametrize("planar", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_joint_beside_a_link_that_starts_deflected(planar):
    """Half segments beside the damped elbow are deflected, and the joint is at its start. The
    shoulder has no torque, so that half segments beside it are straight: its angle is that of the
    first segment, which is a chord of the shape."""
    q = started(3, fx.Shape(y=(0.02, 0.01)), planar)
    end = 0.15 / 3**2 - 0.14 / 3**3  # of the first segment, on the cubic through both values
    np.testing.assert_allclose(q, [np.arcsin(3 * end / 0.4), 0.3], atol=1e-12)


@pytest.mark.parametrize(("power", "order"), [(2, 1), (3, 2)])
def test_angle_of_a_joint_without_torque_converges(power, order):
    """To the tangent at the base, with second order if the shape has no curvature there."""
    shape = fx.Shape.of(y=lambda s: 0.02 * s**power)
    coarse, fine = (float(started(n, shape)[0]) for n in (2, 4))
    np.testing.assert_allclose(np.log2(coarse / fine), order, atol=0.01)
