"""Creates the data set that ships with flexjax: two recordings of the bench arm, made by Exudyn.

    python experiments/identify_bench_arm/make_data.py

The simulated arm differs from bench-arm.toml in four parameters (TRUE below). The noise is normal,
with 2 % of each reading's standard deviation. outside.py has the model; it needs Exudyn.
"""

import sys
from pathlib import Path

import numpy as np

import flexjax as fx
from flexjax.study.identify.records import _dataset

sys.path.insert(0, str(Path(__file__).resolve().parent))
from outside import Arm, simulated

TRUE = _dataset.TRUTH["bench-arm"]
STEP, SAMPLES, NOISE = 0.02, 151, 0.02
TONES = {"fit": (0.6, 1.7, 3.3, 5.1), "check": (0.9, 2.3, 4.2, 5.9)}


def current(ts, tones, rng):
    soft = np.clip(ts / 0.5, 0, 1) ** 2 * (3 - 2 * np.clip(ts / 0.5, 0, 1))
    return (
        0.5
        * soft
        * sum(
            np.sin(2 * np.pi * f * ts + p)
            for f, p in zip(tones, rng.uniform(0, 6, len(tones)), strict=True)
        )
    )


def true_arm() -> tuple[Arm, float]:
    """The arm of the robot file with the true parameters, and its torque constant."""
    robot = fx.load_robot(_dataset.FOLDER / "bench-arm.toml")
    for path, value in TRUE.items():
        robot = robot.replace(path, value)
    link, joint = robot.links[0], robot.joints[0]
    friction = joint.friction
    values = {
        "length": link.length,
        "height": 0.003,
        "width": 0.03,
        "E": link.material.E,
        "rho": link.material.rho,
        "tau": link.damping.strain_rate,
        "payload": robot.payloads[0].mass,
        "hub": joint.hub.inertia,
        "rotor": joint.motor.rotor,
        "coulomb": friction.coulomb,
        "breakaway": friction.breakaway,
        "stribeck": friction.stribeck,
        "bristle": friction.bristle,
        "bristle_damping": friction.bristle_damping,
    }
    floats = {name: float(value) for name, value in values.items()}
    return Arm(**floats), float(joint.motor.torque_constant)


def main(folder: Path = _dataset.FOLDER):
    from scipy.interpolate import CubicSpline

    arm, constant = true_arm()
    ts = STEP * np.arange(SAMPLES)
    for k, (name, tones) in enumerate(TONES.items()):
        rng = np.random.default_rng(2024 + k)
        u = np.round(current(ts, tones, rng), 5)
        course = CubicSpline(ts, constant * u)
        clean = simulated(arm, lambda t, course=course: float(course(t)), ts)
        columns = {"time [s]": ts, "current.shoulder [A]": u}
        readings = {
            "shoulder-angle [deg]": np.degrees(clean["angle"]),
            "gauge [um/m]": 1e6 * clean["strain"],
        }
        for column, y in readings.items():
            columns[column] = y + NOISE * y.std() * rng.normal(size=len(y))
        rows = [",".join(columns)] + [
            ",".join(f"{x:.6g}" for x in row) for row in zip(*columns.values(), strict=True)
        ]
        (folder / f"bench-arm-{name}.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
