"""The data sets that ship with flexjax: simulated records with noise, made by the project, for tests, the tour and first steps."""

import difflib
from pathlib import Path
from typing import NamedTuple

from flexjax.robot import Robot, load_robot
from flexjax.study.identify.records._experiment import Experiment

FOLDER = Path(__file__).with_name("data")


# The numbers with which the records were simulated, where they differ from the robot file (experiments/identify_bench_arm/make_data.py).
TRUTH = {
    "bench-arm": {
        "joints.shoulder.stiffness": 38.0,
        "joints.shoulder.damping": 0.062,
        "payloads.tool.mass": 0.31,
    }
}


class Dataset(NamedTuple):
    """``robot`` is what one would write down before identifying; ``training`` and ``validation`` are two records; ``truth`` are the numbers that the
    records were made with."""

    robot: Robot
    training: Experiment
    validation: Experiment
    truth: dict[str, float]


def datasets() -> list[str]:
    """Names of the shipped data sets.

    >>> import flexjax as fx
    >>> fx.datasets()
    ['bench-arm']
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_dataset(name: str) -> Dataset:
    """A shipped data set: robot, a record to fit, a record to check."""
    if name not in datasets():
        near = difflib.get_close_matches(name, datasets(), 1)
        raise ValueError(
            f"data set {name!r}: unknown; {f'did you mean {near[0]!r}?' if near else 'there are ' + ', '.join(datasets())}"
        )
    return Dataset(
        load_robot(FOLDER / f"{name}.toml"),
        Experiment.read(FOLDER / f"{name}-fit.csv", name="fit"),
        Experiment.read(FOLDER / f"{name}-check.csv", name="check"),
        TRUTH[name],
    )
