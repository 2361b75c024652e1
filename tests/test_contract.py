"""The contract that every formulation keeps: the same rows for every case of
tests/contract_cases.py.

Rows on the quick cases run in `make test`; rows on the full cases, and tables with one line per
parameter, belong to the full report.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from jax.interpreters.partial_eval import dce_jaxpr

import flexjax as fx
from flexjax.formulation import REGISTRY
from flexjax.robot import parameters_hold
from flexjax.simulate import _run
from flexjax.simulate.analysis._gradients import RATIO, extrapolate
from tests.contract_cases import (
    CASES,
    FINE,
    FULL,
    QUICK,
    contract,
    elastic_pair,
    pair_drive,
    pendulum,
)

LEVELS = 4  # steps of the differences along a direction


class Programs:
    """A case with the programs that its rows share; each is compiled when a row first needs it."""

    def __init__(self, name: str):
        self.case = CASES[name]
        self.robot, self.drive = self.case.robot(), self.case.drive()
        # Quick cases have an output at every step, so that one program serves several step sizes.
        self.intervals = self.case.steps if name in QUICK else 2
        self.ts = self.case.dt * self.case.steps * np.linspace(0.0, 1.0, self.intervals + 1)

    def run(self, robot, drive, ts=None, dtype=None):
        return fx.simulate(
            self.case.formulation().bind(robot, dtype=dtype),
            drive,
            self.ts if ts is None else ts,
            substeps=self.case.steps // self.intervals,
            start=self.case.start,
            stations=5,
            throw=False,
        )

    @functools.cached_property
    def base(self):
        """The trajectory of a call outside any transformation; a NaN in any output is an error."""
        with jax.debug_nans(True):
            return self.run(self.robot, self.drive)

    @functools.cached_property
    def parameters(self):
        """(every float of robot and drive in one vector, the size of a change, back to both)."""
        floats, rest = eqx.partition((self.robot, self.drive), eqx.is_inexact_array)
        x, back = ravel_pytree(floats)
        # A zero changes by the size of its neighbours in the same array, or by a tenth.
        size = jax.tree_util.tree_map(
            lambda leaf: jnp.full(leaf.shape, np.max(np.abs(leaf), initial=0.0) or 0.1), floats
        )
        return (
            np.asarray(x),
            np.asarray(ravel_pytree(size)[0]),
            lambda v: eqx.combine(back(v), rest),
        )

    @functools.cached_property
    def paths(self) -> list[str]:
        """A path for every component of the vector of parameters."""
        floats = eqx.filter((self.robot, self.drive), eqx.is_inexact_array)
        return [
            jax.tree_util.keystr(path) + "".join(f"[{k}]" for k in index)
            for path, leaf in jax.tree_util.tree_flatten_with_path(floats)[0]
            for index in np.ndindex(leaf.shape)
        ]

    def outputs(self, x):
        """What a run ends with, as a function of every parameter."""
        traj = self.run(*self.parameters[2](x))
        return jnp.concatenate([jnp.ravel(g) for g in _groups(traj)])

    @functools.cached_property
    def pruned(self):
        """``outputs``, traced once for the rows that transform it, and without the equations of
        what it leaves out (efforts, reactions): half of a run's program."""
        traced = jax.make_jaxpr(self.outputs)(self.parameters[0])
        jaxpr, used = dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=True)
        assert all(used)
        program = jaxpr_as_fun(ClosedJaxpr(jaxpr, traced.consts))
        return lambda x: program(x)[0]

    @functools.cached_property
    def directions(self):
        """Two random directions in the space of parameters. They leave out parameters at the end of
        their range, and positions at an end of their link, which have differences to one side
        only; the table of every parameter has these."""
        x, size, _ = self.parameters
        free = np.random.default_rng(0).normal(size=(2, size.size)) * size
        far = self.case.step * RATIO ** (LEVELS - 1)
        alone = np.eye(size.size) * far * np.max(np.abs(free), axis=0)
        inside = self.in_range(np.concatenate([x + alone, x - alone]))
        ends = [
            path.endswith(".s") and s in (0.0, 1.0) for path, s in zip(self.paths, x, strict=True)
        ]
        return free * np.all(inside.reshape(2, -1), axis=0) * ~np.array(ends)

    def in_range(self, points):
        """Whether every parameter is in its range, for each vector of parameters."""

        def holds(x):
            robot, drive = self.parameters[2](x)
            return parameters_hold(robot) & drive.holds()

        return np.asarray(jax.jit(jax.vmap(holds))(points))

    @functools.cached_property
    def points(self):
        """The case itself, then the points of central differences along the directions."""
        x, _, _ = self.parameters
        steps = [sign * self.case.step * RATIO**k for k in range(LEVELS) for sign in (1, -1)]
        return np.stack([x, *(x + h * v for v in self.directions for h in steps)])

    @functools.cached_property
    def weights(self):
        """Random weights of the outputs, scaled to their size."""
        scale = np.concatenate([np.full(np.size(g), np.max(np.abs(g))) for g in _groups(self.base)])
        return np.random.default_rng(1).normal(size=scale.size) / (scale + 1e-12)

    @functools.cached_property
    def forward(self):
        """(outputs, their derivatives along the directions) by forward mode, compiled."""
        x, _, _ = self.parameters
        program = jax.jit(lambda v: jax.jvp(self.pruned, (x,), (v,)))
        values, slopes = zip(*(program(v) for v in self.directions), strict=True)
        return np.asarray(values[0]), np.stack(slopes)

    @functools.cached_property
    def reverse(self):
        """(outputs, gradients of their weighted sum) at the points by reverse mode, compiled and
        batched."""
        weights = jnp.asarray(self.weights)

        def program(x):
            values, pull = jax.vjp(self.pruned, x)
            return values, *pull(weights)

        return tuple(np.asarray(y) for y in jax.jit(jax.vmap(program))(self.points))


