"""A run with a progress bar: the same steps, in parts that Python starts one after another.

No program calls back into Python, so all of them can be kept on disk.
"""

import time

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Int

from flexjax._compile import filter_jit
from flexjax._phases import phases
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._assemble import Marched, assemble
from flexjax.simulate._run import checked_inputs, longest_step
from flexjax.simulate._start import first_state
from flexjax.simulate.loop._march import (
    Prepared,
    RunState,
    advance,
    outputs,
    prepare,
    rows_until,
    slots,
    without_solver,
)
from flexjax.simulate.trajectory import Trajectory

PART = 0.1  # seconds that a part takes, about


def run_with_bar(run: Run) -> Trajectory:
    """The trajectory of a run on the fixed grid, with phases, rate and remaining time on stderr."""
    from tqdm.auto import tqdm

    name = run.model.robot.name
    with tqdm(unit="step", desc=f"{name}: tracing") as bar:

        def describe(phase: str) -> None:
            bar.set_description(f"{name}: {phase}")

        with phases(describe):
            made, carry, count = _begin(run)
            bar.reset(total=int(count))
            describe("tracing")
            done, size = 0, 1
            while done < bar.total:
                begin, end = time.perf_counter(), min(done + size, bar.total)
                carry = _advance(run, made, carry, jnp.asarray(done), jnp.asarray(end))
                jax.block_until_ready(carry)
                if done == 0:
                    bar.unpause()  # the rate is that of the run, without compilation
                else:
                    spent = time.perf_counter() - begin
                    size = max(1, min(10 * size, round(size * PART / max(spent, 1e-9))))
                bar.update(end - done)
                done = end
            marched = jax.block_until_ready(_finish(run, made, carry))
        describe("finished")
    return assemble(run, marched)


@filter_jit
def _begin(run: Run) -> tuple[Prepared, tuple[RunState, State], Int[Array, ""]]:
    """The run before its first step, its empty outputs, and its number of rows."""
    assert run.substeps is not None  # simulate always sets them here
    holds, drive, start, ts = checked_inputs(run)
    y0 = first_state(run.model, drive, ts[0], start)
    resumed = isinstance(start, State)
    made = prepare(run.model, drive, run.solver, ts, run.substeps, y0, holds, resumed)
    last = jnp.asarray(ts.shape[0] - 1) if run.intervals is None else run.intervals
    return made, (made.run, slots(made.run.y, ts.shape[0])), rows_until(made.grid, last)


@filter_jit
def _advance(
    run: Run,
    made: Prepared,
    carry: tuple[RunState, State],
    begin: Int[Array, ""],
    end: Int[Array, ""],
) -> tuple[RunState, State]:
    assert run.substeps is not None
    *_, ts = checked_inputs(run)
    return advance(run.model, run.solver, ts, run.substeps, made, carry, begin, end)


@filter_jit
def _finish(run: Run, made: Prepared, carry: tuple[RunState, State]) -> Marched:
    _, drive, _, _ = checked_inputs(run)
    end, ys = carry
    ys = outputs(made.first, jtu.tree_map(lambda x: x[:-1], ys))
    return Marched(drive, ys, made.pieces, without_solver(end), longest_step(run))
