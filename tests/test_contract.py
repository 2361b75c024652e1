"""What every formulation must keep: a matrix driven by tests/contract_cases.py, which a new formulation joins with one entry."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import REGISTRY
from flexjax.simulate import _simulate
from tests.contract_cases import AWAITED, CASES

names = pytest.mark.parametrize("name", list(CASES))
# The rigid arm in every run; the programs of the flexible ones compile for minutes and belong to the full report.
long = pytest.mark.parametrize("name", [n if n == "RigidArm" else pytest.param(n, marks=pytest.mark.slow) for n in CASES])


@functools.cache
def setting(name):
    case = CASES[name]
    robot, drive = case.robot(), case.drive()
    ts = jnp.array([0.0, case.dt * case.steps / 2, case.dt * case.steps])
    return case, robot, drive, ts


def run(name, robot, drive, **options):
    case, _, _, ts = setting(name)
    return fx.simulate(case.formulation().bind(robot), drive, ts, dt=case.dt, start=case.start, stations=5, throw=False, **options)


def loss(name, robot, drive):
    """A number that feels everything: tip, efforts, reactions, sensors, energies."""
    traj = run(name, robot, drive)
    end = jnp.sum(traj.tip[-1] * jnp.array([1.0, 2.0, 3.0])) + 0.01 * jnp.sum(traj.effort[-1]) + 1e-3 * jnp.sum(traj.reaction[-1])
    energy = traj.energy.work[-1] + 2.0 * traj.energy.dissipated[-1] + 0.5 * traj.energy.elastic[-1]
    readings = sum(jnp.sum(x[-1:]) for x in fx.measure(traj).values())
    return end + 0.1 * energy + 0.01 * readings


@functools.cache
def compiled(name):
    return jax.jit(functools.partial(loss, name))


@functools.cache
def base_run(name):
    _, robot, drive, _ = setting(name)
    return run(name, robot, drive)


def test_every_registered_formulation_has_a_case():
    assert set(CASES) | AWAITED == set(REGISTRY)
    assert not set(CASES) & AWAITED


@names
def test_runs_and_keeps_its_dtype(name):
    traj = base_run(name)
    assert int(traj.status) == 0
    assert {x.dtype for x in jax.tree_util.tree_leaves(traj) if jnp.issubdtype(x.dtype, jnp.floating)} == {jnp.dtype("float64")}


@names
def test_energy_balance(name, record_number):
    traj = base_run(name)
    balance = np.asarray(traj.energy.balance)
    scale = max(float(np.max(np.abs(np.asarray(x)))) for x in (traj.energy.kinetic, traj.energy.elastic, traj.energy.gravity, traj.energy.work))
    record_number(f"{name}: energy balance, relative", np.max(np.abs(balance - balance[0])) / scale, CASES[name].balance)


@long
def test_gradients_forward_reverse_differences(name, record_number):
    case, robot, drive, _ = setting(name)
    table = fx.check_gradients(functools.partial(loss, name), (robot, drive))
    assert np.all(np.isfinite(table.reverse)) and np.all(np.isfinite(table.forward))
    reasoned = tuple(f"[0].{path}" for path in case.zero)
    unexplained = [n for n in table.zero if not n.startswith(reasoned)]
    assert not unexplained, f"gradients that are exactly zero without a reason: {unexplained}"
    print(table)
    compared = np.array([not n.startswith(tuple(f"[0].{path}" for path in case.one_sided)) for n in table.names])
    record_number(f"{name}: gradients, forward = reverse = differences, relative", np.max(table.error[compared]), case.gradient)


@names
def test_one_trace_for_changed_numbers(name):
    _, robot, drive, _ = setting(name)
    base_run(name)
    before = _simulate._run._cached._cache_size()
    changed = robot.replace("gravity", [0.25, -9.0, 0.125])
    run(name, changed, drive)
    run(name, jax.tree_util.tree_map(lambda x: x * 1.0, changed), drive)
    assert _simulate._run._cached._cache_size() == before


@long
def test_vmap_equals_loop_and_jit_equals_direct(name):
    _, robot, drive, _ = setting(name)
    factors = jnp.array([1.0, 0.9])

    def scaled(k):
        return loss(name, robot.replace("gravity", robot.gravity * k), drive)

    batch = jax.jit(jax.vmap(scaled))(factors)
    f = compiled(name)
    one_by_one = [f(robot.replace("gravity", robot.gravity * k), drive) for k in factors]
    np.testing.assert_allclose(np.asarray(batch), np.asarray(one_by_one), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(float(loss(name, robot, drive)), float(one_by_one[0]), rtol=1e-9)


@long
def test_single_precision_stays_single(name):
    case, robot, drive, ts = setting(name)
    model = case.formulation().bind(robot, dtype=jnp.float32)
    traj = fx.simulate(model, drive, ts, dt=case.dt, start=case.start, stations=5, throw=False)
    assert {x.dtype for x in jax.tree_util.tree_leaves(traj) if jnp.issubdtype(x.dtype, jnp.floating)} == {jnp.dtype("float32")}
    assert int(traj.status) == 0
    np.testing.assert_allclose(np.asarray(traj.tip), np.asarray(base_run(name).tip), atol=2e-3)
