"""Do the intervals cover the truth where another code made the recordings?

    python experiments/identify_bench_arm/recovery.py

Exudyn simulates 50 arms with a flexible link, a flexible gear and friction, whose parameters are
drawn within 15 % of the robot's; each recording has its own noise of 2 %. Every formulation fits
all of them in one program. The script prints how often the 95 % intervals contain the truth, and
the mean of the errors in standard errors, which shows a bias.
"""

import argparse
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
jax.config.update("jax_enable_x64", True)

from outside import STRAIN_AT, Arm, simulated

import flexjax as fx
from flexjax.study.identify.fit._problem import build, measure_data
from flexjax.study.identify.uncertainty._bootstrap import Bootstrap, fitted

FORMULATIONS = {
    "TransferMatrix": fx.TransferMatrix(segments=48),
    "FiniteElement": fx.FiniteElement(elements=8),
    "PortHamiltonian": fx.PortHamiltonian(elements=32),
}
NOMINAL = {
    "links.link.material.E": 70e9,
    "payloads.tool.mass": 0.25,
    "joints.pin.stiffness": 60.0,
    "joints.pin.friction.coulomb": 0.15,
}
SENSORS = {"motor-angle": "motor", "link-angle": "angle", "gauge": "strain"}  # in Exudyn
TS, DT, NOISE, SPREAD = 0.01 * np.arange(151), 5e-4, 0.02, 0.15
FRICTION_SPEED = 0.2  # rad/s


def torque(t: float) -> float:
    ramp = min(t / 0.3, 1.0)
    tones = zip((0.9, 2.3, 4.1, 6.1), (0.3, 4.8, 2.1, 3.9), strict=True)
    return 0.4 * ramp**2 * (3 - 2 * ramp) * sum(np.sin(2 * np.pi * f * t + p) for f, p in tones)


def robot() -> fx.Robot:
    link = fx.Link(
        "link",
        0.5,
        section=fx.Rectangle(width=0.03, height=0.003),
        material=fx.Material(E=NOMINAL["links.link.material.E"], nu=0.33, rho=2700.0),
        damping=fx.Damping(strain_rate=3e-3),
    )
    joint = fx.Joint(
        "pin",
        "revolute",
        "ground",
        "link",
        stiffness=NOMINAL["joints.pin.stiffness"],
        damping=0.05,
        friction=fx.Friction(NOMINAL["joints.pin.friction.coulomb"], v_eps=FRICTION_SPEED),
        hub=fx.Hub(0.0, inertia=0.01),
        motor=fx.Motor(rotor=0.02),
    )
    sensors = (
        fx.Sensor("motor-angle", "motor_encoder", "pin"),
        fx.Sensor("link-angle", "encoder", "pin"),
        fx.Sensor("gauge", "strain_gauge", "link", s=STRAIN_AT, position=(0.0015, 0.0)),
    )
    tool = fx.Payload("tool", "link", NOMINAL["payloads.tool.mass"])
    return fx.Robot(
        "arm", (link,), (joint,), (tool,), sensors, planar=True, gravity=(0.0, 0.0, 0.0)
    )


def outside_records(count: int) -> tuple[np.ndarray, np.ndarray]:
    """True parameters (n, p) and noisy readings (n, T, S) of arms simulated by Exudyn."""
    from scipy.interpolate import CubicSpline

    course = CubicSpline(TS, [torque(t) for t in TS])  # as flexjax reads the recorded torque
    truth, readings = [], []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        E, mass, gear, coulomb = drawn = np.array(list(NOMINAL.values())) * rng.uniform(
            1 - SPREAD, 1 + SPREAD, len(NOMINAL)
        )
        arm = Arm(
            *(0.5, 0.003, 0.03, E, 2700.0, 3e-3, mass, 0.01, 0.02, coulomb),
            gear=gear,
            gear_damping=0.05,
            v_eps=FRICTION_SPEED,
        )
        clean = simulated(arm, lambda t: float(course(t)), TS)
        y = np.stack([clean[name] for name in SENSORS.values()], axis=-1)
        truth.append(drawn)
        readings.append(y + NOISE * y.std(axis=0) * rng.normal(size=y.shape))
    return np.array(truth), np.array(readings)


def coverage(formulation, truth: np.ndarray, readings: np.ndarray) -> Bootstrap:
    """Fits of all recordings by one formulation."""
    empty = {name: readings[0, :, k] for k, name in enumerate(SENSORS)}
    record = fx.Experiment(TS, empty, efforts={"pin": np.array([torque(t) for t in TS])})
    problem = build(formulation.bind(robot()), [record], list(NOMINAL), dt=DT)
    measured, _ = measure_data(problem, [record])
    order = [list(SENSORS).index(s) for s in problem.groups[0].sensors]
    values = jnp.asarray(readings[:, None, :, order])  # one experiment each
    weights = jnp.asarray(
        np.broadcast_to(1 / (NOISE * readings[..., order].std(axis=(0, 1))), values.shape[1:])
    )
    data = eqx.tree_at(lambda m: (m.values, m.weights), measured, ((values,), (weights,)))
    z = np.stack([np.asarray(problem.parameters.inverse(jnp.asarray(x))) for x in truth])
    return fitted(problem, data, z, level=0.95)


def bias(found: Bootstrap) -> np.ndarray:
    """Mean over the recordings of the error in units of its standard error."""
    size = np.diff(found.intervals, axis=-1)[..., 0] / (2 * 1.96)
    return np.mean((found.values - found.truth) / size, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--formulations", nargs="+", default=list(FORMULATIONS))
    args = parser.parse_args()
    truth, readings = outside_records(args.seeds)
    print(f"{'formulation':<16} {'parameter':<30} coverage  bias [standard errors]  error [%]")
    for name in args.formulations:
        found = coverage(FORMULATIONS[name], truth, readings)
        spread = 100 * np.std(found.values / found.truth - 1, axis=0)
        for row in zip(NOMINAL, found.coverage, bias(found), spread, strict=True):
            print("{:<16} {:<30} {:8.2f}  {:22.2f}  {:9.2f}".format(name, *row), flush=True)


if __name__ == "__main__":
    main()