def _groups(traj) -> list:
    """Final outputs that depend on nearly everything. Efforts and reactions need the equations of
    motion once more, which doubles the programs; the table of every parameter includes them."""
    energy = traj.energy
    energies = (energy.kinetic, energy.elastic, energy.gravity, energy.work, energy.dissipated)
    readings = jnp.stack([jnp.ravel(x[-1:])[0] for x in fx.measure(traj).values()])
    return [traj.q[-1], traj.qd[-1], traj.tip[-1], readings, jnp.stack([e[-1] for e in energies])]


@pytest.fixture(
    scope="module",
    params=[*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in FULL)],
)
def programs(request):
    yield Programs(request.param)
    jax.clear_caches()  # six formulations' programs at once take gigabytes


quick = pytest.mark.parametrize("programs", list(QUICK), indirect=True, scope="module")


def named(request) -> str:
    return request.node.callspec.params["programs"]


def float_types(tree) -> set:
    leaves = jax.tree_util.tree_leaves(tree)
    return {str(x.dtype) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)}


def test_a_formulation_without_a_contract_is_an_error(monkeypatch):
    assert set(QUICK) == {f"{name} quick" for name in REGISTRY}
    monkeypatch.setitem(REGISTRY, "Unknown", "flexjax.formulation.unknown.Unknown")
    with pytest.raises(LookupError, match=r"^tests/unknown/contract\.py: missing"):
        contract("Unknown")


@pytest.mark.parametrize("name", CASES)
def test_differences_stay_in_the_range_of_every_parameter(name):
    """Outside it a run ends as invalid_parameter, and its outputs are NaN."""
    programs = Programs(name)
    assert np.all(programs.in_range(programs.points))
    assert np.mean(programs.directions != 0) > 0.8


def test_runs_and_keeps_its_dtype(programs):
    """A healthy run has no NaN: the failure time of a run that did not fail is infinite."""
    assert int(programs.base.status) == 0 and float(programs.base.t_fail) == np.inf
    assert np.isfinite(np.asarray(programs.base.tip)).all()
    assert float_types(programs.base) == {"float64"}


def test_energy_balance(programs, request, record_number):
    energy = programs.base.energy
    parts = (energy.kinetic, energy.elastic, energy.gravity, energy.work)
    scale = max(float(np.max(np.abs(np.asarray(x)))) for x in parts)
    error = np.max(np.abs(np.asarray(energy.balance) - energy.balance[0])) / scale
    record_number(f"{named(request)}: energy balance, relative", error, programs.case.balance)


