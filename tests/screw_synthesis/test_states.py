"""All that the model tells of one instant (poses, twists, accelerations, deformation, wrenches,
torques), also on a base that moves.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.screw import se3
from flexjax.numerics.term import Instant
from tests.screw_synthesis.arms import CONSTANTS

ALONG, ABOUT = np.array([0.6, 0.8, 0.0]), (0.2, 1.0, 0.3)
SHIFT, TURN = fx.sine(0.3, 1.7), fx.sine(0.4, 1.1)
TORQUE = fx.Effort(fx.constant(0.7))
STATIONS = jnp.array([0.0, 0.5, 1.0])
SHAPES = (1, 1, 1, 1)
T = 0.23


def _robot(carried):
    """Two links in space; ``carried``: on a cart and a turntable, instead of on the ground."""
    names = ("link0", "link1")
    links = [fx.Link(name, 0.8, constants=fx.BeamConstants(**CONSTANTS)) for name in names]
    joints = [
        fx.Joint("joint0", "revolute", "ground", "link0", axis=(0.3, 0.1, 1.0)),
        fx.Joint(
            "joint1", "universal", "link0", "link1", axis=(0.0, 1.0, 0.0), axis2=(0.2, 0.0, 1.0)
        ),
    ]
    if carried:
        body = fx.Body(0.5, (0.0, 0.0, 0.0), (1e-2, 1e-2, 1e-2, 0.0, 0.0, 0.0))
        links = [fx.Link(name, 0.1, body=body, rigid=True) for name in ("cart", "table")] + links
        # The next joint would stand at the body's end.
        back = (-0.1, 0.0, 0.0)
        joints = [
            fx.Joint("slide", "prismatic", "ground", "cart", axis=tuple(ALONG)),
            fx.Joint("turn", "revolute", "cart", "table", axis=ABOUT, offset=back),
            fx.Joint("joint0", "revolute", "table", "link0", axis=(0.3, 0.1, 1.0), offset=back),
            joints[1],
        ]
    return fx.Robot.serial(links, joints, planar=False, gravity=(0.5, -9.81, 0.3))


def _moving(carried):
    """(model, drive, state at T) in a generic place."""
    if carried:
        drive = fx.Drive(
            joints={"slide": fx.Motion(SHIFT), "turn": fx.Motion(TURN), "joint0": TORQUE}
        )
    else:
        translation = fx.stack([x * SHIFT if x else fx.constant(0.0) for x in ALONG])
        drive = fx.Drive(
            joints={"joint0": TORQUE}, base=fx.Base(translation=translation, angle=TURN, axis=ABOUT)
        )
    model = fx.ScrewSynthesis(modes=SHAPES).bind(_robot(carried))
    joints = {"joint0": jnp.asarray(0.4), "joint1": jnp.array([-0.7, 0.3])}
    rates = {"joint0": jnp.asarray(1.1), "joint1": jnp.array([-0.5, 0.8])}
    y = model.initial_state(drive, jnp.asarray(T), Start(joints=joints, rates=rates))
    eta, rate = np.random.default_rng(0).normal(size=(2, 2 * sum(SHAPES)))
    count = eta.size
    q, v = y.mech.q.at[-count:].set(1e-3 * eta), y.mech.v.at[-count:].set(0.3 * rate)
    return model, drive, eqx.tree_at(lambda y: (y.mech.q, y.mech.v), y, (q, v))


@pytest.fixture(scope="module")
def seen():
    """What the arm on a moving base shows, and the rate of it along its own motion."""
    model, drive, y = _moving(carried=False)

    @eqx.filter_jit
    def show(y):
        a = model.term(drive).accelerate(Instant(T, None, y.memory), y.mech.q, y.mech.v)

        def at(t, q, v):
            return model.observe(
                t, eqx.tree_at(lambda y: (y.mech.q, y.mech.v), y, (q, v)), drive, STATIONS
            )

        return jax.jvp(at, (jnp.asarray(T), y.mech.q, y.mech.v), (jnp.ones(()), y.mech.v, a))

    return show(y)


def test_twists_and_accelerations_are_rates_of_poses_and_twists(seen, record_number):
    now, rate = seen
    turn = jax.vmap(jax.vmap(se3.quat_to_matrix))
    R, R_rate = jax.jvp(turn, (now.frames[..., 3:],), (rate.frames[..., 3:],))
    spin = jnp.swapaxes(R, -1, -2) @ R_rate
    omega = jnp.stack([spin[..., 2, 1], spin[..., 0, 2], spin[..., 1, 0]], -1)
    linear = jnp.einsum("lsji,lsj->lsi", R, rate.frames[..., :3])
    twist = jnp.concatenate([linear, omega], -1)
    record_number(
        "moving base: twists of sections - rates of their poses",
        np.max(np.abs(twist - now.velocity)),
        1e-12,
    )
    # Velocity is in body axes, acceleration is that of the point: u' + w x u.
    point = rate.velocity[..., :3] + jnp.cross(now.velocity[..., 3:], now.velocity[..., :3])
    acceleration = jnp.concatenate([point, rate.velocity[..., 3:]], -1)
    size = np.max(np.abs(now.acceleration))
    record_number(
        "moving base: accelerations - rates of twists, relative",
        np.max(np.abs(acceleration - now.acceleration)) / size,
        1e-12,
    )


def test_deformation_and_torques_are_told(seen):
    now, _ = seen
    base, along = now.frames[:, :1], 0.8 * STATIONS[None, :, None] * jnp.array([[[1.0, 0.0, 0.0]]])
    R = jax.vmap(se3.quat_to_matrix)(base[:, 0, 3:])
    points = base[..., :3] + jnp.einsum("lij,lsj->lsi", R, along + now.deflection)
    np.testing.assert_allclose(now.frames[..., :3], points, atol=1e-14)
    assert (
        np.min(np.abs(now.strain[:, 1:-1][..., [0, 3, 4, 5]])) > 0
    )  # at midspan: one function in every direction
    axis = np.array([0.3, 0.1, 1.0]) / np.linalg.norm([0.3, 0.1, 1.0])
    np.testing.assert_allclose(now.effort, [0.7, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(
        axis @ now.reaction[0, 3:], 0.7, atol=1e-10
    )  # what the joint transmits along its axis is the torque
    np.testing.assert_allclose(np.array([0.2, 0.0, 1.0]) @ now.reaction[1, 3:], 0.0, atol=1e-10)


def test_moving_base_is_an_arm_on_a_cart(seen, record_number):
    """The same motion of the ground as two joints with prescribed motions, which the recursion
    treats in another way.
    """
    now, _ = seen
    model, drive, y = _moving(carried=True)
    cart = eqx.filter_jit(model.observe)(T, y, drive, STATIONS)
    pairs = {
        "joint accelerations": (now.qdd, cart.qdd[2:]),
        "poses": (now.frames, cart.frames[2:]),
        "twists": (now.velocity, cart.velocity[2:]),
        "accelerations": (now.acceleration, cart.acceleration[2:]),
        "joint wrenches": (now.reaction, cart.reaction[2:]),
    }
    for name, (a, b) in pairs.items():
        record_number(
            f"moving base against an arm on a cart: {name}, relative",
            np.max(np.abs(a - b)) / np.max(np.abs(b)),
            1e-10,
        )
