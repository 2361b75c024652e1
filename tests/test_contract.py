"""What every formulation must keep: a matrix driven by tests/contract_cases.py, which a new formulation joins with one entry."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import REGISTRY
from flexjax.simulate import _simulate
from tests.contract_cases import CASES, elastic_pair, pair_drive, pendulum

# Programs of arms with sliding and telescoping joints, and gradients of all flexible ones, compile for a minute or more: they belong to the full report.
names = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if case.long else n for n, case in CASES.items()],
)
long = pytest.mark.parametrize(
    "name", [n if n == "RigidArm" else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)


@functools.cache
def setting(name):
    case = CASES[name]
    robot, drive = case.robot(), case.drive()
    ts = jnp.array([0.0, case.dt * case.steps / 2, case.dt * case.steps])
    return case, robot, drive, ts


def run(name, robot, drive, **options):
    case, _, _, ts = setting(name)
    return fx.simulate(
        case.formulation().bind(robot),
        drive,
        ts,
        dt=case.dt,
        start=case.start,
        stations=5,
        throw=False,
        **options,
    )


def loss(name, robot, drive):
    """A number that feels everything: tip, efforts, reactions, sensors, energies."""
    traj = run(name, robot, drive)
    end = (
        jnp.sum(traj.tip[-1] * jnp.array([1.0, 2.0, 3.0]))
        + 0.01 * jnp.sum(traj.effort[-1])
        + 1e-3 * jnp.sum(traj.reaction[-1])
    )
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
    assert {name.split()[0] for name in CASES} == set(REGISTRY)


@names
def test_runs_and_keeps_its_dtype(name):
    traj = base_run(name)
    assert int(traj.status) == 0
    assert {
        x.dtype for x in jax.tree_util.tree_leaves(traj) if jnp.issubdtype(x.dtype, jnp.floating)
    } == {jnp.dtype("float64")}


@names
def test_energy_balance(name, record_number):
    traj = base_run(name)
    balance = np.asarray(traj.energy.balance)
    scale = max(
        float(np.max(np.abs(np.asarray(x))))
        for x in (traj.energy.kinetic, traj.energy.elastic, traj.energy.gravity, traj.energy.work)
    )
    record_number(
        f"{name}: energy balance, relative",
        np.max(np.abs(balance - balance[0])) / scale,
        CASES[name].balance,
    )


@long
def test_gradients_forward_reverse_differences(name, record_number):
    case, robot, drive, _ = setting(name)
    table = fx.check_gradients(functools.partial(loss, name), (robot, drive), step=case.step)
    print(table)
    assert np.all(np.isfinite(table.reverse)) and np.all(np.isfinite(table.forward))
    reasoned = tuple(
        f"[1].{path[6:]}" if path.startswith("drive.") else f"[0].{path}" for path in case.zero
    )
    unexplained = [n for n in table.zero if not n.startswith(reasoned)]
    assert not unexplained, f"gradients that are exactly zero without a reason: {unexplained}"
    compared = np.array(
        [not n.startswith(tuple(f"[0].{path}" for path in case.one_sided)) for n in table.names]
    )
    record_number(
        f"{name}: gradients, forward = reverse = differences, relative",
        np.max(table.error[compared]),
        case.gradient,
    )


@names
def test_one_trace_for_changed_numbers(name):
    _, robot, drive, _ = setting(name)
    base_run(name)
    before = _simulate._quick_run()._cached._cache_size()
    changed = robot.replace("gravity", [0.25, -9.0, 0.125])
    run(name, changed, drive)
    run(name, jax.tree_util.tree_map(lambda x: x * 1.0, changed), drive)
    assert _simulate._quick_run()._cached._cache_size() == before


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
    assert {
        x.dtype for x in jax.tree_util.tree_leaves(traj) if jnp.issubdtype(x.dtype, jnp.floating)
    } == {jnp.dtype("float32")}
    assert int(traj.status) == 0
    np.testing.assert_allclose(np.asarray(traj.tip), np.asarray(base_run(name).tip), atol=2e-3)


FLEXIBLE = [n for n in CASES if n != "RigidArm"]


def stiffer(robot, factor):
    """With every Young modulus of links and their pieces times ``factor``."""
    places = [
        (i, k)
        for i, link in enumerate(robot.links)
        for k in (range(len(link.pieces)) if link.pieces else [None])
    ]
    places = [(i, k) for i, k in places if k is not None or robot.links[i].material is not None]

    def moduli(r):
        return [(r.links[i] if k is None else r.links[i].pieces[k]).material.E for i, k in places]

    return eqx.tree_at(moduli, robot, replace_fn=lambda E: factor * E)


@pytest.mark.slow
@pytest.mark.parametrize("name", FLEXIBLE)
def test_rigid_limit(name, record_number):
    """Every elastic constant a million times larger (or as the case says): the rigid arm's motion, with the program that is compiled already, where the steps
    are the same."""
    case, robot, drive, ts = setting(name)
    methods = (
        (case.formulation(), stiffer(robot, case.stiffer)),
        (fx.RigidArm(), case.rigid_robot(robot)),
    )
    stiff, rigid = (
        fx.simulate(
            m.bind(r), drive, ts, dt=case.dt / case.finer, start=case.start, stations=5, throw=False
        )
        for m, r in methods
    )
    assert int(stiff.status) == 0
    gap = max(float(np.max(np.abs(a - b))) for a, b in ((stiff.tip, rigid.tip), (stiff.q, rigid.q)))
    moved = float(np.max(np.abs(rigid.tip - rigid.tip[:1])))
    record_number(
        f"{name}: rigid limit, tip and joints, relative to the motion", gap / moved, case.rigid
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", list(REGISTRY))
def test_order_of_the_default_solver(name, record_number):
    """On a smooth motion: springs, dampers and controllers without stops, friction or breaks. Links are damped: the weight comes suddenly and rings modes
    that these steps do not resolve, where no order shows."""
    robot, drive = elastic_pair(), fx.Drive(joints={"elbow": fx.PD(3.0, 0.1, fx.constant(0.6))})
    if name == "MovingBeam":
        robot, drive = pendulum(fx.Damping(strain_rate=2e-3)), None
    model = CASES[name].formulation().bind(robot)
    ends = [
        fx.simulate(model, drive, jnp.array([0.0, 0.2]), substeps=n, stations=2).tip[-1]
        for n in (200, 400, 800)
    ]
    order = np.log2(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2]))
    record_number(f"{name}: order of the default solver", order, (1.85, 2.15), "in")


@pytest.mark.slow
def test_formulations_agree_on_shared_robots(record_number):
    """One link that all hold, and two links that all serial ones hold: what they differ by, against what bending changes."""
    fine = {
        "RigidArm": fx.RigidArm(), "ScrewSynthesis": fx.ScrewSynthesis(modes=4, stiffening=True),
        "FiniteElement": fx.FiniteElement(elements=6, stiffening=True),
        "TransferMatrix": fx.TransferMatrix(segments=24), "MovingBeam": fx.MovingBeam(elements=4), "PortHamiltonian": fx.PortHamiltonian(elements=16),
    }  # fmt: skip
    assert set(fine) == set(REGISTRY)
    drives = (fx.Drive(joints={"root": fx.Motion(fx.quintic(0.0, 0.3, 0.4))}), pair_drive())
    for robot, drive in zip((pendulum(), elastic_pair()), drives, strict=True):
        table = fx.compare(
            robot,
            drive,
            jnp.linspace(0.0, 0.3, 13),
            formulations=fine,
            n_modes=2,
            dt=5e-4,
            stations=2,
        )
        print(table)
        rows = {row.name: row for row in table.rows}
        assert set(rows) >= set(fine) - {"MovingBeam"}
        frequencies = np.array([row.frequencies for n, row in rows.items() if n != "RigidArm"])
        record_number(
            f"{robot.name}: spread of frequencies",
            np.max(np.ptp(frequencies, axis=0) / np.mean(frequencies, axis=0)),
            0.01,
        )
        for n, row in rows.items():
            if n != "RigidArm":
                record_number(
                    f"{robot.name}: {n}, tip from the reference, relative to bending",
                    row.tip / rows["RigidArm"].tip,
                    0.02,
                )
