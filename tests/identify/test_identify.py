"""Identification on the smallest arm: recovery, coverage, noise, gaps, checkpoints."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify import _identify
from flexjax.study.identify.fit import _problem
from flexjax.study.identify.fit._problem import Objective, build, measure_data
from flexjax.study.identify.uncertainty._bootstrap import repeat
from tests.identify.cases import JOINT_FREE, filled, joint_arm, joint_record, study

# The shipped data set, as the command line's test takes it: one compiled program serves both.
BENCH = fx.load_dataset("bench-arm")
FREE, TRUE = list(BENCH.truth), np.array(list(BENCH.truth.values()))
DT = 1.25e-3


@pytest.fixture(scope="module")
def model():
    return fx.TransferMatrix(segments=16).bind(BENCH.robot)


@pytest.fixture(scope="module")
def noisy():
    return BENCH.training


@pytest.fixture(scope="module")
def result(model, noisy):
    return fx.identify(model, noisy, FREE, dt=DT)


@pytest.mark.slow  # two hundred identifications; test_noisy_fit has one
def test_recovery_and_coverage(record_number):
    worst, noisy = study(fx.RigidArm().bind(joint_arm()), joint_record(), JOINT_FREE, dt=0.01)
    record_number(
        "identify RigidArm: largest relative error over 100 arms within 30 %, no noise", worst, 1e-3
    )
    for name, share in zip(JOINT_FREE, noisy.coverage, strict=True):
        record_number(
            f"identify RigidArm: coverage of 95 % intervals, 2 % noise, {name}",
            share,
            (0.90, 0.99),
            "in",
        )


def test_records_that_cannot_be_made_are_told():
    record = joint_record(samples=5)
    problem = build(fx.RigidArm().bind(joint_arm()), [record], JOINT_FREE, dt=0.01)
    with pytest.raises(ValueError, match="2 of 2 runs that make the recordings failed"):
        repeat(
            problem,
            measure_data(problem, [record])[0],
            np.full(3, np.nan),
            {"angle": 0.0, "motor": 0.0},
            n=2,
        )


def at_rest(name, torque) -> fx.Experiment:
    ts = 0.01 * np.arange(5)
    return fx.Experiment(
        ts, {"angle": 0 * ts}, efforts={"pin": 0 * ts + torque}, start="rest", name=name
    )


def test_a_start_at_rest_that_is_not_found_fails_its_run():
    """Nothing balances the torque of the second recording."""
    records = [at_rest("still", 0.0), at_rest("pushed", 0.5)]
    problem = build(fx.RigidArm().bind(joint_arm()), records, JOINT_FREE[:1], dt=0.01)
    (runs,), _ = problem.predict(jnp.zeros(1))
    assert np.isfinite(np.asarray(runs[0])).all() and np.isnan(np.asarray(runs[1])).all()


@pytest.mark.slow
def test_a_start_at_rest_that_is_not_found_is_reported():
    model = fx.RigidArm().bind(joint_arm())
    with pytest.raises(ValueError, match=r"pushed: start = 'rest'.*joints\.pin.*0\.5 N m"):
        fx.identify(model, at_rest("pushed", 0.5), JOINT_FREE[:1], dt=0.01)


def test_noisy_fit(result, noisy):
    assert result.status == "converged"
    assert np.all(np.abs(result.values - TRUE) < 4 * result.standard_errors)
    low_high = result.intervals(0.999)
    assert np.all((low_high[:, 0] < TRUE) & (TRUE < low_high[:, 1]))
    for s, y in noisy.sensors.items():
        assert result.noise[s] == pytest.approx(0.02 * np.std(y), rel=0.15)
    assert all(97.5 < f < 98.5 for f in result.training[0].fits.values())
    assert result.white and result.unseen == [] and result.undetermined == []
    np.testing.assert_allclose(np.diag(result.correlation), 1.0)
    np.testing.assert_allclose(
        np.sqrt(np.diag(result.robust_covariance)), result.standard_errors, rtol=0.5
    )
    assert float(result.robot.payloads[0].mass) == result.estimates["payloads.tool.mass"]
    text = str(result)
    assert (
        "joints.shoulder.friction.bristle" in text
        and "N m/rad" in text
        and "95 % interval" in text
        and "shoulder-angle 9" in text
    )


def test_one_search_without_noise(model, noisy, record_number):
    """Where nothing is left no step is near the end by its gain: the search goes on until numbers
    stand still.
    """
    found = fx.identify(
        model, filled(noisy, model, free=FREE, at=TRUE, dt=DT), FREE, dt=DT, reweight=0
    )
    assert found.status == "converged"
    record_number(
        "identify the shipped arm: largest relative error of one search without noise",
        np.max(np.abs(found.values / TRUE - 1)),
        1e-8,
    )


def test_what_the_solver_moves(model, noisy):
    """Relative changes down to a half, positive beyond; a change of z without a logarithm."""
    problem = build(model, [noisy], [*FREE, "sensors.shoulder-angle.offset"], dt=DT)
    z0 = np.full(len(FREE) + 1, 0.2)
    measured = measure_data(problem, [noisy])[0]
    objective = Objective(problem, measured, z0, 1.0, 0.0, np.ones_like(z0))
    for u in (-3.0, -0.5, -0.2, 0.0, 0.7):
        z, slope = objective.at(np.full_like(z0, u))
        shares = problem.parameters.values(z)[:-1] / problem.parameters.values(z0)[:-1]
        np.testing.assert_allclose(
            shares, 1 + u if u >= -0.5 else 0.5 * np.exp(2 * (u + 0.5)), rtol=1e-12
        )
        assert float(z[-1]) == pytest.approx(0.2 + u)
        ends = [objective.at(np.full_like(z0, u + step))[0] for step in (-1e-6, 1e-6)]
        np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-6, rtol=1e-6, atol=1e-9)


def test_gaps_do_not_count(model, noisy, result):
    """A gap over bad samples changes the estimates by no more than the samples lost."""
    cut = (noisy.ts > 0.8) & (noisy.ts < 1.0)
    sensors = {k: np.where(cut, 5.0, v) for k, v in noisy.sensors.items()}
    with pytest.warns(UserWarning, match="saturated at 5"):
        bad = dataclasses.replace(noisy, sensors=sensors)
    again = fx.identify(model, bad.without(0.8, 1.0), FREE, dt=DT)
    assert again.samples < result.samples
    assert np.all(np.abs(again.values - result.values) < 2 * result.standard_errors)


def test_interruption_keeps_the_best(model, noisy, result, monkeypatch):
    real, whole = _problem.evaluate, []

    def interrupted(z, problem, measured, share=1.0):
        whole.append(share == 1.0)
        if sum(whole) == 2:
            raise KeyboardInterrupt
        return real(z, problem, measured, share)

    monkeypatch.setattr(_problem, "evaluate", interrupted)
    part = fx.identify(model, noisy, FREE, dt=DT)
    assert part.status == "interrupted" and len(part.history) == 1 and whole.count(False) >= 2
    assert part.loss == pytest.approx(part.history[0])
    assert "interrupted" in str(part)


def test_interruption_at_the_beginning(model, noisy, monkeypatch):
    """While only a part of the record has been looked at: where the search was, judged on all of
    it.
    """
    real, calls = _problem.evaluate, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(_problem, "evaluate", interrupted)
    part = fx.identify(model, noisy, FREE, dt=DT)
    assert part.status == "interrupted" and len(part.history) == 1 and np.isfinite(part.loss)


@pytest.mark.parametrize(
    ("status", "steps", "end"),
    [
        ("converged", 11, "100%"),
        ("converged", 60, "100%"),
        ("stopped at max_steps", 50, "100%"),
        ("interrupted", 11, " 22%"),
    ],
)
def test_the_bar_is_full_where_the_search_is_complete(capfd, status, steps, end):
    with _identify._bar(True, 50, "arm") as bar:
        for n in range(steps):
            bar(n, 1.0)
        bar.finish(status)
    last = capfd.readouterr().err.strip().split("\r")[-1]
    assert end in last and f"loss 1, {status}" in last


def test_checkpoint_and_resume(model, noisy, result, tmp_path, capfd):
    path = tmp_path / "fit.npz"
    first = fx.identify(model, noisy, FREE, dt=DT, max_steps=1, checkpoint=path, progress=True)
    assert first.status == "stopped at max_steps" and path.exists()
    assert "loss" in capfd.readouterr().err
    second = fx.identify(model, noisy, FREE, dt=DT, checkpoint=path)
    assert (
        second.history[: len(first.history)] == pytest.approx(first.history)
        and second.history[1] <= first.history[-1]
    )
    # Searches end with a linear step from within a tenth of the standard errors.
    assert np.all(np.abs(second.values - result.values) < 0.03 * result.standard_errors)
    with pytest.raises(ValueError, match="another problem"):
        fx.identify(model, noisy, FREE[:2], dt=DT, checkpoint=path)
    with pytest.raises(ValueError, match="ends in .npz"):
        fx.identify(model, noisy, FREE, dt=DT, checkpoint=tmp_path / "fit.txt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiments": []}, "none; expected fx.Experiment"),
        ({"experiments": [3]}, "int; expected fx.Experiment"),
        ({"free": "links.link.material.Ee"}, "did you mean 'E'"),
        ({"free": "start.joints.pins"}, "no such joint|has no 'pins'"),
        ({"method": "newton"}, "expected 'lm' or an optax optimiser"),
        ({"batch": 2}, "needs method=optax"),
    ],
)
def test_bad_requests_are_refused(model, noisy, change, message):
    with pytest.raises(ValueError, match=message):
        fx.identify(**({"model": model, "experiments": noisy, "free": FREE, "dt": DT} | change))


def test_data_that_do_not_fit_are_refused(model, noisy):
    with pytest.raises(ValueError, match="no such sensor"):
        fx.identify(model, dataclasses.replace(noisy, sensors={"angel": noisy.ts}), FREE)
    with pytest.raises(ValueError, match="no reading|no measured sample|contains no number"):
        fx.identify(model, noisy.without(-1, 10), FREE, dt=DT)
