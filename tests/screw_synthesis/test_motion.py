"""Motions: reference trajectories, conservation, order, derivatives.

One compiled step serves all of one robot.
"""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import flexjax as fx
from benchmarks.many_links import fall, many_links
from flexjax.formulation import Start
from flexjax.mechanism.chain.geometry._kinematics import inward
from flexjax.numerics.term import Instant
from tests.screw_synthesis.arms import REFERENCE, arm

SWING = fx.load_robot("yaqubi-two-link")


@eqx.filter_jit
def run(term, solver, y, dt, steps):
    """``steps`` (traced) steps of ``dt``: one program for all step sizes."""
    state = solver.init(term, 0.0 * dt, dt, y, 0.5 * dt)

    def body(k, carry):
        y, state, good = carry
        t = k * dt
        y, _, _, state, result = solver.step(term, t, t + dt, y, t + 0.5 * dt, state, False)
        return y, state, good & (result == diffrax.RESULTS.successful)

    return lax.fori_loop(0, steps, body, (y, state, jnp.asarray(True)))


@eqx.filter_jit
def energy(term, y):
    return sum(term.energies(Instant(0.0), y.mech.q, y.mech.v))


@functools.cache
def swing(modes=(1, 1, 1, 1)):
    return fx.ScrewSynthesis(modes=modes, variant="paper").bind(SWING)


@functools.cache
def swing_term():
    return swing().term(fx.Drive()), swing().initial_state(fx.Drive(), jnp.zeros(()), Start())


def _compare(case, traj, record_number, rows):
    reference = REFERENCE["cases"][case]
    energies = np.stack(
        [traj.energy.kinetic, traj.energy.elastic, traj.energy.gravity - traj.energy.gravity[0]],
        axis=1,
    )
    for name, ours in (("tip", traj.tip), ("joint_angles", traj.q), ("energy_TUV", energies)):
        record_number(
            f"{case}: {name} against the reference",
            np.max(np.abs(ours - np.array(reference[name])[:rows])),
            1e-6,
        )
    start = reference["t0"]
    record_number(
        f"{case}: qdd at t = 0", np.max(np.abs(traj.qdd[0] - np.array(start["qdd"]))), 1e-6
    )
    record_number(
        f"{case}: joint wrenches at t = 0",
        np.max(np.abs(traj.reaction[0] - np.array(start["joint_wrench_in_child_frame"]))),
        1e-6,
    )


def test_swing_is_the_reference(record_number):
    case = "swing2_nu(1, 1, 1, 1)"
    ts = jnp.asarray(REFERENCE["cases"][case]["t"][:2])
    traj = fx.simulate(swing(), None, ts, dt=4e-4, solver=diffrax.Dopri8(scan_kind="bounded"))
    _compare(case, traj, record_number, 2)


@pytest.mark.slow
@pytest.mark.parametrize("modes", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 3, 3, 2)])
def test_swing_is_the_reference_to_the_end(modes, record_number):
    case = f"swing2_nu{modes}"
    ts = jnp.asarray(REFERENCE["cases"][case]["t"])
    traj = fx.simulate(swing(modes), None, ts, dt=1e-4, solver=diffrax.Dopri8(scan_kind="bounded"))
    _compare(case, traj, record_number, 5)


