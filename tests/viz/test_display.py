"""Notebooks show results as a table with figures: well-formed, escaped, and of finite numbers."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax._html import bars, curves
from flexjax.simulate import Comparison
from flexjax.simulate.analysis._compare import Row
from flexjax.simulate.analysis._gradients import GradientTable
from flexjax.study.identify._compare_models import ModelComparison, Row as ModelRow
from flexjax.study.identify._design import Candidate, Design
from flexjax.study.identify._posterior import Posterior
from flexjax.study.identify._result import Comparison as Fit, Identification
from flexjax.study.optimise._many import Moves
from flexjax.study.optimise._result import Optimisation
from flexjax.study.optimise.horizon._mpc import Mpc
from flexjax.study.optimise.horizon._shoot import Plan
from tests._sample import sample_model, sample_trajectory

NAME = "<b>fit"


def made(cls, **given):
    """A result with some of its fields; the picture and the table must not need the others."""
    names = {field.name for field in dataclasses.fields(cls)}
    assert set(given) <= names
    found = object.__new__(cls)
    for name in names:
        object.__setattr__(found, name, given.get(name))
    return found


def experiment():
    ts = np.linspace(0.0, 1.0, 51)
    return fx.Experiment(ts, {"gauge": np.sin(ts)}, efforts={"pin": np.cos(ts)}, name=NAME)


class Identified(Identification):
    """Without the intervals, which need the problem."""

    def intervals(self, level=0.95, *, robust=False):
        return np.array([[0.9, 1.1]])


def identification():
    data = experiment()
    return made(
        Identified,
        names=("links.a.material.E",),
        units=("Pa",),
        start=np.ones(1),
        values=np.ones(1),
        covariance=np.eye(1),
        model=sample_model(),
        training=(Fit(data, {"gauge": 0.9 * data.sensors["gauge"]}),),
        validation=(),
        singular_values=np.ones(1),
        directions=np.eye(1),
        sizes=np.ones(1),
        history=[3.0, 1.0, 0.5],
        status="converged",
        evaluations=3.0,
        seconds=1.0,
        samples=51,
        noise_known=True,
        ar={},
    )


def model_row(name):
    fits = {"one": 95.0, "two": 90.0}
    return ModelRow(name, 2, fits, fits, {}, -10.0, -9.0, True, identification(), {})


def comparison():
    traj = sample_trajectory()
    row = Row("RigidArm", 2, 0.0, 0.0, 0.0, 1e-9, (1.0, 2.0), 1.0, 0.1)
    return Comparison(traj.robot, "RigidArm", (row,), {"RigidArm": traj}, {})


def optimisation():
    traj = sample_trajectory()
    return made(
        Optimisation,
        trajectory=traj,
        status="converged",
        history=[{}],
        evaluations=3,
        seconds=1.0,
        duration=0.5,
        violation=0.0,
        kkt=1e-6,
        costs={"residual_energy": (1.0, 2.0)},
        samples=np.zeros((1, 0)),
        active=(),
    )


def moves():
    numbers = np.array([0.5, 0.2])
    return made(
        Moves,
        cost=numbers,
        status=("converged", "iterations"),
        iterations=np.array([3, 4]),
        violation=numbers,
        kkt=numbers,
    )


def mpc():
    k = np.arange(5.0)
    tip = np.outer(np.append(k, 5.0), np.ones(3))
    return made(
        Mpc,
        times=0.01 * np.arange(6),
        tip=tip,
        effort=np.stack([k, -k], axis=1),
        seconds=1e-3 * (1 + k),
        sample=0.01,
        goal=np.zeros(3),
    )


def plan():
    given = {"times": 0.1 * np.arange(4), "effort": np.ones((4, 2)), "cost": 1.0, "gap": 1e-9}
    return made(Plan, **given, status="converged", history=[{}], seconds=1.0)


RESULTS = {
    "experiment": (experiment, 2),
    "identification": (identification, 2),
    "comparison of models": (lambda: ModelComparison((model_row(NAME), model_row("b")), ()), 1),
    "comparison of formulations": (comparison, 2),
    "gradients": (
        lambda: GradientTable(
            (NAME, "b"), *(np.ones(2) * x for x in (1.0, 1.0, 1.001)), np.zeros(2), np.ones(2)
        ),
        1,
    ),
    "optimisation": (optimisation, 3),
    "moves": (moves, 1),
    "mpc": (mpc, 3),
    "plan": (plan, 1),
    "design": (
        lambda: Design(("a",), (Candidate(*_candidate()),), sample_model().robot, np.zeros(1)),
        1,
    ),
    "posterior": (lambda: Posterior(("a", "b"), np.eye(18).reshape(2, 81, 2), 1.0, 0), 2),
    "snapshot": (lambda: sample_trajectory()[-1], 1),
}


def _candidate():
    values = {"name": NAME, "score": 1.5, "errors": np.ones(1)}
    return [values.get(name) for name in Candidate._fields]


@pytest.mark.parametrize("kind", RESULTS)
def test_results_are_tables_with_figures(kind):
    make, figures = RESULTS[kind]
    html = make()._repr_html_()
    svgs = re.findall(r"<svg.*?</svg>", html, re.S)
    assert html.startswith("<pre") and len(svgs) == figures
    for svg in svgs:
        ElementTree.fromstring(svg)
        assert "nan" not in svg and "inf" not in svg
    assert NAME not in html


def test_rest_and_sweep():
    at = fx.rest(sample_model(), {"elbow": -0.5})
    assert "held by" in str(at) and at._repr_html_().count("<svg") == 1
    drive = fx.Drive(joints={"elbow": fx.Motion(fx.constant(-0.5))})
    ts = jnp.linspace(0.0, 0.02, 3)
    height = {"height": lambda traj: traj.tip[-1, 1]}
    design = fx.grid({"payloads.gripper.mass": [0.1, 0.2, 0.3]})
    result = fx.sweep(sample_model(), design, ts=ts, drive=drive, outputs=height, dt=0.01)
    assert result._repr_html_().count("<svg") == 1


def test_bars():
    svg = bars({"a": 2.0, "b": -1.0, "c": np.nan, "<d>": 0.0}, "x [m]")
    tree = ElementTree.fromstring(svg)
    rects = [float(x.attrib["width"]) for x in tree.iter() if x.tag.endswith("rect")]
    assert len(rects) == 3 and rects[0] == pytest.approx(2 * rects[1], rel=1e-2)
    assert bars({"a": np.nan}, "x") == "" and curves([0.0], {}, "x", "y") == ""
