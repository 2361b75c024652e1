"""Creates the data set that ships with flexjax: two simulated recordings of the bench arm.

    python experiments/identify_bench_arm/make_data.py

The simulated arm differs from bench-arm.toml in three parameters (TRUE below). The noise is normal,
with 2 % of each reading's standard deviation.
"""

from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import flexjax as fx
from flexjax.study.identify.records import _dataset

TRUE = _dataset.TRUTH["bench-arm"]
STEP, SAMPLES, NOISE = 0.01, 301, 0.02
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


def main(folder: Path = _dataset.FOLDER):
    arm = fx.load_robot(_dataset.FOLDER / "bench-arm.toml")
    for path, value in TRUE.items():
        arm = arm.replace(path, value)
    model = fx.RigidArm().bind(arm)
    ts = STEP * np.arange(SAMPLES)
    for k, (name, tones) in enumerate(TONES.items()):
        rng = np.random.default_rng(2024 + k)
        u = np.round(current(ts, tones, rng), 5)
        record = fx.Experiment(ts, {"link-angle": 0 * ts}, currents={"shoulder": u})
        traj = fx.simulate(model, record.full_drive(arm), ts, dt=STEP / 4)
        columns = {"time [s]": ts, "current.shoulder [A]": u}
        for sensor, y in fx.measure(traj).items():
            y = np.degrees(np.asarray(y))
            columns[f"{sensor} [deg]"] = y + NOISE * y.std() * rng.normal(size=len(y))
        rows = [",".join(columns)] + [
            ",".join(f"{x:.6g}" for x in row) for row in zip(*columns.values(), strict=True)
        ]
        (folder / f"bench-arm-{name}.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
