"""One small arm per formulation, its free parameters, and the study that each must pass."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.study.identify.fit._problem import build, measure_data
from flexjax.study.identify.uncertainty._bootstrap import readings_at, repeat


def tones(ts, seed=0, size=1.0, frequencies=(0.7, 1.9, 3.1, 5.3)):
    """A sum of sines with fixed phases: excites without jumps, starts from zero with zero slope by
    a soft ramp.
    """
    rng = np.random.default_rng(seed)
    u = sum(
        np.sin(2 * np.pi * f * ts + p)
        for f, p in zip(frequencies, rng.uniform(0, 6, len(frequencies)), strict=True)
    )
    soft = np.clip(ts / (0.15 * ts[-1]), 0, 1)
    return size * u * soft**2 * (3 - 2 * soft)


def joint_arm(**changes) -> fx.Robot:
    """A rigid link behind a flexible joint, with a payload: the smallest arm that has something to
    identify.
    """
    link = fx.Link(
        "link", 0.5, rigid=True, body=fx.Body(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02, 0, 0, 0))
    )
    joint = fx.Joint(
        "pin",
        "revolute",
        "ground",
        "link",
        stiffness=40.0,
        damping=0.05,
        motor=fx.Motor(rotor=0.02),
    )
    sensors = (fx.Sensor("angle", "encoder", "pin"), fx.Sensor("motor", "motor_encoder", "pin"))
    return fx.Robot(
        "bench",
        (link,),
        (joint,),
        (fx.Payload("load", "link", 0.3),),
        sensors,
        planar=True,
        gravity=(0, 0, 0),
        **changes,
    )


JOINT_FREE = ["joints.pin.stiffness", "joints.pin.damping", "payloads.load.mass"]


def joint_record(samples=201, step=0.01, **others) -> fx.Experiment:
    """Inputs of a run of the joint arm; the readings are to be filled in."""
    ts = step * np.arange(samples)
    return fx.Experiment(
        ts, {"angle": 0 * ts, "motor": 0 * ts}, efforts={"pin": tones(ts, size=0.5)}, **others
    )


def filled(
    experiment: fx.Experiment, model, *, free, at=None, noise=0.0, seed=0, dt=0.01
) -> fx.Experiment:
    """The same experiment with the readings of a model whose free numbers are ``at``, and noise
    relative to their standard deviation.
    """
    problem = build(model, [experiment], free, dt=dt)
    (run,), _ = problem.predict(
        problem.parameters.inverse(jnp.asarray(problem.parameters.start if at is None else at))
    )
    rng = np.random.default_rng(seed)
    y = {s: np.asarray(run[0, :, k]) for k, s in enumerate(problem.groups[0].sensors)}
    return dataclasses.replace(
        experiment, sensors={s: v + noise * v.std() * rng.normal(size=len(v)) for s, v in y.items()}
    )


def study(model, experiment, free, *, n=100, dt, noise=0.02, spread=0.3, seed=0):
    """(largest relative error without noise over ``n`` arms drawn within ``spread``, coverage of 95
    % intervals with noise).
    """
    problem = build(model, [experiment], free, dt=dt)
    measured, _ = measure_data(problem, [experiment])
    rng = np.random.default_rng(seed)
    truth = np.asarray(problem.parameters.start)[None, :] * rng.uniform(
        1 - spread, 1 + spread, (n, len(free))
    )
    z = np.stack([np.asarray(problem.parameters.inverse(jnp.asarray(x))) for x in truth])
    silent = dict.fromkeys(problem.groups[0].sensors, 0.0)
    clean = repeat(problem, measured, z, silent, n=n)
    (y,) = readings_at(problem, jnp.zeros((n, len(free))))
    sd = {s: noise * float(jnp.std(y[0, ..., k])) for k, s in enumerate(problem.groups[0].sensors)}
    noisy = repeat(problem, measured, np.zeros(len(free)), sd, n=n, seed=seed)
    return float(np.max(np.abs(clean.values / clean.truth - 1))), noisy


def flexible_arm(flexible_joint=True) -> fx.Robot:
    """One elastic link with a payload, on a joint that may be flexible; moves in the horizontal
    plane.
    """
    link = fx.Link(
        "link",
        0.5,
        section=fx.Rectangle(0.03, 0.003),
        material=fx.Material(E=70e9, nu=0.33, rho=2700.0),
        damping=fx.Damping(strain_rate=5e-3),
    )
    soft = {"stiffness": 60.0, "damping": 0.05} if flexible_joint else {}
    joint = fx.Joint("pin", "revolute", "ground", "link", hub=fx.Hub(0.0, 2e-3), **soft)
    sensors = (
        fx.Sensor("angle", "encoder", "pin"),
        fx.Sensor("gauge", "strain_gauge", "link", s=0.0, position=(0.0015, 0.0)),
        fx.Sensor("tip", "tip", "link", direction=(0.0, 1.0, 0.0)),
    )
    return fx.Robot(
        "elastic bench",
        (link,),
        (joint,),
        (fx.Payload("load", "link", 0.2),),
        sensors,
        planar=True,
        gravity=(0, 0, 0),
    )


ELASTIC_FREE = [
    "links.link.material.E",
    "links.link.damping.strain_rate",
    "payloads.load.mass",
    "joints.pin.stiffness",
]


def flexible_record(flexible_joint=True, samples=121, step=0.005, size=0.1) -> fx.Experiment:
    """Inputs of a run in which the motor follows a sum of sines; an encoder on the motor itself
    would tell nothing.
    """
    ts = step * np.arange(samples)
    names = ("angle", "gauge", "tip") if flexible_joint else ("gauge", "tip")
    return fx.Experiment(
        ts,
        {s: 0 * ts for s in names},
        motions={"pin": tones(ts, size=size, frequencies=(1.7, 3.1, 5.3, 7.9))},
    )
