"""Outputs of a trajectory: computed when they are read, in any transformation, once."""

import copy
import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import _chain_model

TS = np.linspace(0.0, 0.02, 3)


@pytest.fixture(scope="module")
def model():
    return fx.RigidArm().bind(fx.load_robot("rigid-3r"))


@pytest.fixture
def traced_names(monkeypatch):
    """What outputs are traced for, in order."""
    found, original = [], _chain_model.chain_outputs

    def outputs(*args):
        found.append(set(args[-1]))
        return original(*args)

    monkeypatch.setattr(_chain_model, "chain_outputs", outputs)
    return found


def run(model, **options):
    return fx.simulate(model, None, TS, dt=5e-3, start={"shoulder": 0.3}, throw=False, **options)


def fields(traj):
    return {k: getattr(traj, k) for k in ("q", "qdd", "frames", "velocity", "reaction")} | {
        "balance": traj.energy.balance,
        "tip": traj.tip,
    }


def test_only_what_is_read_is_traced(model, traced_names):
    jax.clear_caches()
    jax.eval_shape(lambda m: run(m).tip, model)
    assert traced_names == [{"positions"}]
    jax.eval_shape(lambda m: (run(m).qd, run(m).energy), model)
    assert traced_names[1:] == [{"q", "qd", "motor", "frames"}, {"energy"}]
    jax.clear_caches()


def test_known_values_are_read_by_two_programs_at_most(model, traced_names):
    jax.clear_caches()
    traj = run(model)
    assert np.all(np.isfinite(traj.tip)) and np.all(np.isfinite(traj.q))
    assert np.all(np.isfinite(traj.strain)) and np.all(np.isfinite(traj.energy.balance))
    assert len(traced_names) == 2 and traced_names[0] == {"positions"}
    jax.clear_caches()


@pytest.mark.parametrize("stations", [3, np.array([0.25, 0.5])], ids=["ends", "no ends"])
def test_values_do_not_depend_on_how_they_are_read(model, stations):
    one_by_one = fields(run(model, stations=stations))
    together = jax.jit(lambda m: run(m, stations=stations))(model)
    inside = jax.jit(lambda m: fields(run(m, stations=stations)))(model)
    for name, value in fields(together).items():
        np.testing.assert_allclose(value, one_by_one[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(value, inside[name], rtol=1e-12, atol=1e-12)
    whole = run(model, stations=stations).whole()
    np.testing.assert_array_equal(whole.tip, whole.frames[:, -1, -1, :3])


def test_read_inside_another_transformation(model):
    known = run(model)
    tip = np.asarray(run(model).tip)
    # The first read of known values, by a function that is compiled.
    np.testing.assert_array_equal(jax.jit(lambda: known.tip + 0.0)(), tip)
    np.testing.assert_array_equal(known.tip, tip)

    def loss(g):
        traj = run(model.rebind(model.robot.replace("gravity", g * model.robot.gravity)))
        # The first read inside a scan, the second outside of it.
        scanned = jax.lax.scan(lambda c, k: (c + traj.tip[k, 1], None), 0.0, jnp.arange(3))[0]
        batched = jax.vmap(lambda k: traj.q[k, 0])(jnp.arange(3))
        return scanned + jnp.sum(traj.tip[:, 0]) + jnp.sum(batched) + traj.qd[-1, 0]

    def plain(g):
        traj = run(model.rebind(model.robot.replace("gravity", g * model.robot.gravity)))
        return jnp.sum(traj.tip[:, :2]) + jnp.sum(traj.q[:, 0]) + traj.qd[-1, 0]

    got, expected = (jax.jit(jax.value_and_grad(f))(1.0) for f in (loss, plain))
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert expected[1] != 0


def test_a_trajectory_is_a_pytree_and_a_record(model):
    traj = run(model)
    first = jax.tree.map(lambda x: x[:1], run(model).energy)
    np.testing.assert_array_equal(first.kinetic, traj.energy.kinetic[:1])
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(traj)]
    assert {".q", ".frames", ".energy.kinetic", ".final.mech.q"} <= set(paths)
    for other in (pickle.loads(pickle.dumps(run(model))), copy.deepcopy(run(model))):
        np.testing.assert_array_equal(other.tip, traj.tip)
        np.testing.assert_array_equal(other.reaction, traj.reaction)
    moved = dataclasses.replace(traj, q=traj.q + 1)
    np.testing.assert_array_equal(moved.q, traj.q + 1)
    with pytest.raises(AttributeError, match="has no attribute 'tips'"):
        traj.tips  # noqa: B018
    with pytest.raises(dataclasses.FrozenInstanceError):
        traj.q = traj.q


def test_outputs_of_a_finished_run_are_one_program(model):
    """And no program for every constant in it."""
    compiled = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    traj = run(model, stations=np.linspace(0.0, 1.0, 23))
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.block_until_ready(traj.frames)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert len(compiled) == 1
