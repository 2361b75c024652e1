"""The fixed-grid time loop: one scan over the public ``init`` and ``step`` of diffrax solvers.

Unlike ``diffeqsolve`` it differentiates in forward and reverse mode by default, and its reverse
mode recomputes nothing that rounds differently.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from flexjax._results import Status
from flexjax._rules import moving
from flexjax._types import ScalarLike
from flexjax.drive import Drive, Sampled
from flexjax.drive.signal import separate
from flexjax.formulation import AbstractModel
from flexjax.numerics.solver import AbstractStepSolver
from flexjax.numerics.term import AbstractTerm, State
from flexjax.simulate.loop._grid import TimeGrid, time_grid
from flexjax.simulate.loop._jump import after_jump, rates_jump


class RunState(eqx.Module):
    """What the time loop carries. The first failure freezes it: a run of a batch that failed does
    not disturb the others. ``where`` is the index of the joint concerned, or -1. ``before``: where
    rates may jump, the state before an impulse at its time."""

    y: State
    solver_state: object
    status: Int[Array, ""]
    t_fail: Float[Array, ""]
    where: Int[Array, ""]
    steps: Int[Array, ""]
    before: State | None = None

    @property
    def end(self) -> State:
        """The state from which another run goes on."""
        return self.y if self.before is None else self.before


def without_solver(run: RunState) -> RunState:
    """How a run ended, without what only another step would need."""
    return dataclasses.replace(run, solver_state=None)


def _choose(pick: Bool[Array, ""], a: PyTree, b: PyTree) -> PyTree:
    return jtu.tree_map(lambda x, y: jnp.where(pick, x, y), a, b)


def _derivative_of(new: PyTree, old: PyTree) -> PyTree:
    """The value of ``old`` with the derivative of ``new``."""
    return jtu.tree_map(lambda x, y: lax.stop_gradient(y) + (x - lax.stop_gradient(x)), new, old)


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every number of the tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(tree)]))


class Prepared(eqx.Module):
    """A run before its first step: its rows of steps, and the drive with a place for each break.

    ``first``: the state at the first output. ``pieces``: a time in the piece of the signals before
    each output.
    """

    drive: Drive
    grid: TimeGrid
    run: RunState
    first: State
    pieces: Float[Array, " T"]

    @property
    def broken(self) -> bool:
        return self.drive.breaks().shape[0] > 0


def prepare(
    model: AbstractModel,
    drive: Drive,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, " T"],
    substeps: int,
    y0: State,
    holds: Bool[Array, ""] | bool = True,
    resumed: bool = False,
) -> Prepared:
    """What :func:`march` and :func:`advance` start from.

    ``holds``: whether the parameters are in their ranges; otherwise the run fails before its first
    step. ``resumed``: the start is the end of another run, and has the rates before a break at its
    time.
    """
    drive, stagger = separate(drive, jnp.max(jnp.abs(ts)))
    broken = drive.breaks().shape[0] > 0
    grid = time_grid(ts, substeps, drive.breaks(), stagger)
    jumping = rates_jump(drive)
    if jumping and not resumed:
        begun = jnp.where(grid.t0 > ts[0], grid.before, grid.piece)
        grid = eqx.tree_at(lambda g: g.before, grid, begun)
    run = _begin(model.term(drive), solver, ts, substeps, y0, grid.piece[0], holds)
    if jumping:
        run = eqx.tree_at(lambda r: r.before, run, run.y, is_leaf=lambda x: x is None)
    if jumping and resumed:
        # The first output, like all others, is behind a break at its time.
        after = grid.piece[jnp.argmax(grid.t1 > grid.t0)]
        impulse = lambda: after_jump(model, drive, ts[0], run.y, grid.piece[0], after)
        y0 = lax.cond(grid.tie[0], impulse, lambda: run.y)
    pieces = ts
    if broken:
        last = jnp.zeros(ts.shape, ts.dtype).at[grid.slot].set(grid.piece)[:-1]
        pieces = jnp.concatenate([ts[:1], last])
    return Prepared(drive, grid, run, y0, pieces)


def march(
    model: AbstractModel,
    drive: Drive,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, " T"],
    substeps: int,
    y0: State,
    *,
    checkpoint: bool,
    intervals: Int[Array, ""] | None = None,
    holds: Bool[Array, ""] | bool = True,
    resumed: bool = False,
) -> tuple[State, Float[Array, " T"], RunState]:
    """States at ``ts`` (stacked), a time in the piece of the signals before each, and the end.

    ``checkpoint``: reverse mode recomputes chunks of steps instead of storing every one.
    ``intervals``: a traced number of output intervals after which the run ends (with breaks of the
    drive: in forward mode only). ``holds``, ``resumed``: see :func:`prepare`.
    """
    made = prepare(model, drive, solver, ts, substeps, y0, holds, resumed)
    run, grid = made.run, made.grid
    spare = made.broken or intervals is not None or checkpoint
    step = _stepper(model, made.drive, solver, ts, substeps, spare)
    if checkpoint or made.broken:
        run, ys = _into_slots(step, run, grid, ts.shape[0], checkpoint, intervals)
    elif intervals is None:
        run, ys = _even(step, run, grid, substeps)
    else:
        run, ys = _early(step, run, grid, substeps, intervals)
    return outputs(made.first, ys), made.pieces, run


def outputs(first: State, ys: State) -> State:
    """The states at all outputs, the first included."""
    return jtu.tree_map(lambda a, b: jnp.concatenate([a[None], b]), first, ys)


def advance(
    model: AbstractModel,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, " T"],
    substeps: int,
    made: Prepared,
    carry: tuple[RunState, State],
    begin: Int[Array, ""],
    end: Int[Array, ""],
) -> tuple[RunState, State]:
    """The run after the rows from ``begin`` to ``end``, and its outputs so far (:func:`slots`).

    For runs that are advanced from outside, without derivatives. The steps are those of
    :func:`march`.
    """
    one = _storing(_stepper(model, made.drive, solver, ts, substeps, made.broken))
    row = lambda k: jtu.tree_map(lambda x: x[k], made.grid)
    return lax.fori_loop(begin, end, lambda k, carry: one(carry, row(k))[0], carry)


def advance_interval(
    model: AbstractModel,
    drive: Drive,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, "2"],
    substeps: int,
    run: RunState,
    *,
    new_efforts: bool,
    resumed: Bool[Array, ""],
) -> tuple[RunState, Drive, Float[Array, ""]]:
    """The run after one interval; the drive with a place for each break, and a time in the piece of
    the signals before the end.

    ``new_efforts``: efforts may jump where the interval begins. ``resumed``: the run has the rates
    before a break at that time. The steps are those of :func:`march`.
    """
    drive, stagger = separate(drive, jnp.max(jnp.abs(ts)))
    broken = drive.breaks().shape[0] > 0
    grid = time_grid(ts, substeps, drive.breaks(), stagger)
    if rates_jump(drive):
        begun = jnp.where(resumed | (grid.t0 > ts[0]), grid.before, grid.piece)
        grid = eqx.tree_at(lambda g: g.before, grid, begun)
    if new_efforts:
        grid = eqx.tree_at(lambda g: g.jump, grid, grid.jump.at[0].set(True))
    step = _stepper(model, drive, solver, ts, substeps, broken, new_efforts)
    run, _ = lax.scan(lambda run, row: (step(run, row), None), run, grid)
    piece = ts[1]
    if broken:
        piece = jnp.zeros(2, ts.dtype).at[grid.slot].set(grid.piece)[0]
    return run, drive, piece


def slots(y: State, count: int) -> State:
    """Places for ``count`` outputs: the last takes what is no output."""
    return jtu.tree_map(lambda x: jnp.zeros((count, *jnp.shape(x)), jnp.result_type(x)), y)


def rows_until(grid: TimeGrid, intervals: Int[Array, ""]) -> Int[Array, ""]:
    """The number of rows in the first ``intervals`` output intervals."""
    return jnp.max(jnp.where(grid.slot < intervals, jnp.arange(1, grid.slot.shape[0] + 1), 0))


def _begin(
    term: AbstractTerm,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, " T"],
    substeps: int,
    y0: State,
    piece_time: Float[Array, ""],
    holds: Bool[Array, ""] | bool,
) -> RunState:
    solver_state = solver.init(term, ts[0], ts[0] + (ts[1] - ts[0]) / substeps, y0, piece_time)
    zero = jnp.zeros((), jnp.int32)
    status = jnp.where(holds, zero, int(Status.invalid_parameter)).astype(jnp.int32)
    t_fail = jnp.where(holds, jnp.asarray(jnp.inf, ts.dtype), ts[0])
    return _strong(RunState(moving(y0, term), solver_state, status, t_fail, zero - 1, zero))


def _stepper(
    model: AbstractModel,
    drive: Drive,
    solver: diffrax.AbstractSolver,
    ts: Float[Array, " T"],
    substeps: int,
    spare: bool,
    new_efforts: bool = False,
) -> Callable[[RunState, TimeGrid], RunState]:
    """The function that advances a run by one row of the grid; ``spare``: some have no length.
    ``new_efforts``: efforts jump on the rows that say so, also without a break of the drive."""
    term, broken, jumping = model.term(drive), drive.breaks().shape[0] > 0, rates_jump(drive)
    nominal = (ts[-1] - ts[0]) / ((ts.shape[0] - 1) * substeps)
    # Long enough to be computed with, and too short to change anything.
    moment = jnp.maximum(1e-9 * nominal, 1e3 * jnp.finfo(ts.dtype).eps * jnp.max(jnp.abs(ts)))

    def using(running: Bool[Array, ""]) -> dict[str, Any]:
        return {"running": running} if isinstance(solver, AbstractStepSolver) else {}

    def step(run: RunState, row: TimeGrid) -> RunState:
        # A step of no length, and every step after a failure, is computed and discarded: a branch
        # around it would double what is to be compiled. Its iterations end at once, so that a
        # batch does not wait for them.
        t0, t1, going = row.t0, row.t1, run.status == 0
        running = going
        if spare:
            going = going & (t1 > t0)
            running = running & ((t1 > t0) | row.tie)
            t1 = jnp.where(row.tie, t1 + moment, jnp.where(t1 > t0, t1, t0 + nominal))
        memory = run.y.memory
        if memory:
            memory = term.next_memory(t0, t1, run.y, _strains(model, drive, t0, run.y, row.piece))
        y = State(run.y.mech, run.y.work, run.y.dissipated, memory)
        jump = row.jump if broken or new_efforts else False
        if jumping:
            y = lax.cond(
                row.jump,
                lambda: after_jump(model, drive, t0, y, row.before, row.piece),
                lambda: y,
            )
        y1, _, _, solver_state, result = solver.step(
            term, t0, t1, y, row.piece, run.solver_state, jump, **using(running)
        )
        code, where = _failure(model, drive, t1, y1, result)
        good, bad = going & (code == 0), going & (code != 0)
        # A failed step leaves the run at its last good state; the bad one must not enter the
        # derivative.
        stay = run.y
        if broken:
            stay = _choose(running & row.tie & (code == 0), _derivative_of(y1, y), stay)
        return RunState(
            _choose(good, y1, stay),
            _choose(good, solver_state, run.solver_state),
            jnp.where(going, code, run.status),
            jnp.where(bad, t1, run.t_fail),
            jnp.where(bad, where, run.where),
            run.steps + going,
            _choose(good, y1, run.before) if jumping else None,
        )

    return step


def _strains(
    model: AbstractModel, drive: Drive, t: ScalarLike, y: State, piece_time: Float[Array, ""]
) -> dict[str, Float[Array, "k 6"]]:
    """Strains at the gauges of sampled controllers, by name of the joint."""
    found = {}
    for name, act in drive.joints.items():
        if isinstance(act, Sampled) and act.gauges:
            links = np.array([model.robot.link_index(link) for link, _ in act.gauges])
            s = jnp.asarray([s for _, s in act.gauges], model.robot.gravity.dtype)
            all_strains = model.outputs(t, y, drive, s, piece_time, frozenset({"strain"}))
            found[name] = all_strains["strain"][links, np.arange(len(links))]
    return found


def _failure(
    model: AbstractModel, drive: Drive, t: ScalarLike, y: State, result: diffrax.RESULTS
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """(status of a step, index of the joint concerned or -1)."""
    newton = jnp.where(
        result == diffrax.RESULTS.successful, int(Status.ok), int(Status.newton_failed)
    )
    code, where = model.failure(t, y, drive)
    finite = all_finite(y)
    status = jnp.where(finite, jnp.where(newton != 0, newton, code), int(Status.non_finite))
    return status.astype(jnp.int32), jnp.where((newton == 0) & finite, where, -1)


def _storing(step: Callable[[RunState, TimeGrid], RunState]):
    """``step`` for a carry of the run and its outputs."""

    def one(carry, row: TimeGrid):
        run, ys = carry
        run = step(run, row)
        return (run, jtu.tree_map(lambda all, x: all.at[row.slot].set(x), ys, run.y)), None

    return one


def _into_slots(
    step: Callable[[RunState, TimeGrid], RunState],
    run: RunState,
    grid: TimeGrid,
    outputs: int,
    checkpoint: bool,
    intervals: Int[Array, ""] | None,
) -> tuple[RunState, State]:
    """The end of a run and its states at the outputs, which travel in the carry."""
    one = _storing(step)
    carry = (run, slots(run.y, outputs))
    if intervals is not None:
        # A loop that ends when its number of steps, known only when it runs, is reached.
        count = rows_until(grid, intervals)
        row = lambda k: jtu.tree_map(lambda x: x[k], grid)
        run, ys = lax.fori_loop(0, count, lambda k, carry: one(carry, row(k))[0], carry)
    elif checkpoint:
        chunk = jax.checkpoint(lambda carry, rows: lax.scan(one, carry, rows))
        (run, ys), _ = lax.scan(chunk, carry, _chunks(grid, outputs))
    else:
        (run, ys), _ = lax.scan(one, carry, grid)
    return run, jtu.tree_map(lambda x: x[:-1], ys)


def _even(
    step: Callable[[RunState, TimeGrid], RunState], run: RunState, grid: TimeGrid, substeps: int
):
    """Without breaks outputs are evenly spaced among the steps, and the scan itself stacks them.
    Reverse mode through outputs in the carry costs a fifth more."""

    def advance(run, row):
        return step(run, row), None

    def interval(run, rows):
        run = advance(run, rows)[0] if substeps == 1 else lax.scan(advance, run, rows)[0]
        return run, run.y

    if substeps > 1:
        grid = jtu.tree_map(lambda x: x.reshape(-1, substeps), grid)
    return lax.scan(interval, run, grid)


BLOCKS = 32


def _early(
    step: Callable[[RunState, TimeGrid], RunState],
    run: RunState,
    grid: TimeGrid,
    substeps: int,
    intervals: Int[Array, ""],
):
    """``_even`` in blocks; the blocks after the given number of intervals are skipped."""
    count = grid.t0.shape[0] // substeps
    size = -(-count // BLOCKS)
    blocks = -(-count // size)
    # Steps of no length fill the last block.
    missing = (blocks * size - count) * substeps
    grid = jtu.tree_map(
        lambda x: jnp.concatenate([x, jnp.broadcast_to(x[-1:], (missing,))]),
        eqx.tree_at(lambda g: g.slot, grid, grid.t1),
    )
    grid = eqx.tree_at(
        lambda g: g.t0,
        grid,
        jnp.where(jnp.arange(blocks * size * substeps) < count * substeps, grid.t0, grid.t1),
    )
    rows = jtu.tree_map(lambda x: x.reshape(blocks, size * substeps), grid)

    def march(run, rows):
        return _even(step, run, rows, substeps)

    def skip(run, rows):
        return run, jtu.tree_map(lambda x: jnp.zeros((size, *x.shape), x.dtype), run.y)

    def block(run, row):
        k, rows = row
        return lax.cond(k * size < intervals, march, skip, run, rows)

    run, ys = lax.scan(block, run, (jnp.arange(blocks), rows))
    return run, jtu.tree_map(lambda x: x.reshape(-1, *x.shape[2:])[:count], ys)


def _chunks(grid: TimeGrid, outputs: int) -> TimeGrid:
    """The rows in chunks, so many that storing their starts (with all outputs each) costs about as
    much as storing the steps of one."""
    count = grid.t0.shape[0]
    chunks = max(1, round((20 * count / outputs) ** 0.5))
    size = -(-count // chunks)
    missing = size * chunks - count
    end = grid.t1[-1]
    no = jnp.asarray(False)
    spare = TimeGrid(end, end, end, end, no, no, jnp.asarray(outputs - 1))
    filled = jtu.tree_map(
        lambda x, fill: jnp.concatenate([x, jnp.full(missing, fill, x.dtype)]), grid, spare
    )
    return jtu.tree_map(lambda x: x.reshape(chunks, size), filled)


def _strong(tree: PyTree) -> PyTree:
    """Weak types would change between the first and the second step of a scan."""
    return jtu.tree_map(lambda x: lax.convert_element_type(x, jnp.asarray(x).dtype), tree)
