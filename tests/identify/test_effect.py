"""A free parameter without effect on the data is refused by name, whatever the data are."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import flexjax as fx
from flexjax.study.identify.fit._effect import takes_part
from flexjax.study.identify.fit._problem import build

TS = np.linspace(0.0, 0.2, 9)


def experiment(robot: fx.Robot, sensor: str) -> fx.Experiment:
    drive = fx.Drive({robot.tree_joints[0].name: fx.Motion(fx.quintic(0.0, 0.3, 0.2))})
    return fx.Experiment(TS, {sensor: 0.1 * np.sin(TS)}, drive=drive)


@pytest.mark.parametrize(
    ("free", "options"),
    [
        (["links.*.material.E", "gravity.1"], {}),
        (["links.upper.material.E"], {"method": optax.sgd(1e-9), "max_steps": 1}),
    ],
)
def test_elasticity_of_a_rigid_arm_is_refused(free, options):
    robot = fx.load_robot("two-link")
    model, data = fx.RigidArm().bind(robot), experiment(robot, "elbow-angle")
    with pytest.raises(ValueError, match=r"free: links\.upper\.material\.E.*without effect") as e:
        fx.identify(model, data, free, dt=0.025, **options)
    assert "RigidArm" in str(e.value) and "gravity" not in str(e.value)


def test_natural_frequencies_without_elasticity_are_refused():
    model = fx.RigidArm().bind(fx.load_robot("li-zhang-three-link"))
    with pytest.raises(ValueError, match=r"links\.link1\.material\.E: without effect"):
        fx.identify(model, fx.Modal([9.0]), "links.link1.material.E")


def test_what_may_have_an_effect_is_searched_for():
    """A stop that is not reached has no derivative; it may have one elsewhere."""
    link = fx.Link(
        "bar",
        0.5,
        section=fx.Rectangle(0.02, 0.02),
        material=fx.Material(E=7e10, nu=0.3, rho=2700.0),
    )
    pin = fx.Joint("pin", "revolute", "ground", "bar", stops=fx.Stops(-1.0, 1.0, 50.0, 0.1))
    sensor = fx.Sensor("angle", "encoder", "pin")
    robot = fx.Robot("bar", (link,), (pin,), sensors=(sensor,), gravity=(0.0, -9.81, 0.0))
    model = fx.RigidArm().bind(robot)
    truth = fx.simulate(model, None, TS, dt=0.025).q[:, 0]
    data = fx.Experiment(TS, {"angle": np.asarray(truth)})
    free = ["joints.pin.stops.stiffness", "gravity.1"]
    more = ["links.bar.material.E", "sensors.angle.gain"]
    problem = build(model, [data], [*free, *more], dt=0.025)
    assert takes_part(problem) == [True, True, False, True]
    result = fx.identify(model, data, free, dt=0.025)
    assert result.status == "converged"
    assert "joints.pin.stops.stiffness alone (no trace at all)" in str(result)
    assert jnp.all(jnp.isfinite(jnp.asarray(result.values)))
