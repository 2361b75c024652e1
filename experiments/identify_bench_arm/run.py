"""Recovers the parameters of the simulated data set that ships with flexjax.

    python experiments/identify_bench_arm/run.py

One recording is fitted, the other predicted. The true parameters are used only in the final
comparison. The script writes results/bench_arm.json and .npz for plot.py. make_data.py created the
recordings.
"""

import argparse
import sys
import tomllib
from pathlib import Path

import jax

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
jax.config.update("jax_enable_x64", True)

import identify_tools as tools

import flexjax as fx


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="no effect: the run is short")
    parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    robot, training, validation, truth = fx.load_dataset(config["data"])
    model = fx.TransferMatrix(segments=config["segments"]).bind(robot)
    result = fx.identify(model, training, config["free"], validation=validation, dt=config["dt"])
    print(result)
    claims, numbers, arrays = (
        {},
        {"estimates": result.estimates, "truth": truth, "intervals": {}},
        {},
    )
    for name, (low, high) in zip(result.names, result.intervals(config["level"]), strict=True):
        numbers["intervals"][name] = [float(low), float(high)]
        claims[name] = result.estimates[name]
        claims[f"{name}: the truth lies in its {100 * config['level']:g} % interval (1: yes)"] = (
            float(low <= truth[name] <= high)
        )
    for role, c in (("fit", result.training[0]), ("validation", result.validation[0])):
        for sensor, fit in c.fits.items():
            claims[f"{role}, {sensor} [%]"] = fit
            numbers[f"{role}, {sensor} [%]"] = fit
            arrays |= {
                f"{role}.{sensor}.measured": c.data.sensors[sensor],
                f"{role}.{sensor}.model": c.predicted[sensor],
            }
        arrays[f"{role}.t"] = c.data.ts
    claims["residuals are white (1: yes)"] = float(result.white)
    tools.save(HERE / "results", "bench_arm", numbers, arrays)
    sys.exit(1 if tools.judge(HERE / "expected.json", claims) else 0)


if __name__ == "__main__":
    main()
