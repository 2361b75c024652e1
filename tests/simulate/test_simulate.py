"""simulate: grids, breaks, failures, controllers, base motion, gradients on the awkward grid,
adaptive runs.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate import _simulate
from flexjax.simulate.loop._march import march
from tests.contract_cases import SMALLEST, each, light, pendulum
from tests.simulate.arms import START, pair_model, planar_pair


def swing(robot, ts, **options):
    options = {"stations": 2, "throw": False, "start": START} | options
    return fx.simulate(fx.RigidArm().bind(robot), None, ts, **options)


def marched(model, ts, substeps, checkpoint):
    """(last joint coordinates, status) with steps stored or recomputed for reverse mode."""
    drive = fx.Drive()
    solver = model.default_solver(drive)
    start = {joint.name: START.get(joint.name, 0.5) for joint in model.robot.joints}
    y0 = model.initial_state(drive, 0.0, fx.Start(start))
    ys, _, end = march(model, drive, solver, jnp.asarray(ts), substeps, y0, checkpoint=checkpoint)
    return ys.mech.q[-1], end.status


@pytest.mark.parametrize("checkpoint", [False, True], ids=["stored", "recomputed"])
def test_forward_equals_reverse_with_outputs_on_step_boundaries(checkpoint, record_number):
    """diffrax's default is silently wrong here: outputs on the boundaries of steps that are no
    binary fraction, fewer checkpoints than steps.
    """
    ts = np.linspace(0.0, 0.07, 8)  # a constant of the compiled function

    def f(mass):
        model = fx.RigidArm().bind(planar_pair().replace("payloads.tool.mass", mass))
        return jnp.sum(marched(model, ts, 3, checkpoint)[0])

    mass = jnp.asarray(0.2)
    forward = float(jax.jit(lambda m: jax.jvp(f, (m,), (jnp.ones(()),))[1])(mass))
    reverse = float(jax.jit(jax.grad(f))(mass))
    how = "recomputed" if checkpoint else "stored"
    record_number(
        f"forward - reverse on step boundaries, relative ({how})",
        abs(forward - reverse) / abs(forward),
        1e-10,
    )


@pytest.mark.parametrize("name", each(light("recomputed runs")))
def test_spare_rows_of_recomputed_runs(name):
    """Of 28 steps in 8 chunks of 4, rows of no length fill the last one. Long runs (many elements,
    small steps) ended there as non_finite where the solver divides by the step."""
    model = SMALLEST[name]().bind(pendulum())
    ts = np.linspace(0.0, 0.07, 8)
    (stored, _), (recomputed, status) = (
        jax.jit(lambda m, c=c: marched(m, ts, 4, c))(model) for c in (False, True)
    )
    assert status == 0
    np.testing.assert_allclose(recomputed, stored, rtol=1e-12)


def test_solvers_run_in_diffeqsolve_with_equal_gradients(record_number):
    ts = jnp.linspace(0.0, 0.05, 6)
    model = pair_model()

    def end(mass, adjoint):
        model = fx.RigidArm().bind(planar_pair().replace("payloads.tool.mass", mass))
        y0 = model.initial_state(fx.Drive(), 0.0, fx.Start(START))
        out = diffrax.diffeqsolve(
            model.term(fx.Drive()),
            fx.Newmark(),
            0.0,
            ts[-1],
            None,
            y0,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.StepTo(ts=ts),
            adjoint=adjoint,
        )
        return jnp.sum(out.ys.mech.q)

    mass = jnp.asarray(0.2)
    reverse = float(
        jax.jit(jax.grad(lambda m: end(m, diffrax.RecursiveCheckpointAdjoint(checkpoints=2))))(mass)
    )
    value, forward = jax.jit(
        lambda m: jax.jvp(lambda m: end(m, diffrax.ForwardMode()), (m,), (jnp.ones(()),))
    )(mass)
    record_number(
        "Newmark in diffeqsolve: forward - reverse, relative",
        abs(forward - reverse) / abs(forward),
        1e-10,
    )
    marched = fx.simulate(model, None, ts, substeps=1, solver=fx.Newmark(), start=START, stations=2)
    assert abs(float(value) - float(jnp.sum(marched.q[-1]))) < 1e-12


def test_adaptive_explicit_run_equals_the_implicit_one():
    ts = jnp.linspace(0.0, 0.3, 4)
    fine = swing(
        planar_pair(),
        ts,
        solver=diffrax.Tsit5(),
        adaptive=diffrax.PIDController(rtol=1e-9, atol=1e-11),
        dt=1e-3,
    )
    assert int(fine.status) == 0
    coarse = swing(planar_pair(), ts, dt=1e-3)
    np.testing.assert_allclose(np.asarray(fine.tip), np.asarray(coarse.tip), atol=3e-6)
    short = swing(
        planar_pair(),
        ts,
        solver=diffrax.Tsit5(),
        adaptive=diffrax.PIDController(rtol=1e-9, atol=1e-11),
        dt=1e-3,
        max_steps=3,
    )
    assert (
        fx.Status(int(short.status)) is fx.Status.max_steps
        and np.isnan(np.asarray(short.tip[-1])).all()
    )
    steps = np.linspace(0.0, 0.3, 301)
    given = swing(planar_pair(), ts, solver=diffrax.Tsit5(), adaptive=diffrax.StepTo(ts=steps))
    np.testing.assert_allclose(np.asarray(given.tip), np.asarray(fine.tip), atol=1e-9)
    assert int(given.stats.steps) == 300


def test_breaks_are_step_boundaries():
    """A bang-bang torque on one coarse grid gives the same as with a grid that has the switches on
    it.
    """

    def run(times, dt):
        drive = fx.Drive(joints={"joint1": fx.Effort(fx.bang_bang(3.0, times))})
        ts = np.array([0.0, 0.02, 0.04])
        options = {"dt": dt, "start": START, "stations": 2, "throw": False}
        return fx.simulate(pair_model(), drive, ts, **options)

    def switched(times):
        traj = run(times, 0.01)
        return jnp.sum(traj.tip[-1]), traj

    # One program for the coarse run, its gradient and the differences.
    program = jax.jit(jax.value_and_grad(switched, has_aux=True))
    times, direction = jnp.array([0.0, 0.0137, 0.0291]), jnp.array([0.0, 1e-5, 2e-5])
    (_, coarse), slope = program(times)
    fine = run(times, 1e-4)
    np.testing.assert_allclose(np.asarray(coarse.tip), np.asarray(fine.tip), atol=2e-5)
    assert abs(float(coarse.energy.balance[-1] - coarse.energy.balance[0])) < 1e-12
    ends = [float(program(times + sign * direction)[0][0]) for sign in (1, -1)]
    np.testing.assert_allclose(slope @ direction, (ends[0] - ends[1]) / 2, rtol=1e-5)


def test_failure_freezes_its_run_only():
    ts = jnp.linspace(0.0, 0.1, 6)
    push = jnp.array([1.0, 1e9])

    def tip(force):
        rail = fx.Link(
            "rail",
            0.3,
            section=fx.Rectangle(0.02, 0.02),
            material=fx.Material.named("steel"),
            rigid=True,
        )
        rider = fx.Link(
            "rider",
            0.2,
            section=fx.Rectangle(0.02, 0.02),
            material=fx.Material.named("steel"),
            rigid=True,
        )
        joints = (
            fx.Joint("base", "fixed", "ground", "rail"),
            fx.Joint("slide", "sliding", "rail", "rider", home=0.1),
        )
        robot = fx.Robot("rail", (rail, rider), joints, planar=True, gravity=(0.0, 0.0, 0.0))
        drive = fx.Drive(joints={"slide": fx.Effort(fx.constant(force))})
        return fx.simulate(fx.RigidArm().bind(robot), drive, ts, dt=0.01, stations=2, throw=False)

    both = jax.jit(jax.vmap(tip))(push)
    assert [fx.Status(int(s)) for s in both.status] == [fx.Status.ok, fx.Status.ran_off_link]
    assert (
        np.all(np.isfinite(np.asarray(both.tip[0]))) and np.isnan(np.asarray(both.tip[1, -1])).all()
    )
    with pytest.raises(fx.SimulationError, match="slide"):
        traj = tip(1e9)
        _simulate.raise_failure(traj, fx.Drive())


def test_sampled_controller_holds_and_delays():
    def law(t, q, qd, gain):
        return -gain * q[0] - 0.1 * gain * qd[0]

    model = pair_model()
    ts = jnp.linspace(0.0, 0.05, 11)
    run = lambda delay: fx.simulate(
        model,
        fx.Drive(joints={"joint1": fx.Sampled(law, 0.01, jnp.asarray(5.0), delay=delay)}),
        ts,
        dt=5e-3,
        start=START,
        stations=2,
    )
    held = np.asarray(run(0).effort[:, 0])
    # Seen at the end of each interval of 5 ms, the value of the last sample of every 10 ms.
    np.testing.assert_allclose(held[1], -5.0 * 0.3, atol=1e-12)
    np.testing.assert_allclose(held[1:-1:2], held[2::2], atol=1e-12)
    late = np.asarray(run(1).effort[:, 0])
    np.testing.assert_allclose(late[1:3], 0.0, atol=1e-12)
    np.testing.assert_allclose(late[3], -5.0 * 0.3, atol=1e-12)


def test_a_law_of_your_own_equals_the_controller_that_it_repeats():
    def law(t, q, qd, p):
        return p["kp"] * (0.5 - q[1]) - p["kd"] * qd[1]

    ts = jnp.linspace(0.0, 0.05, 3)
    gains = {"kp": jnp.asarray(5.0), "kd": jnp.asarray(0.2)}
    drives = (
        fx.Drive(joints={"joint2": a})
        for a in (fx.Feedback(law, gains), fx.PD(5.0, 0.2, fx.constant(0.5)))
    )
    own, ready = (
        fx.simulate(pair_model(), drive, ts, dt=5e-3, start=START, stations=2) for drive in drives
    )
    np.testing.assert_allclose(np.asarray(own.effort), np.asarray(ready.effort), atol=1e-9)
    np.testing.assert_allclose(np.asarray(own.tip), np.asarray(ready.tip), atol=1e-12)


def test_moving_base_does_its_work(record_number):
    drive = fx.Drive(
        base=fx.Base(
            translation=fx.stack([fx.quintic(0.0, 0.2, 0.3), fx.constant(0.0), fx.constant(0.0)]),
            angle=fx.quintic(0.0, 0.4, 0.3),
        )
    )
    ts = jnp.linspace(0.0, 0.3, 4)
    errors = []
    for substeps in (20, 40):
        traj = fx.simulate(pair_model(), drive, ts, substeps=substeps, start=START, stations=2)
        balance = np.asarray(traj.energy.balance)
        errors.append(np.max(np.abs(balance - balance[0])))
    record_number(
        "moving base: order of the energy balance", np.log2(errors[0] / errors[1]), (1.8, 2.3), "in"
    )


def test_continuing_from_the_final_state():
    model = pair_model()
    whole = fx.simulate(model, None, jnp.linspace(0.0, 0.2, 5), dt=0.01, start=START, stations=2)
    first = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3), dt=0.01, start=START, stations=2)
    second = fx.simulate(
        model, None, jnp.linspace(0.1, 0.2, 3), dt=0.01, start=first.final, stations=2
    )
    np.testing.assert_allclose(np.asarray(second.tip[-1]), np.asarray(whole.tip[-1]), atol=1e-10)
    # The message of a failed step: when, where to look, what to try.
    failed = eqx.tree_at(
        lambda t: (t.status, t.t_fail, t.frames),
        whole,
        (jnp.asarray(1), jnp.asarray(0.2), whole.frames.at[-1].set(jnp.nan)),
    )
    rates = np.abs(np.asarray(whole.qd[-2]))
    place = rf"joint 'joint{np.argmax(rates) + 1}' \(the fastest.*last output, t = 0.15 s"
    with pytest.raises(
        fx.SimulationError, match=f"t = 0.2 s at {place}: newton_failed.*smaller dt"
    ):
        _simulate.raise_failure(failed, fx.Drive())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: fx.simulate(m, None, jnp.array([0.0])), "ts: shape"),
        (lambda m: fx.simulate(m, None, jnp.array([0.0, 1.0, 0.5])), "not increasing"),
        (lambda m: fx.simulate(m, None, jnp.array([0.0, 1.0]), dt=-1.0), "dt: -1.0"),
        (
            lambda m: fx.simulate(
                m, fx.Drive(joints={"knee": fx.Effort(fx.constant(1.0))}), jnp.array([0.0, 1.0])
            ),
            "no such joint",
        ),
        (
            lambda m: fx.simulate(m, None, jnp.array([0.0, 1.0]), start={"knee": 1.0}),
            "start.joints.knee",
        ),
        (
            lambda m: fx.simulate(
                m,
                fx.Drive(joints={"joint1": fx.Motion(fx.constant(1.0))}),
                jnp.array([0.0, 1.0]),
                start={"joint1": 0.2},
            ),
            "contradicts",
        ),
        (lambda m: fx.Drive(joints={"joint1": 3.0}), "expected Motion"),
        (lambda m: fx.modes(m, lock="everything"), "lock: 'everything'"),
        (
            lambda m: fx.simulate(m, None, [0.0, 1.0], solver=diffrax.SemiImplicitEuler()),
            "solver: SemiImplicitEuler integrates several terms",
        ),
        (
            lambda m: fx.simulate(m, None, [0.0, 1.0], solver="Newmark"),
            r"solver: 'Newmark'; expected a solver of flexjax or diffrax, e.g. fx.DiscreteGradient",
        ),
    ],
)
def test_bad_input_is_told_before_compilation(call, message):
    with pytest.raises(ValueError, match=message):
        call(pair_model())


def test_a_run_may_end_early():
    """The number of intervals is traced: one program for all; its derivative in forward mode is
    that of the whole run, cut.
    """
    model, ts = fx.RigidArm().bind(fx.load_robot("rigid-3r")), jnp.linspace(0.0, 0.1, 6)
    whole = fx.simulate(model, None, ts, dt=0.02)
    for n in (2, 5):
        part = fx.simulate(model, None, ts, dt=0.02, intervals=n)
        np.testing.assert_allclose(part.q[: n + 1], whole.q[: n + 1], rtol=0, atol=1e-14)
        assert part.ok and np.all(np.isnan(part.q[n + 1 :])) and int(part.stats.steps) == n
