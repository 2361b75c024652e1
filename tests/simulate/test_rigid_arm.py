"""The rigid arm against conservation laws and an outside code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import Instant


@pytest.fixture(scope="module")
def arm():
    return fx.load_robot("rigid-3r")


@pytest.fixture(scope="module")
def model(arm):
    return fx.RigidArm().bind(arm)


def test_energy_of_a_swing_is_kept(model, record_number):
    traj = fx.simulate(
        model,
        None,
        jnp.linspace(0.0, 10.0, 5),
        dt=5e-3,
        start={"turntable": 0.3, "shoulder": 0.2, "elbow": -0.4},
        stations=2,
    )
    energy = np.asarray(traj.energy.mechanical)
    scale = max(
        np.max(np.abs(np.asarray(traj.energy.kinetic))),
        np.max(np.abs(np.asarray(traj.energy.gravity))),
    )
    assert float(traj.energy.kinetic[-1]) > 1.0
    record_number(
        "rigid 3R arm, energy drift over 10 s at dt = 5 ms",
        np.max(np.abs(energy - energy[0])) / scale,
        1e-9,
    )


@pytest.mark.outside
def test_forward_dynamics_equals_pinocchio(arm, model, record_number):
    pin = pytest.importorskip("pinocchio")
    outside, frame = pin.Model(), 0
    placement = pin.SE3.Identity()
    for joint, link in zip(arm.joints, arm.links, strict=True):
        rotation = np.zeros(3) if joint.rotation is None else np.asarray(joint.rotation)
        local = placement * pin.SE3(
            pin.exp3(rotation), np.zeros(3) if joint.offset is None else np.asarray(joint.offset)
        )
        axis = np.array([0.0, 0.0, 1.0]) if joint.axis is None else np.asarray(joint.axis)
        frame = outside.addJoint(
            frame,
            pin.JointModelRevoluteUnaligned(*(axis / np.linalg.norm(axis))),
            local,
            joint.name,
        )
        xx, yy, zz, xy, xz, yz = np.asarray(link.body.inertia)
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        outside.appendBodyToJoint(
            frame,
            pin.Inertia(float(link.body.mass), np.asarray(link.body.com), about),
            pin.SE3.Identity(),
        )
        placement = pin.SE3(np.eye(3), np.array([float(link.length), 0.0, 0.0]))
    outside.gravity.linear = np.asarray(arm.gravity)
    data = outside.createData()

    rng = np.random.default_rng(0)
    q, v, tau = (
        rng.uniform(-np.pi, np.pi, (100, 3)),
        rng.normal(size=(100, 3)),
        rng.normal(size=(100, 3)),
    )
    wanted = np.array([pin.aba(outside, data, *row) for row in zip(q, v, tau, strict=True)])

    def accelerate(q, v, tau):
        drive = fx.Drive(
            joints={j.name: fx.Effort(fx.constant(tau[i])) for i, j in enumerate(arm.joints)}
        )
        return model.term(drive).accelerate(Instant(0.0), q, v)

    found = np.asarray(jax.jit(jax.vmap(accelerate))(q, v, tau))
    scale = np.max(np.abs(wanted), axis=1, keepdims=True)
    record_number(
        "forward dynamics against pinocchio, 100 states, relative",
        np.max(np.abs(found - wanted) / scale),
        1e-8,
    )
    back = np.asarray(fx.inverse_dynamics(arm, q, v, found))
    record_number("inverse of forward dynamics", np.max(np.abs(back - tau)), 1e-9)


def test_inverse_kinematics_reaches(arm, model):
    target = jnp.array([0.3, 0.5, 0.2])
    q = fx.inverse_kinematics(arm, target, guess=jnp.array([0.3, 0.4, 0.5]))
    start = Start({j.name: q[i] for i, j in enumerate(arm.joints)})
    snap = model.observe(0.0, model.initial_state(fx.Drive(), 0.0, start), fx.Drive(), jnp.ones(1))
    np.testing.assert_allclose(np.asarray(snap.frames[-1, 0, :3]), np.asarray(target), atol=1e-10)
    with pytest.raises(ValueError, match="out of reach"):
        fx.inverse_kinematics(arm, jnp.array([5.0, 0.0, 0.0]))


def test_equilibrium_modes_and_linear_model(arm, model):
    drive = fx.Drive(joints={j.name: fx.PD(200.0, 5.0, fx.constant(0.3)) for j in arm.joints})
    rest = fx.equilibrium(model, drive)
    torque = np.asarray(fx.inverse_dynamics(arm, rest.mech.q, jnp.zeros(3), jnp.zeros(3)))
    np.testing.assert_allclose(torque, 200.0 * (0.3 - np.asarray(rest.mech.q)), atol=1e-8)
    linear = fx.linearise(model, drive, rest)
    poles = np.linalg.eigvals(np.asarray(linear.A))
    found = fx.modes(model, drive, rest)
    for f, zeta in zip(np.asarray(found.frequencies), np.asarray(found.damping), strict=True):
        pole = 2 * np.pi * f * complex(-zeta, np.sqrt(1 - zeta**2))
        assert np.min(np.abs(poles - pole)) < 1e-6 * abs(pole)
    assert linear.B.shape == (6, 3) and np.all(poles.real < 0)


def test_equilibrium_leaves_a_joint_where_its_motion_holds_it(model):
    """The other joints give way under weight; the held one stays, to the last digit."""
    first, *others = [j.name for j in model.robot.tree_joints]
    drive = fx.Drive(
        joints={
            first: fx.Motion(fx.constant(0.3)),
            **{n: fx.PD(200.0, 5.0, fx.constant(0.2)) for n in others},
        }
    )
    rest = fx.equilibrium(model, drive, {n: 0.2 for n in others})
    assert float(rest.mech.q[0]) == 0.3
    assert np.all(np.abs(np.asarray(rest.mech.q[1:]) - 0.2) > 1e-4)
