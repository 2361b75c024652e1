"""Runs whose steps a diffrax controller chooses."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from flexjax._compile import filter_jit
from flexjax._results import Status
from flexjax.drive.signal import prepare as prepare_signals, separate
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._assemble import Marched, assemble, choose_rows
from flexjax.simulate._start import first_state
from flexjax.simulate.loop._controller import stopping_at
from flexjax.simulate.loop._jump import AfterJumps, rates_jump
from flexjax.simulate.loop._march import RunState, all_finite
from flexjax.simulate.loop._range import guarded, increasing
from flexjax.simulate.trajectory import Trajectory


def run_adaptive(
    run: Run,
    dt: float,
    controller: diffrax.AbstractStepSizeController,
    adjoint: diffrax.AbstractAdjoint,
    max_steps: int,
) -> Trajectory:
    """The trajectory of an adaptive run; ``dt`` is its first step."""
    return assemble(run, _integrate(run, dt, controller, adjoint, max_steps))


@functools.partial(filter_jit, keep=False)  # diffrax reports some errors by a callback
def _integrate(
    run: Run,
    dt: float,
    controller: diffrax.AbstractStepSizeController,
    adjoint: diffrax.AbstractAdjoint,
    max_steps: int,
) -> Marched:
    holds, given, start = guarded(run.model, run.drive, run.start)
    in_order, ts = increasing(run.ts)
    drive = given = prepare_signals(given)
    # StepTo has all its steps: it takes no first one, and the user puts the breaks among them.
    fixed = isinstance(controller, diffrax.StepTo)
    if not fixed:
        # Far enough apart for a step between two breaks at the same time.
        drive, _ = separate(drive, 2.0**16 * jnp.max(jnp.abs(ts)))
    y0 = first_state(run.model, drive, ts[0], start)
    breaks = drive.breaks()
    if breaks.shape[0] and not fixed:
        controller = stopping_at(controller, breaks)
    solver = run.solver
    if rates_jump(drive):
        begin = jnp.asarray(-jnp.inf if isinstance(start, State) else ts[0], ts.dtype)
        solver = AfterJumps(run.solver, run.model, drive, begin, jnp.max(jnp.abs(ts)))
    solution = diffrax.diffeqsolve(
        run.model.term(drive),
        solver,
        ts[0],
        ts[-1],
        None if fixed else jnp.asarray(dt, ts.dtype),
        y0,
        None,
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
    )
    ys, end = _outcome(run, solution, holds & in_order)
    if isinstance(solver, AfterJumps):
        # Steps end before a break, and the last output is behind one at its time.
        shown = solver.begun(ts[-1], end.y)[0]
        ys = jtu.tree_map(lambda x, last: x.at[-1].set(last), ys, shown)
    mean = (ts[-1] - ts[0]) / jnp.maximum(end.steps, 1)
    return Marched(given, ys, run.ts, end, mean)


def _outcome(run: Run, solution: diffrax.Solution, holds: jax.Array):
    """States that are finite everywhere, and how the run ended."""
    ts, ys, results = run.ts, solution.ys, diffrax.RESULTS
    finite = jax.vmap(all_finite)(ys)
    reached = jnp.where(jnp.all(finite), ts[-1], ts[jnp.maximum(jnp.argmin(finite) - 1, 0)])
    failed = jnp.where(
        solution.result == results.max_steps_reached,
        int(Status.max_steps),
        jnp.where(solution.result == results.successful, 0, int(Status.newton_failed)),
    )
    status = jnp.where((failed == 0) & ~jnp.all(finite), int(Status.non_finite), failed)
    status = jnp.where(holds, status, int(Status.invalid_parameter)).astype(jnp.int32)
    reached = jnp.where(holds, reached, ts[0])
    # Outputs that were not reached take the last state before them; the trajectory has NaN there.
    last = jnp.maximum(jnp.sum(finite) - 1, 0)
    ys = choose_rows(finite, ys, jtu.tree_map(lambda x: x[last][None], ys))
    final = jtu.tree_map(lambda x: x[-1], ys)
    t_fail = jnp.where(status == 0, jnp.inf, reached)
    steps = solution.stats["num_steps"].astype(jnp.int32)
    return ys, RunState(final, None, status, t_fail, jnp.asarray(-1, jnp.int32), steps)
