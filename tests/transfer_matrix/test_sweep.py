"""Chain solves against each other, a dense solve and extended precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.transfer_matrix._connections import connection_laws
from flexjax.formulation.transfer_matrix._paper import PaperTerm
from flexjax.formulation.transfer_matrix.sweep import SWEEPS, Elements, Segments, riccati_segments
from flexjax.numerics.term import Mechanical
from tests.transfer_matrix.cases import bent_state, dense_solve, extended_sweep, single_drive


def random_elements(n=7, seed=0, springs_only=False) -> tuple[Elements, jax.Array]:
    """Springs, a hinge, a rigid connection, a rotor: everything that an element can be."""
    rng = np.random.default_rng(seed)
    column, shift = rng.normal(size=(2, n, 2))
    mass, inertia = 0.5 + rng.random((2, n))
    com = 0.3 * rng.normal(size=(n, 2))
    table = np.zeros((n, 3, 4))
    table[:, 0, 0] = table[:, 1, 1] = mass
    table[:, 0, 2] = table[:, 2, 0] = -mass * com[:, 1]
    table[:, 1, 2] = table[:, 2, 1] = mass * com[:, 0]
    table[:, 2, 2] = inertia + mass * np.sum(com**2, 1)
    table[:, :, 3] = rng.normal(size=(n, 3))
    stiffness, free, given, coupling, rotor, rotor_torque = (
        1 + rng.random(n),
        np.ones(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )
    free[2], given[2] = 0.0, 0.7
    rotor[4], coupling[4], rotor_torque[4] = 0.3, 0.2, 0.4
    if not springs_only:
        stiffness[5] = 0.0
    arrays = (
        column,
        column,
        shift,
        table,
        stiffness,
        rng.normal(size=n),
        free,
        given,
        coupling,
        rotor,
        rotor_torque,
    )
    return Elements(*map(jnp.asarray, arrays)), jnp.asarray(rng.normal(size=3))


@pytest.mark.parametrize("kind", SWEEPS)
def test_equal_to_dense(kind, record_number):
    el, root = random_elements(springs_only=kind == "product")
    sol = jax.jit(SWEEPS[kind])(el, root)
    e, n, _ = dense_solve(el, root)
    record_number(
        f"{kind} sweep against a dense solve",
        max(np.abs(sol.e - e).max(), np.abs(sol.torque - n).max()),
        1e-11,
    )


def test_runs_side_by_side(record_number):
    """Many runs in one sweep, which has a code of its own, against one after the other; some
    numbers common to all.
    """
    rng = np.random.default_rng(1)
    el, root = random_elements()
    n, runs = len(el.torque), 5
    of_run = dict(
        zip(("square", "gain", "force_x", "load"), rng.normal(size=(4, runs, n)), strict=True)
    )
    angle = rng.normal(size=(runs, n))
    laws = {
        k: getattr(el, k)
        for k in ("stiffness", "free", "given", "coupling", "inertia", "rotor_torque")
    }
    common = dict(
        zip(
            ("reach_x", "reach_y", "moment_x", "moment_y", "force_y"),
            rng.normal(size=(5, n)),
            strict=True,
        )
    )
    common |= laws | dict(mass=1 + rng.random(n), rotary=20 + rng.random(n))
    of_run |= dict(
        cos=np.cos(angle),
        sin=np.sin(angle),
        torque=rng.normal(size=(runs, n)),
        gain=0.1 * of_run["gain"],
    )
    seg = Segments(**{k: jnp.asarray(v) for k, v in (common | of_run).items()})
    axes = Segments(**{k: 0 if k in of_run else None for k in common | of_run})
    many = jax.jit(jax.vmap(riccati_segments, (axes, None)))(seg, root)
    for i in range(runs):
        own = Segments(
            **{k: getattr(seg, k)[i] if k in of_run else getattr(seg, k) for k in common | of_run}
        )
        e, torque, _ = dense_solve(own.elements(), root)
        gap = max(
            np.abs(many.e[i] - e).max() / np.abs(e).max(),
            np.abs(many.torque[i] - torque).max() / np.abs(torque).max(),
        )
        record_number(f"sweep of many runs, run {i}, against a dense solve", gap, 1e-11)
    failed = eqx.tree_at(
        lambda x: (x.cos, x.torque),
        seg,
        (seg.cos.at[0].set(jnp.nan), seg.torque.at[0].set(jnp.nan)),
    )
    others = jax.jit(jax.vmap(riccati_segments, (axes, None)))(failed, root)
    assert np.all(np.isnan(others.torque[0])) and np.array_equal(
        others.e[1:], many.e[1:]
    )  # a failed run stays alone


@eqx.filter_jit
def _acceleration_elements(model, dt):
    drive = single_drive()
    y, a = bent_state(model, drive)
    term = model.chain_term(drive)
    at = term.instant(jnp.asarray(0.1), None)
    predicted = Mechanical(y.mech.q + dt * y.mech.v, y.mech.v + dt * a)
    seg, _ = term.segments(at, y.mech, predicted, 0.25 * dt**2, 0.5 * dt)
    return seg.elements(), jnp.zeros(3).at[2].set(at.ground.acceleration)


@eqx.filter_jit
def _position_elements(model, dt):
    drive = single_drive()
    y, a = bent_state(model, drive)
    term = PaperTerm(model.chain_term(drive), "newton", 2)
    at, n = term.inner.instant(jnp.asarray(0.1), None), model.layout.n
    mech = term.extended(at, y.mech)
    A, beta = 1 / (0.3 * dt**2), 0.3
    acc = jnp.concatenate([a, jnp.zeros(4 * n)])
    predicted = Mechanical(
        mech.q + dt * mech.v + (0.5 - beta) * dt**2 * acc, mech.v + 0.5 * dt * acc
    )
    small = term.reduced(predicted)
    p = term.inner.point(small, at.ground)
    laws = connection_laws(term.inner, at, p, p, beta * dt**2, 0.5 * dt)
    laws = term._positions(at, laws, small, A)
    th = mech.q[:n]
    el, _ = term._elements(at, laws, predicted, th, None, th, dt * mech.v[:n], A)
    return el, jnp.concatenate([at.ground.point, at.ground.orientation[None]])


def _errors(el, root, kind="riccati"):
    sol = jax.jit(SWEEPS[kind])(el, root)
    e, n = extended_sweep(el, root)
    scale = np.abs(e[:, 2]).max()
    return (
        float(np.abs(np.asarray(sol.e[:, 2]) - e[:, 2]).max() / scale),
        float(np.abs(np.asarray(sol.e[:, :2]) - e[:, :2]).max() / np.abs(e[:, :2]).max()),
        float(np.abs(np.asarray(sol.torque) - n).max() / np.abs(n).max()),
    )


def _model(n):
    return fx.TransferMatrix(segments=n, rotary=False).bind(fx.load_robot("li-zhang-single-link"))


@pytest.mark.parametrize(
    "n, dt",
    [
        (10, 2e-3),
        (60, 2e-5),
        pytest.param(1000, 2e-4, marks=pytest.mark.slow),
        pytest.param(10000, 2e-5, marks=pytest.mark.slow),
        pytest.param(10000, 2e-3, marks=pytest.mark.slow),
    ],
)
def test_digits_of_the_sweep(n, dt, record_number):
    model = _model(n)
    record_number(
        f"acceleration level against extended precision, N = {n}, dt = {dt:g}",
        max(_errors(*_acceleration_elements(model, dt))),
        1e-12,
    )
    angles, positions, torque = _errors(*_position_elements(model, jnp.asarray(dt)))
    record_number(
        f"position form, angles and positions, N = {n}, dt = {dt:g}", max(angles, positions), 1e-11
    )
    record_number(f"position form, torques, N = {n}, dt = {dt:g}", torque, 1e-8)


def test_digits_lost_by_the_product(record_number):
    """Fine at the paper's step, gone at small ones: the reason for the Riccati form."""
    model = _model(60)
    record_number(
        "product at dt = 2e-3",
        _errors(*_position_elements(model, jnp.asarray(2e-3)), "product")[1],
        1e-12,
    )
    record_number(
        "product at dt = 2e-5",
        _errors(*_position_elements(model, jnp.asarray(2e-5)), "product")[1],
        1.0,
        ">",
    )
    record_number(
        "parallel scan at dt = 2e-5",
        _errors(*_position_elements(model, jnp.asarray(2e-5)), "parallel")[1],
        1e-11,
    )


def test_dense_at_physical_numbers(record_number):
    el, root = _acceleration_elements(_model(300), jnp.asarray(2e-4))
    sol = jax.jit(SWEEPS["riccati"])(el, root)
    e, n, _ = dense_solve(el, root)
    pairs = ((sol.e[:, 2], e[:, 2]), (sol.e[:, :2], e[:, :2]), (sol.torque, n))
    gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
    record_number("acceleration level against dense, N = 300", gap, 1e-12)
