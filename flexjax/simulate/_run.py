"""The compiled part of `simulate` on the fixed grid."""

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float

from flexjax._compile import filter_jit
from flexjax.drive import Drive
from flexjax.drive.signal import prepare as prepare_signals
from flexjax.formulation import Start
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._assemble import Marched, assemble
from flexjax.simulate._start import first_state
from flexjax.simulate.loop._march import march, without_solver
from flexjax.simulate.loop._range import guarded, increasing
from flexjax.simulate.trajectory import Trajectory

# Bytes of stored steps, of all runs of a batch, above which reverse mode recomputes each output
# interval instead of storing it (1.2x against 2.3x the forward time).
STORE_LIMIT = 2e9


def run_on_grid(run: Run) -> Trajectory:
    """The trajectory of a run on the fixed grid."""
    return assemble(run, _integrate(run))


@filter_jit
def _integrate(run: Run) -> Marched:
    assert run.substeps is not None  # simulate always sets them here
    holds, drive, start, ts = checked_inputs(run)
    y0 = first_state(run.model, drive, ts[0], start)
    size = run.batch * sum(x.size * x.dtype.itemsize for x in jtu.tree_leaves(y0))
    ys, pieces, end = march(
        run.model,
        drive,
        run.solver,
        ts,
        run.substeps,
        y0,
        checkpoint=20 * size * (run.ts.shape[0] - 1) * run.substeps > STORE_LIMIT,
        intervals=run.intervals,
        holds=holds,
        resumed=isinstance(start, State),
    )
    return Marched(drive, ys, pieces, without_solver(end), longest_step(run))


def checked_inputs(
    run: Run,
) -> tuple[Bool[Array, ""], Drive, Start | State, Float[Array, " T"]]:
    """Whether parameters and times are in range; then drive, start and times to compute with."""
    holds, drive, start = guarded(run.model, run.drive, run.start)
    in_order, ts = increasing(run.ts)
    return holds & in_order, prepare_signals(drive), start, ts


def longest_step(run: Run) -> Float[Array, ""]:
    assert run.substeps is not None
    return jnp.max(jnp.diff(run.ts)) / run.substeps
