"""The compiled part of `simulate` on the fixed grid."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array

from flexjax._compile import filter_jit
from flexjax._phases import phases
from flexjax.drive.signal import prepare as prepare_signals
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._assemble import assemble
from flexjax.simulate._march import march
from flexjax.simulate._range import guarded, increasing
from flexjax.simulate._start import first_state
from flexjax.simulate.trajectory import Trajectory

# Bytes of stored steps above which reverse mode recomputes each output interval instead of storing
# it (1.2x against 2.3x the forward time).
STORE_LIMIT = 2e9


def run_on_grid(run: Run, progress: bool) -> Trajectory:
    """The trajectory of a run on the fixed grid, with a progress bar or without."""
    if progress:
        return _run_with_bar(run)
    return _integrate(run)


@filter_jit
def _integrate(run: Run, report: Callable[[Array, int], None] | None = None) -> Trajectory:
    assert run.substeps is not None  # simulate always sets them here
    holds, drive, start = guarded(run.model, run.drive, run.start)
    in_order, ts = increasing(run.ts)
    drive = prepare_signals(drive)
    y0 = first_state(run.model, drive, ts[0], start)
    size = sum(x.size * x.dtype.itemsize for x in jtu.tree_leaves(y0))
    marched = march(
        run.model,
        drive,
        run.solver,
        ts,
        run.substeps,
        y0,
        checkpoint=20 * size * (run.ts.shape[0] - 1) * run.substeps > STORE_LIMIT,
        report=report,
        intervals=run.intervals,
        holds=holds & in_order,
        resumed=isinstance(start, State),
    )
    return assemble(run, drive, *marched, jnp.max(jnp.diff(run.ts)) / run.substeps)


def _run_with_bar(run: Run) -> Trajectory:
    from tqdm.auto import tqdm

    name = run.model.robot.name
    with tqdm(total=run.ts.shape[0] - 1, unit="output", desc=f"{name}: tracing") as bar:

        def describe(phase: str) -> None:
            bar.set_description(f"{name}: {phase}")

        def advance(k):
            if bar.n == 0:
                bar.unpause()  # the rate is that of the run, without compilation
            bar.update(int(k) + 1 - bar.n)

        def report(k, outputs):
            jax.lax.cond(k < outputs, lambda: jax.debug.callback(advance, k), lambda: None)

        with phases(describe):
            traj = _integrate(run, report)
            jax.block_until_ready(traj.ts)
        describe("finished")
        bar.update(bar.total - bar.n)
    return traj
