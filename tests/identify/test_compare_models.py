"""Which structure: a record with cross-talk and one without, ranked by recordings left out."""

import dataclasses

import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify.baselines._arx import fit_arx
from tests.identify.cases import joint_arm, tones

GAIN = "sensors.angle.crosstalk.0.gain"


def record(k: int) -> fx.Experiment:
    ts = 0.02 * np.arange(81)
    move = tones(ts, seed=k, size=0.05) + 0.2 * (k - 1) * np.minimum(ts / 1.6, 1) ** 2
    return fx.Experiment(
        ts, {"angle": 0 * ts}, motions={"pin": move}, start=fx.UnknownStart(8), name=f"run {k}"
    )


@pytest.fixture(scope="module")
def table() -> fx.study.identify.ModelComparison:
    robot = joint_arm()
    leaky = dataclasses.replace(robot.sensors[0], crosstalk=(fx.Crosstalk("motor", -0.3),))
    true = fx.RigidArm().bind(dataclasses.replace(robot, sensors=(leaky, robot.sensors[1])))
    plain = fx.RigidArm().bind(robot)
    records = []
    for k in range(3):
        blank, rng = record(k), np.random.default_rng(k)
        traj = fx.simulate(true, blank.full_drive(true.robot), blank.ts, substeps=1)
        y = np.asarray(fx.measure(traj)["angle"])
        y = y + 0.02 * y.std() * rng.normal(size=len(y))
        records.append(dataclasses.replace(blank, sensors={"angle": y}))
    free = ["joints.pin.stiffness", "joints.pin.damping"]
    wrong = true.rebind(true.robot.replace("joints.pin.stiffness", 36.0).replace(GAIN, -0.2))
    candidates = {"plain": (plain, free), "leaky": (wrong, [*free, GAIN])}
    return fx.compare_models(
        candidates, records[:2], validation=records[2:], baselines=("arx",), dt=0.02
    )


@pytest.mark.slow
def test_the_true_structure_is_first(table):
    assert table.best.name == "leaky" and table.best.parameters == 3
    assert table["leaky"].score > 95 > table["plain"].score
    assert table["leaky"].validation["run 2"] > 95 > table["plain"].validation["run 2"]


@pytest.mark.slow
def test_the_estimates_are_those_of_the_truth(table):
    found = table.best.result.estimates
    assert found["joints.pin.stiffness"] == pytest.approx(40.0, rel=0.02)
    assert found[GAIN] == pytest.approx(-0.3, rel=0.05)


@pytest.mark.slow
def test_the_table_has_a_row_for_every_model_and_its_spectra(table):
    text = str(table)
    assert all(row.name in text for row in table.rows) and "ARX of order" in text
    f, density = table.best.spectra["run 0, angle"]
    error = table.best.result.training[0]
    error = error.predicted["angle"] - error.data.sensors["angle"]
    assert np.sum(density) * f[1] == pytest.approx(np.var(error), rel=1e-6)


@pytest.mark.slow
def test_the_page_says_what_the_data_support(table):
    assert "supported by the recordings left out: leaky" in table.ranking
    assert "run 2" not in table.ranking and "above plain" in table.supported
    page = fx.comparison_report(table).html
    for text in ("leaky", "ARX of order", GAIN, "AIC", "run 2, validation", "Power density"):
        assert text in page, text


def test_arx_recovers_a_linear_system():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(300, 1))
    y = np.zeros(300)
    for k in range(2, 300):
        y[k] = 1.6 * y[k - 1] - 0.8 * y[k - 2] + 0.5 * u[k - 1, 0] + 0.1
    found = fit_arx([(u, y)])
    assert found.size == 2 * found.order + 2
    np.testing.assert_allclose(found.run(u, y), y, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"candidates": {}}, "candidates: none"),
        ({"candidates": {"a": 1}}, "candidates.a: int"),
        ({"baselines": ("armax",)}, "baselines: 'armax'"),
        ({"experiments": [fx.Modal([1.0])]}, "expected fx.Experiment"),
        ({"validation": [record(0)]}, "'run 0' is the name of two"),
    ],
)
def test_bad_arguments_are_refused(change, says):
    model = fx.RigidArm().bind(joint_arm())
    given = {"candidates": {"a": (model, "joints.pin.stiffness")}, "experiments": [record(0)]}
    with pytest.raises(ValueError, match=says):
        fx.compare_models(**(given | change))
