"""The fixed-grid time loop: a two-level scan (outputs, steps) over the public ``init`` and ``step`` of diffrax solvers.

Unlike ``diffeqsolve`` it differentiates in forward and reverse mode by default, and its reverse mode recomputes nothing that rounds differently.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax

from flexjax._results import Status
from flexjax.simulate._grid import interval_grid
from flexjax.term import State


class Lane(eqx.Module):
    """What travels through the march."""

    y: State
    solver_state: object
    status: jax.Array
    t_fail: jax.Array
    where: jax.Array
    steps: jax.Array


def _choose(pick, a, b):
    return jtu.tree_map(lambda x, y: jnp.where(pick, x, y), a, b)


def _finite(tree):
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jtu.tree_leaves(tree)]))


def march(model, drive, solver, ts, substeps: int, y0: State, *, checkpoint: bool, report=None):
    """States at ``ts`` (stacked), and the final lane. The first failure freezes the lane."""
    term = model.term(drive)
    breaks = drive.breaks()
    dtype = ts.dtype

    def step(lane: Lane, row):
        t0, t1, jump = row

        def go():
            memory = drive.sample(t0, t1, *term.motor_coordinates(lane.y), lane.y.memory) if lane.y.memory else lane.y.memory
            y = State(lane.y.mech, lane.y.work, lane.y.dissipated, memory)
            middle = 0.5 * (t0 + t1)
            y1, _, _, solver_state, result = solver.step(term, t0, t1, y, middle, lane.solver_state, jump if breaks.shape[0] else False)
            newton = jnp.where(result == diffrax.RESULTS.successful, int(Status.ok), int(Status.newton_failed))
            code, where = model.failure(t1, y1, drive)
            finite = _finite(y1)
            code = jnp.where(finite, jnp.where(newton != 0, newton, code), int(Status.non_finite)).astype(jnp.int32)
            bad = code != 0
            # A failed step leaves the lane at its last good state; its derivative must not see the bad one.
            return Lane(
                _choose(bad, lane.y, y1), _choose(bad, lane.solver_state, solver_state), code,
                jnp.where(bad, t1, lane.t_fail), jnp.where(bad & (newton == 0) & finite, where, lane.where), lane.steps + 1,
            )  # fmt: skip

        lane = lax.cond((t1 > t0) & (lane.status == 0), go, lambda: lane)
        return lane, None

    def interval(lane: Lane, row):
        k, t0, t1 = row
        grid, jumps = interval_grid(t0, t1, substeps, breaks)
        lane, _ = lax.scan(step, lane, (grid[:-1], grid[1:], jumps))
        if report is not None:
            report(k, lane)
        return lane, lane.y

    first = ts[0] + 0.5 * (ts[1] - ts[0]) / substeps
    solver_state = solver.init(term, ts[0], ts[1], y0, _inside_first_piece(ts[0], first, breaks))
    zero = jnp.zeros((), jnp.int32)
    lane = Lane(y0, solver_state, zero, jnp.full((), jnp.nan, dtype), zero - 1, zero)
    lane = _strong(lane)
    body = jax.checkpoint(interval) if checkpoint else interval
    lane, ys = lax.scan(body, lane, (jnp.arange(ts.shape[0] - 1), ts[:-1], ts[1:]))
    ys = jtu.tree_map(lambda a, b: jnp.concatenate([a[None], b]), y0, ys)
    return ys, lane


def _inside_first_piece(t0, first, breaks):
    """A time just behind t0, before the next break."""
    return jnp.min(jnp.concatenate([jnp.stack([first]), jnp.where(breaks > t0, 0.5 * (t0 + breaks), jnp.inf)]))


def _strong(tree):
    """Weak types would change between the first and the second step of a scan."""
    return jtu.tree_map(lambda x: lax.convert_element_type(x, jnp.asarray(x).dtype), tree)
