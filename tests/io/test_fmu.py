"""Units for co-simulation: in FMPy, an independent program, they give the numbers of `simulate`."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests._sample import sample_model

pytest.importorskip("pythonfmu3")
DT, STEPS = 5e-3, 12
TS = DT * np.arange(STEPS + 1)
EFFORTS = np.array([0.5, -0.2, 0.4, 0.3, 0.1, 0.0, -0.3, 0.2, 0.1, 0.4, -0.1, 0.2, 0.0])


def signals(**columns):
    """Inputs of FMPy, which reads them at the start of every communication step."""
    names = [("time", float), *((name, float) for name in columns)]
    return np.array(list(zip(TS, *columns.values(), strict=True)), dtype=names)


def run(path, inputs=None, **options):
    fmpy = pytest.importorskip("fmpy")
    options = {"step_size": DT, "output_interval": DT} | options
    return fmpy.simulate_fmu(str(path), stop_time=TS[-1], input=inputs, **options)


def worst(result, traj, joints=("shoulder", "elbow")):
    """The largest difference of joints, rates and tip, relative to the largest value of each."""
    pairs = [(result[f"q.{n}"], traj.q[:, k]) for k, n in enumerate(joints)]
    pairs += [(result[f"qd.{n}"], traj.qd[:, k]) for k, n in enumerate(joints)]
    pairs += [(result[f"tip.{axis}"], traj.tip[:, k]) for k, axis in enumerate("xy")]
    pairs += [(result["sensor.root_strain"], fx.measure(traj)["root-strain"])]
    return max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9) for a, b in pairs)


def agreement(model, tmp_path):
    """An arm under efforts from outside, a load, and another payload and start than exported."""
    load = fx.Load("fore", fx.stack([fx.constant(0.0), fx.sine(0.5, 4.0), *[fx.constant(0.0)] * 4]))
    path = fx.to_fmu(
        model,
        tmp_path / "arm.fmu",
        fx.Drive(loads=(load,)),
        dt=DT,
        start={"elbow": -0.4},
        parameters=["payloads.*.mass", "start.joints.elbow"],
    )
    zero = 0 * EFFORTS
    values = {"payloads.gripper.mass": 0.35, "start.joints.elbow": -0.3}
    inputs = signals(**{"effort.shoulder": EFFORTS, "effort.elbow": zero})
    result = run(path, inputs, start_values=values, validate=True)
    effort = fx.Effort(fx.piecewise_constant(jnp.asarray(TS[:-1]), jnp.asarray(EFFORTS[:-1])))
    heavy = model.rebind(model.robot.replace("payloads.gripper.mass", 0.35))
    drive = fx.Drive(joints={"shoulder": effort}, loads=(load,))
    traj = fx.simulate(heavy, drive, jnp.asarray(TS), dt=DT, start={"elbow": -0.3})
    np.testing.assert_allclose(result["time"], TS, atol=1e-12)
    return worst(result, traj)


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation",
    [fx.FiniteElement(elements=2), fx.TransferMatrix(segments=4), fx.PortHamiltonian(elements=2)],
    ids=lambda formulation: type(formulation).__name__,
)
def test_flexible_arm_in_fmpy_is_that_of_simulate(formulation, tmp_path, record_number):
    model = formulation.bind(fx.load_robot("two-link"))
    name = f"two-link arm in FMPy against simulate, {type(formulation).__name__}"
    record_number(name, agreement(model, tmp_path), 1e-8)


@pytest.mark.slow
def test_rigid_arm_in_fmpy_is_that_of_simulate(tmp_path, record_number):
    record_number(
        "two-link arm in FMPy against simulate, RigidArm", agreement(sample_model(), tmp_path), 1e-8
    )


@pytest.mark.slow
def test_accelerations_steps_and_saved_states(tmp_path):
    """A joint that follows an acceleration; other communication steps; a state put back."""
    fmpy = pytest.importorskip("fmpy")
    path = fx.to_fmu(sample_model(), tmp_path / "servo-1.fmu", dt=DT, motions=["elbow"])
    alpha = 3.0 + 0 * TS
    inputs = signals(**{"acceleration.elbow": alpha, "effort.shoulder": 0 * TS})
    motion = fx.Motion(fx.polynomial([-0.5, 0.0, 1.5]))
    drive = fx.Drive(joints={"elbow": motion})
    traj = fx.simulate(sample_model(), drive, jnp.asarray(TS), dt=DT)
    result = run(path, inputs)
    assert worst(result, traj) < 1e-8
    np.testing.assert_allclose(result["drive_effort.elbow"], traj.effort[:, 1], rtol=1e-8)
    coarse = run(path, inputs, step_size=3 * DT, output_interval=3 * DT)
    np.testing.assert_allclose(coarse["tip.y"], result["tip.y"][::3], rtol=1e-9)

    about = fmpy.read_model_description(str(path))
    place = fmpy.extract(str(path))
    unit = fmpy.fmi3.FMU3Slave(
        guid=about.guid,
        unzipDirectory=place,
        modelIdentifier=about.coSimulation.modelIdentifier,
        instanceName="servo",
    )
    tip = next(v.valueReference for v in about.modelVariables if v.name == "tip.y")
    unit.instantiate()
    unit.enterInitializationMode()
    unit.exitInitializationMode()

    def two_steps(begin):
        for k in range(2):
            unit.doStep(begin + k * DT, DT)
        return unit.getFloat64([tip])[0]

    two_steps(0.0)
    state = unit.getFMUState()
    stored = unit.serializeFMUState(state)
    first = two_steps(2 * DT)
    unit.setFMUState(state)
    assert two_steps(2 * DT) == first
    unit.setFMUState(unit.deserializeFMUState(stored))
    assert two_steps(2 * DT) == first
    unit.terminate()
    unit.freeInstance()


def test_refusals(tmp_path):
    model = sample_model()
    hold = fx.Drive(joints={"elbow": fx.Motion(fx.constant(-0.5))})
    for options, message in (
        ({"path": "arm.zip"}, "ends in .fmu"),
        ({"parameters": ["payloads.gripper.mas"]}, "payloads.gripper has no 'mas'"),
        ({"parameters": "gravity"}, "expected a list of texts"),
        ({"motions": ["wrist"]}, "motions.wrist: no such joint; expected one of shoulder, elbow"),
        ({"motions": ["elbow"], "drive": hold}, "'elbow' is also driven"),
        ({"dt": 0.0}, "dt: 0.0; expected a positive time"),
        ({"start": {"wrist": 0.1}}, "start.joints.wrist: no such joint"),
        ({"start": 0.1}, "start: float; expected fx.Start"),
    ):
        with pytest.raises(ValueError, match=message):
            fx.to_fmu(model, **{"path": tmp_path / "arm.fmu", **options})
    assert not list(tmp_path.iterdir())
