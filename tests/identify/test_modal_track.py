"""Natural frequencies over time: a sprung arm whose second joint folds it meanwhile."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify._leave_out import leave_rows_out

K, GAIN, OFFSET, ARM, REACH, MASS, ZETA_C = 40.0, 2.0, 0.3, 0.5, 0.4, 0.3, 0.05
FREE = ["joints.base.stiffness", "joints.base.damping", "sensors.fold.gain", "sensors.fold.offset"]


def arm():
    """A massless link on a spring, and a massless link behind it with a mass at its end."""
    bare = fx.Body(0.0, (0, 0, 0), (0, 1e-9, 1e-9, 0, 0, 0))
    links = [fx.Link(n, x, rigid=True, body=bare) for n, x in (("arm", ARM), ("fore", REACH))]
    joints = [
        fx.Joint("base", "revolute", "ground", "arm", stiffness=K, damping=ZETA_C),
        fx.Joint("elbow", "revolute", "arm", "fore"),
    ]
    robot = fx.Robot(
        "folding",
        tuple(links),
        tuple(joints),
        (fx.Payload("load", "fore", MASS),),
        (fx.Sensor("fold", "encoder", "elbow", gain=GAIN, offset=OFFSET),),
        planar=True,
        gravity=(0, 0, 0),
    )
    return fx.RigidArm().bind(robot)


def truth(q):
    """Frequency [Hz] and damping ratio by hand: a mass at a distance that depends on q."""
    inertia = MASS * (ARM**2 + REACH**2 + 2 * ARM * REACH * np.cos(q))
    w = np.sqrt(K / inertia)
    return w / (2 * np.pi), ZETA_C / (2 * w * inertia)


def track(q, **others):
    drive = fx.Drive(joints={"base": fx.Motion(fx.constant(0.0))})
    f, z = truth(q)
    z = np.where(np.arange(len(q)) == 1, np.nan, z)  # one decay is unknown
    ts, readings = np.arange(len(q)) * 0.5, {"fold": GAIN * q + OFFSET}
    return fx.ModalTrack(ts, f, readings, damping=z, drive=drive, **others)


Q = np.linspace(0.0, 2.0, 6)


def test_frequencies_are_those_by_hand():
    f, z = track(Q).vibrations(arm())
    np.testing.assert_allclose(f[:, 0], truth(Q)[0], rtol=1e-6)
    np.testing.assert_allclose(z[:, 0], truth(Q)[1], rtol=1e-6)


def test_spring_damper_and_encoder_are_found():
    model, data = arm(), track(Q, name="folding")
    wrong = model.robot
    for path, value in zip(FREE, (30.0, 0.1, 1.5, 0.1), strict=True):
        wrong = wrong.replace(path, value)
    found = fx.identify(model.rebind(wrong), data.pick(slice(0, 4)), FREE, validation=data)
    np.testing.assert_allclose(found.values, [K, ZETA_C, GAIN, OFFSET], rtol=1e-5)
    assert found.validation[0].fits["folding"] > 99.99 and "fit, folding" in str(found)


def test_rows_left_out_are_predicted_from_the_others():
    found = fx.identify(arm(), track(Q), FREE[:2])
    left_out = leave_rows_out(found, np.arange(6) // 2)
    np.testing.assert_allclose(left_out, track(Q).shown(track(Q).measured()[0]), rtol=1e-5)
    with pytest.raises(ValueError, match="at least two folds over 6 rows"):
        leave_rows_out(found, np.zeros(6))


def test_derivatives_are_those_of_differences():
    model, data = arm(), track(Q)

    def loss(x):
        robot = model.robot
        for path, value in zip(FREE, x, strict=True):
            robot = robot.replace(path, value)
        return jnp.sum(data.predict(model.rebind(robot)) ** 2)

    x = jnp.array([K, ZETA_C, GAIN, OFFSET])
    forward, reverse = jax.jacfwd(loss)(x), jax.grad(loss)(x)
    h = 1e-5 * x
    steps = jnp.diag(h)
    central = jnp.array([(loss(x + s) - loss(x - s)) / (2 * jnp.sum(s)) for s in steps])
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    np.testing.assert_allclose(forward, central, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"frequencies": [[1.0], [-2.0]]}, "positive frequencies in Hz"),
        ({"frequencies": [[1.0]]}, "2,\\) times and \\(1, 1\\) frequencies"),
        ({"damping": [[0.1], [1.5]]}, "from 0 to below 1"),
        ({"index": (0, 1)}, "for each of the 1 columns"),
        ({"readings": {"fold": [0.0]}}, "readings.fold has shape"),
        ({"readings": {"fold": [0.0, np.nan]}}, "expected 2 finite values"),
        ({"sd": -1.0}, "sd; expected positive numbers"),
        ({"sd": [1.0, 1.0, 1.0]}, "sd; expected positive numbers"),
    ],
)
def test_bad_tracks_are_refused(change, says):
    given = {"ts": [0.0, 1.0], "frequencies": [[1.0], [2.0]], "readings": {"fold": [0.0, 0.1]}}
    with pytest.raises(ValueError, match=says):
        fx.ModalTrack(**(given | change))


def test_readings_of_no_encoder_are_refused():
    data = fx.ModalTrack([0.0], [[1.0]], {"tilt": [0.0]})
    with pytest.raises(ValueError, match="'tilt' is no sensor; expected one of fold"):
        fx.identify(arm(), data, FREE)
