"""Progress: the same numbers, and phases in order."""

import time

import diffrax
import jax
import jax.monitoring
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest

import flexjax as fx
from flexjax import _compile, _configure, _kept
from flexjax._phases import COMPILED, LOWERED, _rounded, phases
from flexjax.simulate import _progress
from tests.contract_cases import CONTRACTS, each, pendulum


def same(a, b) -> bool:
    """Equal to rounding: XLA fuses the same steps differently in another program."""

    def close(x, y):
        x, y = np.asarray(x), np.asarray(y)
        scale = np.max(np.abs(x[np.isfinite(x)]), initial=1.0)
        return np.allclose(x, y, rtol=0, atol=1e-13 * scale, equal_nan=True)

    pairs = zip(jtu.tree_leaves(a), jtu.tree_leaves(b), strict=True)
    return jtu.tree_structure(a) == jtu.tree_structure(b) and all(close(*pair) for pair in pairs)


TS = jnp.linspace(0.0, 0.04, 5)
STEPPED = fx.Drive({"root": fx.Effort(fx.step(0.1, 0.013))})


@pytest.mark.parametrize(
    ("drive", "intervals", "steps"),
    [
        pytest.param(None, None, 8, id="free"),
        pytest.param(STEPPED, None, 9, id="with a break"),
        pytest.param(None, 2, 4, id="ended early", marks=pytest.mark.slow),
    ],
)
def test_progress_does_not_change_the_run(capsys, drive, intervals, steps):
    model = fx.RigidArm().bind(pendulum())
    plain, shown = (
        fx.simulate(model, drive, TS, dt=5e-3, intervals=intervals, progress=progress)
        for progress in (False, True)
    )
    assert f"pendulum: finished: 100%|██████████| {steps}/{steps}" in capsys.readouterr().err
    assert same(plain, shown) and (intervals is not None or shown.ok)


@pytest.mark.parametrize("name", each(()))
def test_progress_does_not_change_the_run_of_any_formulation(name):
    case = CONTRACTS[name].quick
    model = case.formulation().bind(case.robot())
    plain, shown = (
        fx.simulate(model, case.drive(), TS, dt=5e-3, start=case.start, progress=progress)
        for progress in (False, True)
    )
    assert same(plain, shown)


@pytest.mark.slow
def test_a_run_goes_on_from_another_with_progress():
    model = fx.RigidArm().bind(pendulum())
    end = fx.simulate(model, STEPPED, TS, dt=5e-3).final
    plain, shown = (
        fx.simulate(model, STEPPED, TS + 0.04, dt=5e-3, start=end, progress=progress)
        for progress in (False, True)
    )
    assert same(plain, shown)


def test_a_failure_is_reported_with_progress():
    model = fx.RigidArm().bind(pendulum())
    drive = fx.Drive({"root": fx.Effort(fx.step(1e308, 0.013))})
    with pytest.raises(fx.SimulationError):
        fx.simulate(model, drive, TS, dt=5e-3, progress=True)


def test_where_no_bar_can_be_shown_it_is_refused():
    model = fx.RigidArm().bind(pendulum())
    with pytest.raises(ValueError, match="progress: with adaptive steps; expected the fixed grid"):
        fx.simulate(model, None, TS, progress=True, adaptive=diffrax.ConstantStepSize())
    with pytest.raises(ValueError, match="progress: True inside jax.jit"):
        jax.jit(lambda m: fx.simulate(m, None, TS, progress=True).q)(model)


def test_the_programs_of_a_run_with_progress_are_kept(tmp_path, monkeypatch):
    """Callbacks would keep them out of every cache."""
    monkeypatch.setattr(_configure, "_traced", [tmp_path])
    for name in ("_begin", "_advance", "_finish"):
        program = getattr(_progress, name)
        options = _compile.compiler_options()
        monkeypatch.setitem(program._stores, False, _kept.Programs(program._fn, options))
    model = fx.RigidArm().bind(pendulum())
    before = len(list(tmp_path.iterdir()))
    fx.simulate(model, None, TS, dt=5e-3, progress=True)
    assert len(list(tmp_path.iterdir())) == before + 3


def test_phases_are_reported_in_order():
    seen = []
    with phases(seen.append, least=0.0):
        time.sleep(0.01)
        jax.monitoring.record_event_duration_secs(LOWERED, 0.01)
        jax.monitoring.record_event_duration_secs(COMPILED, 0.1)
        jax.monitoring.record_event_duration_secs(COMPILED, 0.1)  # a small program: not reported
    jax.monitoring.record_event_duration_secs(LOWERED, 0.01)  # nobody listens
    assert len(seen) == 2 and seen[0].startswith("compiling (about 0.") and seen[1] == "running"
    assert [_rounded(x) for x in (0.04, 0.61, 3.2, 8.4, 26.0)] == ["0.0", "0.6", "3", "8", "30"]


def test_jax_still_reports_these_events():
    seen = []
    with phases(seen.append, least=0.0):
        jax.jit(lambda x: 3.125 * x)(1.0)
    assert seen[-1] == "running" and "compiling" in seen[0]
