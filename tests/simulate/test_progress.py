"""Progress: the same numbers, and phases in order."""

import time

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax._phases import COMPILED, LOWERED, _rounded, phases


def test_progress_does_not_change_the_run(capsys):
    model = fx.RigidArm().bind(fx.load_robot("metal-link"))
    ts = jnp.linspace(0.0, 0.1, 5)
    plain = fx.simulate(model, None, ts, dt=0.025)
    shown = fx.simulate(model, None, ts, dt=0.025, progress=True)
    assert "metal-link: finished: 100%" in capsys.readouterr().err
    for name in ("q", "qd", "tip", "reaction"):
        a, b = np.asarray(getattr(plain, name)), np.asarray(getattr(shown, name))
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


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