@pytest.mark.slow
def test_energy_is_conserved_and_the_step_is_of_second_order(record_number):
    term, y0 = swing_term()
    ends, drift = [], []
    # The release excites every mode. The fastest, of 1.66e3 rad/s, is late by w^3 dt^2 t / 12 rad:
    # 0.01 with the longest step here, so that the order is that of small errors.
    for steps in (200, 400, 800, 1600, 3200):
        y, _, good = run(
            term, fx.DiscreteGradient(), y0, jnp.asarray(0.01 / steps), jnp.asarray(steps)
        )
        assert good
        ends.append(np.concatenate([y.mech.q, y.mech.v]))
        drift.append(abs(float(energy(term, y) - energy(term, y0))))
    record_number(
        "screw synthesis, 2-link swing: energy drift of the energy-conserving step [J]",
        max(drift),
        1e-9,
    )
    gaps = [np.linalg.norm(a - b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    for i in range(3):
        record_number(
            f"screw synthesis, 2-link swing: order of the state, halving {i + 1}",
            np.log2(gaps[i] / gaps[i + 1]),
            (1.85, 2.15),
            "in",
        )


@pytest.mark.slow
def test_stiff_links_move_like_rigid_ones(record_number):
    """The distance of the tips falls with the stiffness, down to the rigid arm."""
    ts = jnp.linspace(0.0, 0.2, 101)
    rigid = fx.simulate(fx.RigidArm().bind(SWING), None, ts, dt=5e-4, stations=2).tip

    def gap(times):
        robot = SWING
        for link in SWING.links:
            for name in ("EA", "EIy", "EIz", "GJ"):
                robot = robot.replace(
                    f"links.{link.name}.constants.{name}", times * getattr(link.constants, name)
                )
        tip = fx.simulate(
            fx.ScrewSynthesis(modes=(1, 1, 1, 1)).bind(robot), None, ts, dt=5e-4, stations=2
        ).tip
        return float(np.max(np.linalg.norm(tip - rigid, axis=1)))

    gaps = [gap(4.0**k) for k in range(4)]
    for i in range(3):
        order = np.log(gaps[i] / gaps[i + 1]) / np.log(4)
        record_number(
            "2-link swing: gap to the rigid arm in powers of the stiffness, "
            f"{4**i} to {4 ** (i + 1)} times",
            order,
            (0.9, 1.1),
            "in",
        )
    record_number(
        "2-link swing, links a million times stiffer: tip against the rigid arm [m]", gap(1e6), 1e-8
    )


@eqx.filter_jit
def momenta(term, q, v):
    """Linear and angular momentum about the world's origin: what the momenta of all bodies hand to
    the ground.
    """
    m = term.motion(Instant(0.0), q, v)
    pull = term._times(term.mass(m.eta), m.z, m.rate)
    return inward(m.kin, pull.wrench, jnp.zeros_like(m.z))[1]


@pytest.mark.slow
def test_free_floating_arm_keeps_its_momenta(record_number):
    model = fx.ScrewSynthesis(modes=(1, 1, 1, 1)).bind(
        arm(("free", "revolute"), gravity=(0.0, 0.0, 0.0), axes=((0, 0, 1.0), (0, 1.0, 0)))
    )
    term = model.term(fx.Drive())
    rates = {"joint0": jnp.array([0.3, -0.2, 0.1, 0.5, 1.0, -0.7]), "joint1": jnp.array(1.5)}
    y0 = model.initial_state(fx.Drive(), jnp.zeros(()), Start(rates=rates))
    before, drift, turn, slip = momenta(term, y0.mech.q, y0.mech.v), [], [], []
    for steps in (100, 200, 400, 800):
        y, _, good = run(
            term, fx.DiscreteGradient(), y0, jnp.asarray(0.2 / steps), jnp.asarray(steps)
        )
        assert good
        after = momenta(term, y.mech.q, y.mech.v)
        slip.append(np.max(np.abs(after - before)[:3]))
        turn.append(np.linalg.norm((after - before)[3:]))
        drift.append(abs(float(energy(term, y) - energy(term, y0))))
    record_number("free-floating flexible arm: energy drift [J]", max(drift), 1e-9)
    record_number("free-floating flexible arm: linear momentum drift [kg m/s]", max(slip), 1e-9)
    for i in range(3):
        record_number(
            f"free-floating flexible arm: order of the angular momentum, halving {i + 1}",
            np.log2(turn[i] / turn[i + 1]),
            (1.85, 2.15),
            "in",
        )


@pytest.mark.slow
def test_newton_does_not_wait_for_less_than_round_off(record_number):
    """Round-off of the residual grows with the number of links, the number of iterations hardly."""
    counts = {}
    for n in (10, 100):
        model = fx.ScrewSynthesis(modes=(1, 1, 1, 1)).bind(many_links(n))
        drive = fx.Drive(joints={"joint0": fx.Effort(fx.constant(0.2))})
        y = model.initial_state(drive, jnp.zeros(()), Start())
        _, before, after, iterations = eqx.filter_jit(fall)(
            model.term(drive), fx.DiscreteGradient(), y, jnp.asarray(1e-3), 20
        )
        counts[n] = float(iterations)
        record_number(
            f"energy less work, {n} links, 20 steps [J]", abs(float(after - before)), 1e-12
        )
    record_number(
        "Newton's iterations per step, 100 links over 10 links", counts[100] / counts[10], 1.1
    )


@pytest.mark.slow
def test_gradients_through_a_run(record_number):
    """Forward = reverse = finite differences of the tip after a swing, with respect to a stiffness,
    a length and a start; straight at the start.
    """
    term, y0 = swing_term()

    def tip(x):
        robot = SWING.replace("links.link1.constants.EIz", 168.75 * x[0]).replace(
            "links.link2.length", 0.8 * x[1]
        )
        model = fx.ScrewSynthesis(modes=(1, 1, 1, 1)).bind(robot)
        term = model.term(fx.Drive())
        y = model.initial_state(fx.Drive(), jnp.zeros(()), Start(joints={"joint2": x[2]}))
        solver = fx.DiscreteGradient(points=2)
        state = solver.init(term, 0.0, 2e-3, y, 1e-3)

        def body(carry, k):
            y, state = carry
            y, _, _, state, _ = solver.step(
                term, k * 2e-3, (k + 1) * 2e-3, y, (k + 0.5) * 2e-3, state, False
            )
            return (y, state), None

        (y, _), _ = lax.scan(body, (y, state), jnp.arange(20.0))
        world = term.motion(Instant(0.0), y.mech.q, y.mech.v)
        end = world.world.position[-1] + world.world.rotation[-1] @ world.kin.tip.pose.position[-1]
        return jnp.sum(end * jnp.array([0.3, 1.0, -0.5]))

    x = jnp.array([1.0, 1.0, 0.6])
    value, reverse = jax.jit(jax.value_and_grad(tip))(x)
    forward = jax.jit(jax.jacfwd(tip))(x)
    value = jax.jit(tip)
    h = 1e-5
    differences = np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(3)])
    record_number(
        "screw synthesis: reverse - forward gradient", np.max(np.abs(reverse - forward)), 1e-11
    )
    record_number(
        "screw synthesis: gradient - finite differences",
        np.max(np.abs(reverse - differences)),
        1e-8,
    )
