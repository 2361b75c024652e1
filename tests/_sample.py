"""One small trajectory for the tests of files, pictures and pages: compiled once per session."""

from functools import cache

import jax.numpy as jnp

import flexjax as fx


@cache
def sample_model():
    return fx.RigidArm().bind(fx.load_robot("two-link"))


def sample_drive():
    hold = fx.Sampled(_damp, period=0.01, params=jnp.asarray(0.1), delay=1)
    return fx.Drive(joints={"shoulder": hold, "elbow": fx.Motion(fx.quintic(-0.5, 0.2, 0.1))})


def _damp(t, q, qd, params):
    return -params * qd[0]


@cache
def sample_trajectory():
    return fx.simulate(
        sample_model(), sample_drive(), jnp.linspace(0.0, 0.1, 6), dt=5e-3, stations=3
    )