def test_one_trace_for_changed_numbers(programs):
    assert int(programs.base.status) == 0
    before = _run._integrate._outside._cached._cache_size()
    changed = programs.robot.replace("gravity", [0.25, -9.0, 0.125])
    programs.run(changed, programs.drive)
    programs.run(jax.tree_util.tree_map(lambda x: x * 1.0, changed), programs.drive)
    assert _run._integrate._outside._cached._cache_size() == before


@quick
def test_order(programs, request, record_number):
    """Steps of 0.25, 0.5 and 1 ms to the same time, by the program of the other rows. The links are
    damped: these steps do not resolve the modes that the weight excites at the start."""
    n = programs.case.steps
    ts = 2.5e-4 * np.arange(n + 1)
    ends = [programs.run(programs.robot, programs.drive, k * ts).tip[n // k] for k in (1, 2, 4)]
    order = np.log2(np.linalg.norm(ends[1] - ends[2]) / np.linalg.norm(ends[0] - ends[1]))
    record_number(f"{named(request)}: order of the default solver", order, (1.85, 2.15), "in")


def test_jit_equals_direct(programs):
    compiled, _ = programs.forward
    direct = programs.outputs(programs.parameters[0])
    np.testing.assert_allclose(compiled, direct, rtol=1e-9, atol=1e-9)


def test_vmap_equals_loop(programs):
    values, _ = programs.reverse
    for k in (0, 1, len(values) - 1):
        direct = programs.outputs(programs.points[k])
        np.testing.assert_allclose(values[k], direct, rtol=1e-9, atol=1e-9)


def test_gradient_along_random_directions(programs, request, record_number):
    """<w, J v> by forward mode, reverse mode and differences; v and w are random, so that every
    parameter and every output takes part."""
    _, slopes = programs.forward
    values, gradients = programs.reverse
    assert np.all(np.isfinite(gradients)) and np.all(np.isfinite(slopes))
    steps = programs.case.step * RATIO ** np.arange(LEVELS)
    around = (values[1:] @ programs.weights).reshape(-1, LEVELS, 2)
    finite = [extrapolate(list((pair[:, 0] - pair[:, 1]) / (2 * steps)))[0] for pair in around]
    reverse, forward = programs.directions @ gradients[0], slopes @ programs.weights
    size = np.linalg.norm(gradients[0] * programs.directions, axis=1)
    name = f"{named(request)}: gradient along random directions, reverse ="
    record_number(f"{name} forward", np.max(np.abs(reverse - forward) / size), 1e-9)
    record_number(
        f"{name} differences", np.max(np.abs(reverse - finite) / size), programs.case.gradient
    )


@quick
def test_no_gradient_is_zero_without_a_reason(programs):
    _, gradients = programs.reverse
    zero = [path for path, g in zip(programs.paths, gradients[0], strict=True) if g == 0]
    assert not unexplained(zero, programs.case)


def unexplained(zero: list[str], case) -> list[str]:
    """Paths of ``(robot, drive)`` without an entry in the case's ``zero``."""
    reasoned = tuple(
        f"[1].{path[6:]}" if path.startswith("drive.") else f"[0].{path}" for path in case.zero
    )
    return [path for path in zero if not path.startswith(reasoned)]


@quick
def test_single_precision_stays_single(programs):
    """The types follow from the trace; the values are in the full report."""

    def run(floats):
        robot, drive = programs.parameters[2](floats)
        return programs.run(robot, drive, dtype=jnp.float32)

    assert float_types(jax.eval_shape(run, programs.parameters[0])) == {"float32"}


@pytest.mark.slow
@pytest.mark.parametrize("programs", CASES, indirect=True, scope="module")
def test_single_precision_follows_double(programs):
    traj = programs.run(programs.robot, programs.drive, dtype=jnp.float32)
    assert float_types(traj) == {"float32"}
    assert int(traj.status) == 0
    np.testing.assert_allclose(np.asarray(traj.tip), np.asarray(programs.base.tip), atol=2e-3)


def loss(programs, robot, drive):
    """A number that feels everything: tip, efforts, reactions, sensors, energies."""
    traj = programs.run(robot, drive)
    end = (
        jnp.sum(traj.tip[-1] * jnp.array([1.0, 2.0, 3.0]))
        + 0.01 * jnp.sum(traj.effort[-1])
        + 1e-3 * jnp.sum(traj.reaction[-1])
    )
    energy = traj.energy.work[-1] + 2.0 * traj.energy.dissipated[-1] + 0.5 * traj.energy.elastic[-1]
    readings = sum(jnp.sum(x[-1:]) for x in fx.measure(traj).values())
    return end + 0.1 * energy + 0.01 * readings


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_gradients_forward_reverse_differences(name, record_number):
    """The same for every parameter by itself."""
    programs = Programs(name)
    case = programs.case
    table = fx.check_gradients(
        functools.partial(loss, programs), (programs.robot, programs.drive), step=case.step
    )
    print(table)
    assert np.all(np.isfinite(table.reverse)) and np.all(np.isfinite(table.forward))
    assert not unexplained(table.zero, case)
    record_number(
        f"{name}: gradients, forward = reverse = differences, relative", table.worst, case.gradient
    )


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
@pytest.mark.parametrize("name", [name for name, case in FULL.items() if case.rigid is not None])
def test_rigid_limit(name, record_number):
    """Links many times as stiff move as the rigid arm does."""
    programs = Programs(name)
    case = programs.case
    methods = (
        (case.formulation(), stiffer(programs.robot, case.stiffer)),
        (fx.RigidArm(), case.rigid_robot(programs.robot)),
    )
    options = {"dt": case.dt / case.finer, "start": case.start, "stations": 5, "throw": False}
    stiff, rigid = (
        fx.simulate(m.bind(r), programs.drive, programs.ts, **options) for m, r in methods
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
    """On a smooth motion: springs, dampers and controllers without stops, friction or breaks. Links
    are damped: the weight comes suddenly and rings modes that these steps do not resolve, where no
    order shows."""
    robot, drive = elastic_pair(), fx.Drive(joints={"elbow": fx.PD(3.0, 0.1, fx.constant(0.6))})
    if FULL[name].formulation().refusals(robot):
        robot, drive = pendulum(fx.Damping(strain_rate=2e-3)), None
    model = FULL[name].formulation().bind(robot)
    ends = [
        fx.simulate(model, drive, jnp.array([0.0, 0.2]), substeps=n, stations=2).tip[-1]
        for n in (200, 400, 800)
    ]
    order = np.log2(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2]))
    record_number(f"{name}: order of the default solver", order, (1.85, 2.15), "in")


@pytest.mark.slow
def test_formulations_agree_on_shared_robots(record_number):
    """The difference between formulations that support a robot, relative to what bending
    changes."""
    drives = (fx.Drive(joints={"root": fx.Motion(fx.quintic(0.0, 0.3, 0.4))}), pair_drive())
    for robot, drive in zip((pendulum(), elastic_pair()), drives, strict=True):
        supporting = {n: make() for n, make in FINE.items() if not make().refusals(robot)}
        table = fx.compare(
            robot,
            drive,
            jnp.linspace(0.0, 0.3, 13),
            formulations=supporting,
            n_modes=2,
            dt=5e-4,
            stations=2,
        )
        print(table)
        rows = {row.name: row for row in table.rows}
        assert set(rows) == set(supporting) and len(rows) >= len(REGISTRY) - 1
        elastic = {n: row for n, row in rows.items() if QUICK[f"{n} quick"].rigid is not None}
        frequencies = np.array([row.frequencies for row in elastic.values()])
        record_number(
            f"{robot.name}: spread of frequencies",
            np.max(np.ptp(frequencies, axis=0) / np.mean(frequencies, axis=0)),
            0.01,
        )
        for n, row in elastic.items():
            record_number(
                f"{robot.name}: {n}, tip from the reference, relative to bending",
                row.tip / rows[fx.RigidArm.__name__].tip,
                0.02,
            )
