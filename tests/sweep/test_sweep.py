"""Sweeps: equal to single runs, designs, failures, stores that are never half."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax._files import FileError
from flexjax.study.sweep import _execute
from flexjax.study.sweep._store import create_store, open_store
from tests.simulate.arms import pair_model, planar_pair

TS = np.linspace(0.0, 0.02, 3)
MASS = "payloads.tool.mass"
DRIVE = fx.Drive(joints={"joint1": fx.Motion(fx.quintic(0.0, 0.4, 0.05))})
LENGTH = "drive.joints.joint1.signal.duration"


def peak(traj):
    return jnp.max(jnp.abs(traj.tip[:, 1]))


def run(design, **options):
    given = dict(ts=TS, drive=DRIVE, dt=5e-3, outputs=["tip", "energy.kinetic"], chunk=4)
    return fx.sweep(pair_model(), design, **(given | options))


def alone(mass=0.2, duration=0.05):
    robot = planar_pair().replace(MASS, mass)
    drive = fx.Drive(joints={"joint1": fx.Motion(fx.quintic(0.0, 0.4, duration))})
    return fx.simulate(pair_model().rebind(robot), drive, TS, dt=5e-3)


def test_every_run_is_the_single_run():
    design = {MASS: [0.1, 0.2, 0.3, 0.15, 0.25, 0.35], LENGTH: [0.04, 0.05, 0.06] * 2}
    result = run(design)
    assert result.data["tip"].dims == ("run", "time", "axis")
    for k, (mass, duration) in enumerate(zip(*design.values(), strict=True)):
        single = alone(mass, duration)
        np.testing.assert_allclose(result.data["tip"][k], single.tip, atol=1e-12)
        np.testing.assert_allclose(
            result.data["energy.kinetic"][k], single.energy.kinetic, rtol=1e-9, atol=1e-14
        )
    assert result.reasons() == {"ok": 6} and result.failed.sizes["run"] == 0
    np.testing.assert_allclose(result.data[MASS], design[MASS])
    np.testing.assert_allclose(result.trajectory(3).tip, result.data["tip"][3], atol=1e-12)
    assert "6 runs (6 ok)" in str(result)


def test_grid_has_one_dimension_for_every_path():
    design = fx.grid({MASS: [0.1, 0.2], LENGTH: [0.04, 0.05, 0.06]})
    result = run(design, outputs=peak)
    data = result.grid()
    assert data["peak"].dims == (MASS, LENGTH) and data["peak"].shape == (2, 3)
    np.testing.assert_allclose(data["peak"][1, 2], peak(alone(0.2, 0.06)))
    with pytest.raises(ValueError, match="the design is no grid"):
        run({MASS: [0.1, 0.2]}).grid()


def test_a_bar_says_what_the_sweep_does(capsys):
    run({MASS: [0.1, 0.2, 0.3, 0.15, 0.25, 0.35]}, progress=True)
    seen = capsys.readouterr().err
    assert "sweep: tracing" in seen and "sweep: running: 100%" in seen and "6/6" in seen


def test_sensitivities_are_the_derivatives():
    result = run({MASS: [0.1, 0.2], LENGTH: [0.05, 0.06]}, outputs="tip", sensitivities=[LENGTH])
    slope = jax.jacfwd(lambda d: alone(0.2, d).tip)(0.06)
    assert result.data["d tip"].dims == ("run", "time", "axis", "parameter")
    np.testing.assert_allclose(result.data["d tip"][1, ..., 0], slope, atol=1e-9)


def test_a_failed_run_leaves_the_others_alone():
    start, rate = fx.Start(rates={"joint2": 0.0}), "start.rates.joint2"
    good = run({rate: [0.0, 0.5, 1.0]}, start=start)
    mixed = run({rate: [0.0, 1e200, 1.0]}, start=start)
    for k in (0, 2):
        assert np.array_equal(mixed.data["tip"][k], good.data["tip"][k])
    failed = mixed.failed
    assert failed["run"].values.tolist() == [1] and np.isnan(mixed.data["tip"][1, -1]).all()
    assert sum(mixed.reasons().values()) == 3 and mixed.reasons()["ok"] == 2


def test_a_store_continues_where_it_was_interrupted(tmp_path, monkeypatch):
    design = {MASS: np.linspace(0.1, 0.3, 10)}
    whole = run(design)
    real, seen = _execute.run_chunk, []

    def interrupted(task, rows, chunk, devices):
        seen.append(len(rows))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(task, rows, chunk, devices)

    monkeypatch.setattr(_execute, "run_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(design, store=tmp_path / "a.zarr")
    monkeypatch.setattr(_execute, "run_chunk", lambda *a: seen.append(0) or real(*a))
    done = run(design, store=tmp_path / "a.zarr")
    assert seen == [4, 4, 2, 0]  # two chunks, the interruption, and only what is missing
    assert done.data.identical(whole.data)
    again = run(design, store=tmp_path / "a.zarr")
    assert len(seen) == 4 and again.data.identical(whole.data)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(design={MASS: np.linspace(0.1, 0.31, 10)}), "design: 10 runs of"),
        (dict(outputs="q"), "outputs: tip, energy.kinetic there, q now"),
        (dict(dt=1e-3), "structure"),
        (dict(drive=fx.Drive(joints={"joint1": fx.Motion(fx.quintic(0, 0.5, 0.05))})), "numbers"),
    ],
)
def test_a_store_of_another_sweep_is_refused(tmp_path, options, words):
    design = {MASS: np.linspace(0.1, 0.3, 10)}
    run(design, store=tmp_path / "a.zarr")
    with pytest.raises(FileError, match=f"belongs to another sweep .*{words}"):
        run(**({"design": design, "store": tmp_path / "a.zarr"} | options))


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(FileError, match="Give another name, or remove it"):
        run({MASS: [0.1]}, store=tmp_path / "notes")
    assert (tmp_path / "notes" / "a.txt").read_text() == "mine"


SCRIPT = """
import sys
import jax
jax.config.update("jax_enable_x64", True)
from tests.sweep.test_sweep import MASS, run
import numpy as np
run({MASS: np.linspace(0.1, 0.3, 40)}, store=sys.argv[1], chunk=2)
print("done")
"""


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    """kill -9 at random times; the same call continues, and the store is that of one whole run."""
    whole = run({MASS: np.linspace(0.1, 0.3, 40)}, chunk=2)
    rng, kills = np.random.default_rng(0), 0
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path / "a.zarr")]
    for _ in range(60):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = tmp_path / "a.zarr"
        begin = time.monotonic()
        # Most of the time goes into tracing; wait until this process has written something.
        before = len(list(folder.rglob("*"))) if folder.exists() else 0
        while process.poll() is None and time.monotonic() - begin < 120:
            now = len(list(folder.rglob("*"))) if folder.exists() else 0
            if now > before:
                break
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.02))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            if kills == 3:
                break
        else:
            break
    assert kills >= 1
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = run({MASS: np.linspace(0.1, 0.3, 40)}, chunk=2, store=tmp_path / "a.zarr")
    assert result.data.identical(whole.data)


@pytest.mark.parametrize(
    "design, words",
    [
        ({}, "no parameters; expected values by path"),
        ({"payloads.tool.mas": [0.1]}, "payloads.tool.mas"),
        ({MASS: [0.1, np.nan]}, "row 1: nan; expected a finite"),
        ({MASS: [0.1, -0.2], "links.upper.material.rho": [1.0, 0.0]}, "(?s)row 1: -0.2.*row 1: 0;"),
        ({MASS: [0.1, 0.2], LENGTH: [0.1]}, "different numbers of values"),
        ({MASS: "heavy"}, "expected numbers"),
        ({MASS: [[0.1]]}, "expected a list"),
        (3.0, "design: float; expected values by path"),
    ],
)
def test_faults_of_a_design(design, words):
    with pytest.raises(ValueError, match=words):
        run(design)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(outputs="tipp"), "outputs: 'tipp'; expected some of tip"),
        (dict(outputs=[lambda traj: traj.tip]), "in a dict if it has no name"),
        (dict(outputs=["tip", "tip"]), "each once"),
        (dict(chunk=0), "chunk: 0; expected a whole number"),
        (dict(sensitivities=["links.upper.length"]), "expected paths of the design"),
        (dict(ts=[0.0]), "at least two increasing"),
    ],
)
def test_faults_of_options(options, words):
    with pytest.raises(ValueError, match=words):
        run({MASS: [0.1, 0.2]}, **options)


def test_designs():
    box = {MASS: (0.1, 0.3), LENGTH: (0.04, 0.06)}
    for design in (fx.latin_hypercube(box, 16), fx.sobol(box, 16)):
        assert design.runs == 16 and design.values.shape == (16, 2)
        assert 0.1 <= design[MASS].min() and design[MASS].max() <= 0.3
        assert len(np.unique(np.floor((design[MASS] - 0.1) / 0.2 * 16))) == 16  # one in each part
    with pytest.raises(ValueError, match="expected .lower, upper."):
        fx.sobol({MASS: (0.3, 0.1)}, 4)
    with pytest.raises(ValueError, match="n = 0"):
        fx.latin_hypercube(box, 0)


def test_tables_and_files(tmp_path):
    import pandas

    table = pandas.DataFrame({MASS: [0.1, 0.2]})
    table.to_csv(tmp_path / "design.csv", index=False)
    wanted = run({MASS: [0.1, 0.2]})
    for design in (table, table.to_xarray(), tmp_path / "design.csv"):
        assert run(design).data.identical(wanted.data)
    assert json.dumps(wanted.reasons()) == '{"ok": 2}'


def test_outputs_by_name():
    names = ["tip[::2]", "peak_deflection", "residual_vibration:after=0.01", "energy.work"]
    result = run({MASS: [0.1, 0.2]}, outputs=names)
    single, data = alone(0.2), result.data
    np.testing.assert_allclose(data["tip[::2]"][1], single.tip[::2], atol=1e-12)
    np.testing.assert_allclose(data["time_2"], TS[::2])
    assert data["peak_deflection"].dims == ("run", "link") and list(data["link"]) == [
        "upper",
        "fore",
    ]
    wanted = fx.residual_vibration(single, 0.01)
    np.testing.assert_allclose(data["residual_vibration:after=0.01"][1], wanted, atol=1e-12)
    assert data["energy.work"].attrs["units"] == "J" and data[MASS].attrs["units"] == "kg"


def test_failed_runs_are_listed_and_run_again():
    """Two of 200 runs fail; the others are those of a sweep without these."""
    rates = np.linspace(0.0, 1.0, 200)
    rates[[7, 150]] = 1e200
    start, rate = fx.Start(rates={"joint2": 0.0}), "start.rates.joint2"
    result = run({rate: rates}, start=start)
    failed = result.failed
    assert failed["run"].values.tolist() == [7, 150]
    assert set(failed["reason"].values) <= {"non_finite", "newton_failed"}
    good = np.delete(rates, [7, 150])
    alone = run({rate: good}, start=start)
    np.testing.assert_allclose(
        np.delete(result.data["tip"].values, [7, 150], axis=0), alone.data["tip"], atol=1e-12
    )
    again = result.rerun(where=[3, 5], dt=2.5e-3)
    assert not np.array_equal(again.data["tip"][5], result.data["tip"][5])
    finer = result.trajectory(5, dt=2.5e-3)
    np.testing.assert_allclose(again.data["tip"][5], finer.tip, atol=1e-12)
    assert np.array_equal(again.data["tip"][6], result.data["tip"][6])
    with pytest.raises(ValueError, match="expected 'failed', a mask"):
        result.rerun(where="all")


@pytest.mark.slow
def test_static_choices_are_part_of_a_design(tmp_path):
    design = fx.grid({"solver": [fx.DiscreteGradient(), fx.Newmark()], MASS: [0.1, 0.2, 0.3]})
    result = run(design, outputs="tip", store=tmp_path / "a.zarr", chunk=2)
    for name, part in result.data.groupby("solver"):
        solver = getattr(fx, str(name).partition("(")[0])()
        wanted = run({MASS: [0.1, 0.2, 0.3]}, outputs="tip", solver=solver, chunk=2)
        assert np.array_equal(part["tip"], wanted.data["tip"])
    assert result.grid()["tip"].sizes["solver"] == 2


def test_faults_of_static_choices():
    with pytest.raises(ValueError, match="row 1: 'Euler'; expected a solver"):
        run({"solver": ["Newmark", "Euler"]})
    with pytest.raises(ValueError, match="RigidArm has no option 'elements'"):
        run({"formulation.elements": [2, 4]})


def test_sobol_indices():
    """Of a sum of squares they are known: shares of the variances."""
    box = {MASS: (0.1, 0.3), LENGTH: (0.04, 0.06)}
    result = run(fx.saltelli(box, 256), outputs=peak)
    columns = [result.data[p].values for p in box]
    known = result.data["peak"].copy(data=columns[0] / 0.2 + 3 * columns[1] / 0.02)
    linear = dataclasses.replace(result, data=result.data.assign(peak=known))
    found = fx.sobol_indices(linear)
    np.testing.assert_allclose(found["S1"], [0.1, 0.9], atol=0.02)
    np.testing.assert_allclose(found["ST"], [0.1, 0.9], atol=0.02)
    broken = dataclasses.replace(
        linear, data=linear.data.assign(peak=known.where(np.arange(1024) != 5))
    )
    with pytest.raises(ValueError, match="not finite in runs of 1 of 256 base points"):
        fx.sobol_indices(broken)
    dropped = fx.sobol_indices(broken, failed="drop")
    np.testing.assert_allclose(dropped["S1"], [0.1, 0.9], atol=0.03)
    assert dropped.attrs["dropped"] == 1
    with pytest.raises(ValueError, match="expected fx.saltelli"):
        fx.sobol_indices(run({MASS: [0.1, 0.2]}))


def test_figures():
    design = fx.grid({MASS: [0.1, 0.2, 0.3], LENGTH: [0.04, 0.05]})
    result = run(design, outputs=peak)
    for what in ("lines", "heat map", "parallel coordinates", "tornado"):
        assert fx.plot(result, what).axes
    assert fx.plot(run(design), "lines").axes
    with pytest.raises(ValueError, match="output = 'tip'; expected one of peak"):
        fx.plot(result, "tornado", output="tip")
    with pytest.raises(ValueError, match="expected a parameter that varies"):
        fx.plot(result, "lines", over="links.upper.length")


@pytest.mark.parametrize(
    "fastest, runs, wanted", [(256, 10**6, 256), (16, 10**6, 16), (256, 300, 64)]
)
def test_the_chunk_is_the_fastest_of_a_few(monkeypatch, fastest, runs, wanted):
    """A program of one second; runs take 1 ms in the fastest chunk, 2 ms in the others."""
    seen = []

    def measure(work, devices, size):
        seen.append(size)
        return 1.0, size * (1e-3 if size == fastest else 2e-3)

    monkeypatch.setattr(_execute, "measure", measure)
    work = types.SimpleNamespace(runs=runs)
    sizes = _execute.try_chunks(work, [None], 64, 1024)
    assert sizes.chunk == wanted and sizes.unit % wanted == 0
    assert len(seen) <= 4 and (len(seen) == 1) == (runs == 300)
    assert 0.5 < sizes.unit * (1e-3 if wanted == fastest else 2e-3) < 1.5 or sizes.unit >= runs


def test_a_large_store_continues_after_its_first_unit(tmp_path):
    """2.4 GB are declared and 2 MB are written."""
    path, runs, unit = tmp_path / "a.zarr", 10**5, 64
    store = create_store(path, {}, (unit, unit), np.arange(runs), np.zeros((runs, 0)), [])
    rows = {"tip": np.zeros((unit, 1001, 3)), "status": np.zeros(unit, "i4")}
    store.declare(rows, lambda name, count: tuple(f"{name}_{k}" for k in range(count)))
    store.write(0, rows)
    part = path / "tip" / "c" / "1" / "0" / f"0.{'0a' * 16}.partial"  # of a process that was killed
    part.parent.mkdir(parents=True)
    part.touch()
    again = open_store(path, {}, runs)
    assert not part.exists()
    assert again is not None and again.missing()[0] == 1 and len(again.missing()) == again.units - 1
