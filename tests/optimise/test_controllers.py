"""Gains tuned through the closed loop: PD, a regulator as the start, and strain feedback."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.optimise.test_optimise import model as one_mode

LIMIT, END = 25.0, 0.5


@pytest.mark.slow
def test_gains_are_tuned_through_the_closed_loop():
    """A PD controller with saturation moves a link behind an elastic gear. The search lowers the
    vibration, and all small motions decay as fast as demanded."""
    model, rate = one_mode(), 2.0
    drive = fx.Drive(joints={"root": fx.PD(20.0, 0.5, fx.quintic(0.0, 1.0, 0.42), limit=30.0)})
    options = dict(goal={"root": 1.0}, duration=0.42, hold=0.6, dt=5e-3)
    free = {"drive.joints.root.kp": (1.0, 500.0), "drive.joints.root.kd": (0.05, 50.0)}
    res = fx.optimise(
        model, drive, free=free, minimise="residual_tip", limits={"stability": rate}, **options
    )
    assert res.ok and res.violation < 1e-6, str(res)
    assert res.history[-1]["cost"] < 0.2
    state = fx.rest(model, {"root": 1.0}).state
    A = np.asarray(fx.linearise(model, res.drive, state, t=1.0).A)
    assert np.max(np.linalg.eigvals(A).real) < -rate * (1 - 1e-6)


@pytest.mark.slow
def test_a_regulator_is_a_start_for_gains():
    model = one_mode()
    start = fx.lqr(
        model, {"root": 1.0}, effort=5.0, limit=30.0, reference={"root": fx.quintic(0, 1, 0.42)}
    )
    res = fx.optimise(
        model,
        start.drive,
        free=["drive.joints.root.params.kp", "drive.joints.root.params.kd"],
        goal={"root": 1.0},
        duration=0.42,
        hold=0.6,
        dt=5e-3,
        minimise="residual_tip",
    )
    assert res.trajectory.ok and res.history[-1]["cost"] < 1.0, str(res)


@functools.cache
def bar():
    """The metal link without weight, with a payload and a geared motor."""
    robot = fx.load_robot("metal-link")
    tool = fx.Payload("tool", "link", 0.1)
    # A rotor, without which a sampled controller excites the link.
    pin = dataclasses.replace(robot.joints[0], motor=fx.Motor(rotor=0.05))
    robot = dataclasses.replace(robot, joints=(pin,), payloads=(tool,), gravity=jnp.zeros(3))
    return fx.ScrewSynthesis(modes=1, stiffening=True).bind(robot)


def feedback(t, q, qd, params, strain):
    """PD about a reference, and the curvature at the base; saturated."""
    r, rate, _ = params["reference"].evaluate(t)
    effort = params["kp"] * (r - q[0]) + params["kd"] * (rate - qd[0])
    return jnp.clip(effort + params["ks"] * strain[0, 5], -LIMIT, LIMIT)


def loop(ks):
    gains = {"kp": 60.0, "kd": 3.0, "ks": ks}
    params = {name: jnp.asarray(value) for name, value in gains.items()}
    params["reference"] = fx.quintic(0.0, 1.0, END)
    return fx.Drive(joints={"pin": fx.Sampled(feedback, 5e-3, params, gauges=[("link", 0.05)])})


def test_a_sampled_controller_measures_strains():
    """The effort that it holds is that of the strains in the outputs."""
    ts = np.linspace(0.0, 0.1, 21)
    run = fx.simulate(bar(), loop(3.0), ts, dt=5e-3, stations=21)
    strain = np.asarray(run.strain)[:, 0, 1:2, :]  # station 0.05
    params = loop(3.0).joints["pin"].params
    expected = [
        float(feedback(t, q, qd, params, s))
        for t, q, qd, s in zip(ts, run.q, run.qd, strain, strict=True)
    ]
    # Outputs show the effort that was held until then.
    np.testing.assert_allclose(np.asarray(run.effort)[1:, 0], expected[:-1], atol=1e-9)
    assert np.max(np.abs(strain[:, 0, 5])) > 1e-3


@pytest.mark.slow
def test_strain_feedback_is_tuned_over_samples_with_saturation():
    """Gains that are good for all payloads: with the strain they leave less than without."""
    paths = [f"drive.joints.pin.params.{name}" for name in ("kp", "kd", "ks")]
    options = dict(
        goal={"pin": 1.0},
        duration=END,
        hold=0.5,
        dt=5e-3,
        minimise="residual_tip",
        spread={"payloads.tool.mass": 0.3},
        samples=3,
    )
    drive, worst = loop(0.0), []
    for free in (paths[:2], paths):
        bounds = {path: (1.0, 2000.0) if path != paths[2] else (-200.0, 200.0) for path in free}
        res = fx.optimise(bar(), drive, free=bounds, iterations=12, **options)
        # The second search starts from the best gains without the strain.
        drive, worst = res.drive, [*worst, res.costs["residual_tip"][1]]
        assert res.trajectory.ok and len(res.samples) == 3, str(res)
        assert np.max(np.abs(res.trajectory.effort)) <= LIMIT + 1e-9
        assert res.history[0]["cost"] >= res.history[-1]["cost"]
    assert worst[1] < worst[0], worst
