"""Other ways to search, other losses, other questions: each compiles a program of its own."""

import numpy as np
import optax
import pytest

import flexjax as fx
from tests.identify.cases import JOINT_FREE, filled, joint_arm, joint_record

DT = 0.01
TRUE = np.array([50.0, 0.04, 0.36])
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    return fx.RigidArm().bind(joint_arm())


@pytest.fixture(scope="module")
def record(model):
    return filled(joint_record(), model, free=JOINT_FREE, at=TRUE, noise=0.02, dt=DT)


def test_multi_start(model, record):
    result = fx.identify(model, record, JOINT_FREE, dt=DT, starts=4, spread=0.5)
    assert np.all(np.abs(result.values - TRUE) < 4 * result.standard_errors)
    assert (
        len(result.starts) == 4
        and np.all(np.diff(result.starts) >= 0)
        and result.loss <= result.starts[0] * (1 + 1e-6)
    )


def test_spectra(model, record):
    result = fx.identify(model, record, JOINT_FREE, dt=DT, band=(0.0, 12.0))
    assert np.all(np.abs(result.values - TRUE) < 4 * result.standard_errors)
    for s, y in record.sensors.items():
        assert result.noise[s] == pytest.approx(0.02 * np.std(y), rel=0.3)
    with pytest.raises(ValueError, match="contains no line"):
        fx.identify(model, record, JOINT_FREE, dt=DT, band=(0.01, 0.02))


def test_optax(model, record):
    result = fx.identify(
        model, record, JOINT_FREE[::2], dt=DT, method=optax.adam(0.05), max_steps=60
    )
    assert result.history[-1] < 0.05 * result.history[0] and result.status == "stopped at max_steps"
    assert abs(result.values[0] / TRUE[0] - 1) < 0.1


def test_several_records(model, record):
    """Two of one shape are run together, a shorter one beside them; a step of a first-order method
    may draw some of them.
    """
    others = [
        filled(
            joint_record(samples=n, name=f"run {n}"),
            model,
            free=JOINT_FREE,
            at=TRUE,
            noise=0.02,
            seed=n,
            dt=DT,
        )
        for n in (201, 121)
    ]
    one, all_of_them = (
        fx.identify(model, data, JOINT_FREE, dt=DT, reweight=0)
        for data in (record, [record, *others])
    )
    assert all_of_them.samples == 2 * (201 + 201 + 121) and len(all_of_them.training) == 3
    assert np.all(np.abs(all_of_them.values - TRUE) < 4 * all_of_them.standard_errors)
    assert np.all(all_of_them.standard_errors < 0.8 * one.standard_errors)
    drawn = fx.identify(
        model,
        [record, others[0]],
        JOINT_FREE[::2],
        dt=DT,
        method=optax.adam(0.05),
        max_steps=60,
        batch=1,
    )
    assert abs(drawn.values[0] / TRUE[0] - 1) < 0.1


def test_what_the_data_cannot_see(model, record):
    """In the plane, without gravity, link and payload act by their common inertia only."""
    result = fx.identify(
        model, record, ["joints.pin.stiffness", "payloads.load.mass", "links.link.body.mass"], dt=DT
    )
    (text,) = result.unseen
    assert (
        "payloads.load.mass" in text and "links.link.body.mass" in text and "stiffness" not in text
    )
    assert set(result.undetermined) == {"payloads.load.mass", "links.link.body.mass"}
    helped = fx.identify(
        model,
        record,
        [
            "joints.pin.stiffness",
            "payloads.load.mass",
            fx.Free("links.link.body.mass", prior=(1.0, 0.01)),
        ],
        dt=DT,
    )
    assert (
        helped.standard_errors[2] == pytest.approx(0.01, rel=0.05)
        and abs(helped.values[2] - 1) < 0.03
    )


def test_windows(model, record):
    free = [*JOINT_FREE, "start.joints.pin", "start.rates.pin", "start.motors.pin"]
    result = fx.identify(model, record.windows(2)[:1], free, dt=DT)
    assert np.all(np.abs(result.values[:3] - TRUE) < 5 * result.standard_errors[:3])
    assert result.names[3] == "start.joints.pin"


