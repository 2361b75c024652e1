"""Parameters outside their range that are known only when the compiled program runs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax._results import SimulationError, Status
from flexjax.robot import parameters_hold
from flexjax.robot.parts._fields import RULES
from tests.contract_cases import RIGID, SMALLEST, each, pendulum
from tests.rigid_arm.contract import every_joint

TS = np.array([0.0, 5e-3, 1e-2])
GOOD, BAD = 1.0, -1.0


def ended(name, scale, path="links.link.material.rho", gain=3.0, limit=None, throw=False):
    """A short run with one parameter multiplied by ``scale``."""
    robot = pendulum()
    robot = robot.replace(path, fx.paths(robot)[path].value * scale)
    drive = fx.Drive(joints={"root": fx.PD(gain, 0.1, fx.constant(0.6), limit)})
    return fx.simulate(SMALLEST[name]().bind(robot), drive, TS, dt=5e-3, stations=2, throw=throw)


@pytest.mark.parametrize("name", each(RIGID))
def test_only_the_bad_run_of_a_batch_fails(name):
    """Its outputs are NaN; the derivative of the others is what it would be without it."""
    path = "links.link.material." + ("rho" if name in RIGID else "E")

    def tip(x):
        traj = ended(name, x, path)
        return jnp.where(traj.status == 0, traj.tip[-1, 1], 0.0), (traj.status, traj.tip)

    xs = jnp.array([GOOD, BAD, 1.2])
    total = lambda xs: (lambda out: (out[0].sum(), out[1]))(jax.vmap(tip)(xs))
    slope, (status, tips) = jax.jit(jax.grad(total, has_aux=True))(xs)
    assert status.tolist() == [0, Status.invalid_parameter, 0]
    assert np.isnan(np.asarray(tips[1])).all() and np.isfinite(np.asarray(tips)[[0, 2]]).all()
    alone = jax.jit(jax.grad(lambda x: tip(x)[0]))(GOOD)
    np.testing.assert_allclose(slope, [alone, 0.0, slope[2]], rtol=1e-9)
    assert float(slope[2]) != 0.0


def test_a_bad_drive_is_found_too():
    run = jax.jit(lambda gain, limit: ended(RIGID[0], GOOD, gain=gain, limit=limit).status)
    assert int(run(3.0, 1.0)) == 0
    assert int(run(3.0, -1.0)) == Status.invalid_parameter
    assert int(run(jnp.nan, 1.0)) == Status.invalid_parameter


@pytest.mark.parametrize("name", each(RIGID))
def test_times_out_of_order_are_found(name):
    """In one run of a batch; in the order of time they may coincide."""
    model = SMALLEST[name]().bind(pendulum())

    def tip(times):
        drive = fx.Drive(joints={"root": fx.Effort(fx.bang_bang(0.1, times))})
        traj = fx.simulate(model, drive, TS, dt=5e-3, stations=2, throw=False)
        return jnp.where(traj.status == 0, traj.tip[-1, 1], 0.0), traj.status

    rows = jnp.array([[0.0, 2e-3, 8e-3], [0.0, 8e-3, 2e-3], [0.0, 4e-3, 4e-3]])
    slopes, status = jax.jit(jax.vmap(jax.grad(tip, has_aux=True)))(rows)
    assert status.tolist() == [0, Status.invalid_parameter, 0]
    assert np.isfinite(np.asarray(slopes)).all() and not np.any(slopes[1])


@pytest.mark.parametrize(
    "signal",
    [
        lambda t: fx.piecewise_constant(jnp.stack([0.0, t]), [1.0, 2.0]),
        lambda t: fx.recorded(jnp.stack([0.0, t]), [1.0, 2.0]),
        lambda t: fx.recorded(jnp.stack([0.0, t]), [1.0, 2.0], "linear"),
        lambda t: fx.shift(2.0 * fx.bang_bang(1.0, jnp.stack([0.0, t])), 0.1),
        lambda t: fx.trapezoid(0.0, 1.0, 0.35 + t, 0.1),
    ],
)
def test_every_signal_has_its_times_checked(signal):
    holds = lambda t: fx.Drive(joints={"root": fx.Effort(signal(t))}).holds()
    assert jax.vmap(holds)(jnp.array([0.2, -0.2])).tolist() == [True, False]


def test_output_times_out_of_order_are_found():
    model = fx.RigidArm().bind(pendulum())

    def run(ts):
        traj = fx.simulate(model, None, ts, substeps=1, stations=2, throw=False)
        return jnp.sum(jnp.where(traj.status == 0, traj.tip, 0.0)), (traj.status, traj.tip)

    rows = jnp.array([[0.0, 5e-3, 1e-2], [0.0, 1e-2, 5e-3], [0.0, -5e-3, -1e-2]])
    slopes, (status, tip) = jax.jit(jax.vmap(jax.grad(run, has_aux=True)))(rows)
    assert status.tolist() == [0, Status.invalid_parameter, Status.invalid_parameter]
    assert np.isfinite(np.asarray(slopes)).all() and np.isfinite(np.asarray(tip[0])).all()
    assert np.isnan(np.asarray(tip[1:])).all()


def test_the_failure_names_the_parameter():
    """Replaced without a check, as ``eqx.tree_at`` does."""
    robot = eqx.tree_at(lambda r: r.links[0].material.rho, pendulum(), jnp.asarray(-1200.0))
    model = fx.RigidArm().bind(robot)
    with pytest.raises(SimulationError, match=r"invalid_parameter.*material\.rho.*-1200"):
        fx.simulate(model, None, TS, dt=5e-3)
    for call in (fx.modes, fx.equilibrium, fx.linearise):
        with pytest.raises(ValueError, match=r"(?s)range.*material\.rho.*-1200"):
            call(model)


@pytest.mark.parametrize(
    ("derivative", "name", "value", "said"),
    [
        (jax.grad, "limit", -1.0, r"drive\.joints\.root\.limit: -1\.0; expected"),
        (jax.jacfwd, "scale", -1.0, r"links\.link\.material\.rho = -1200\.0: expected"),
    ],
)
def test_the_failure_names_what_is_differentiated(derivative, name, value, said):
    """Outside jit a gradient has values, which no check before the run reads."""

    def run(x):
        given = dict(scale=1.0, limit=1.0) | {name: x}
        return ended(RIGID[0], **given, throw=True).tip[-1, 1]

    with pytest.raises(SimulationError, match=f"invalid_parameter.*{said}"):
        derivative(run)(value)


def test_results_without_a_status_are_nan():
    def results(x):
        model = fx.RigidArm().bind(pendulum().replace("links.link.material.rho", 1200.0 * x))
        drive = fx.Drive(joints={"root": fx.PD(3.0, 0.1, fx.constant(0.6))})
        return (
            fx.modes(model, drive=drive, n=1).frequencies,
            fx.equilibrium(model, drive).mech.q,
            fx.linearise(model, drive).A,
        ), fx.find_equilibrium(model, drive).ok

    marked, ok = jax.jit(jax.vmap(results))(jnp.array([GOOD, BAD]))
    assert ok.tolist() == [True, False]
    for x in marked:
        assert np.isfinite(np.asarray(x[0])).all() and np.isnan(np.asarray(x[1])).all()


@pytest.mark.parametrize("rule", RULES)
def test_traced_and_host_checks_are_the_same(rule):
    inside = {"ratio": 0.5, "fraction": 0.5, "station": 0.5, "poisson": 0.3}.get(rule, 2.0)
    outside = {"finite": np.inf, "not zero": 0.0}.get(rule, -2.0)
    for value, good in ((inside, True), (outside, False), (np.nan, False)):
        assert bool(RULES[rule].holds(value)) == good
        assert bool(RULES[rule].holds(jnp.asarray(value))) == good


def test_every_parameter_of_a_robot_is_checked():
    robot = every_joint()
    holds = jax.jit(parameters_hold)
    assert bool(holds(robot))
    leaves, form = jax.tree_util.tree_flatten(robot)
    for k, leaf in enumerate(leaves):
        changed = [*leaves[:k], jnp.full_like(leaf, jnp.nan), *leaves[k + 1 :]]
        assert not bool(holds(jax.tree_util.tree_unflatten(form, changed))), k
