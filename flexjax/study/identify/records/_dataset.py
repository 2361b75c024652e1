"""Data sets that ship with flexjax: recordings simulated by another code, with noise."""

import difflib
from typing import NamedTuple

from flexjax._registry import DATASETS as FOLDER, dataset_names
from flexjax.robot import Robot, load_robot
from flexjax.study.identify.records._experiment import Experiment

# Parameters of the simulated recordings that differ from the robot file
# (experiments/identify_bench_arm/make_data.py).
TRUTH = {
    "bench-arm": {
        "links.link.material.E": 66e9,
        "joints.shoulder.friction.coulomb": 0.2,
        "joints.shoulder.friction.bristle": 12.0,
        "payloads.tool.mass": 0.31,
    }
}


class Dataset(NamedTuple):
    """``robot``: the description before identification; ``training``, ``validation``: two
    recordings; ``truth``: the parameters with which they were simulated."""

    robot: Robot
    training: Experiment
    validation: Experiment
    truth: dict[str, float]


def datasets() -> list[str]:
    """Names of the shipped data sets.

    Returns:
        A list of names for :func:`load_dataset`.

    >>> import flexjax as fx
    >>> fx.datasets()
    ['bench-arm']
    """
    return dataset_names()


def load_dataset(name: str) -> Dataset:
    """Load a shipped data set.

    Arguments:
        name: one of :func:`datasets`.

    Returns:
        The robot, a recording to fit, one to validate, and the true parameters.

    Raises:
        ValueError: there is no such data set.

    >>> import flexjax as fx
    >>> fx.load_dataset("bench-arm").training.name
    'fit'
    """
    if name not in datasets():
        near = difflib.get_close_matches(name, datasets(), 1)
        hint = f"did you mean {near[0]!r}?" if near else "there are " + ", ".join(datasets())
        raise ValueError(f"data set {name!r}: unknown; {hint}")
    return Dataset(
        load_robot(FOLDER / f"{name}.toml"),
        Experiment.read(FOLDER / f"{name}-fit.csv", name="fit"),
        Experiment.read(FOLDER / f"{name}-check.csv", name="check"),
        TRUTH[name],
    )