def test_frequency_response_of_a_simulated_record(model):
    """One period of a multisine, in steady state: the response of the linear model fits it."""
    f = np.array([0.5, 1.5, 2.5, 3.5, 5.0, 6.5])
    truth = fx.RigidArm().bind(
        joint_arm().replace("joints.pin.stiffness", 50.0).replace("payloads.load.mass", 0.36)
    )
    H = np.asarray(fx.FrequencyResponse(f, np.ones(6), "pin", "angle").response(truth))
    data = fx.FrequencyResponse(f, H, "pin", "angle")
    result = fx.identify(model, data, JOINT_FREE[::2])
    np.testing.assert_allclose(result.values, [50.0, 0.36], rtol=1e-6)


def test_design_prefers_what_excites(model):
    ts = 0.01 * np.arange(101)
    slow, fast = (fx.Drive({"pin": fx.Effort(fx.sine(1.0, f))}) for f in (0.2, 6.0))
    found = fx.design(
        model,
        JOINT_FREE,
        {"slow": slow, "fast": fast},
        ts,
        noise={"angle": 1e-3, "motor": 1e-3},
        tune=[fx.Free("joints.pin.signal.frequency", bounds=(0.1, 12.0))],
        dt=DT,
        steps=4,
    )
    scores = {c.name: c.score for c in found.candidates}
    assert scores["fast"] > scores["slow"] and scores["fast, tuned"] >= scores["fast"]
    assert found.best.name == "fast, tuned" and "score" in str(found)


@pytest.mark.slow
def test_design_stays_inside_limits_and_writes_the_rig_s_table(model, tmp_path):
    """Tuned for more, the torque grows up to what the encoder may show, and the rig can read it."""
    ts = 0.01 * np.arange(61)
    drive = fx.Drive({"pin": fx.Effort(fx.bspline([0.0, 0.3, -0.2, 0.1, 0.0], 0.6))})
    options = {"noise": {"motor": 1e-3}, "dt": DT}
    tune = [f"joints.pin.signal.values.{k}" for k in (1, 2, 3)]
    free = JOINT_FREE[:1]
    found = fx.design(
        model, free, {"spline": drive}, ts, limits={"angle": 0.5}, tune=tune, steps=15, **options
    )
    uses = {c.name: c.use for c in found.candidates}
    assert found.best.name == "spline, tuned" and 0.8 < uses["spline, tuned"] <= 1
    outside = fx.design(model, free, {"spline": drive}, ts, limits={"angle": 1e-3}, **options)
    assert outside.best.use > 1 and "% of the limits" in str(outside)
    with pytest.raises(ValueError, match=r"limits.angle: 0; expected a positive number"):
        fx.design(model, free, {"spline": drive}, ts, limits={"angle": 0}, **options)
    found.to_csv(tmp_path / "rig.csv", rate=100.0)
    lines = (tmp_path / "rig.csv").read_text().splitlines()
    readings = ["angle [rad]", *np.zeros(len(lines) - 1).astype(str)]
    rig = "\n".join(f"{a},{b}" for a, b in zip(lines, readings, strict=True))
    (tmp_path / "rig.csv").write_text(rig)
    record = fx.Experiment.read(tmp_path / "rig.csv")
    signal = found.best.drive.joints["pin"].signal
    np.testing.assert_allclose(record.efforts["pin"], [float(signal(t)) for t in record.ts])


def test_posterior(model):
    pytest.importorskip("blackjax")
    data = fx.Modal([float(fx.modes(model).frequencies[0])], sd=0.01)
    result = fx.identify(model, data, "joints.pin.stiffness")
    posterior = fx.sample_posterior(result, 300, warmup=100, chains=2)
    sd = posterior.values.std()
    assert sd == pytest.approx(result.standard_errors[0], rel=0.3) and posterior.divergent == 0
