"""From the states of a run to its trajectory."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._results import Status
from flexjax._types import ScalarLike
from flexjax.drive import Drive
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._march import RunState
from flexjax.simulate._start import marked, origin_of
from flexjax.simulate.trajectory import Sections, Statistics, Trajectory


def choose_rows(pick: Bool[Array, " T"], a: PyTree, b: PyTree) -> PyTree:
    """Leaves with the rows of ``a`` where ``pick`` holds, else of ``b`` (broadcast)."""
    return jtu.tree_map(
        lambda x, y: jnp.where(pick.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), a, b
    )


def assemble(
    run: Run,
    drive: Drive,
    ys: State,
    pieces: Float[Array, " T"],
    end: RunState,
    dt: ScalarLike,
) -> Trajectory:
    """The trajectory from the states at the output times, with one evaluation of the dynamics each.

    An output on a break of the drive uses the signals after the break: the rates and accelerations
    that a Motion has there, and the reactions that belong to them.
    """
    model, ts = run.model, run.ts
    begun = end.status != int(Status.invalid_parameter)
    good = (~(ts > end.t_fail - 1e-12) | (end.status == 0)) & begun
    if run.intervals is not None:
        late = jnp.arange(ts.shape[0]) > run.intervals
        good = good & ~late
        # Outputs that were not reached are zeros, which are no rotation: evaluate the start there
        # instead, and discard the result.
        ys = choose_rows(late, jtu.tree_map(lambda x: x[:1], ys), ys)

    kept, complete = run.stations
    s = kept if complete else jnp.concatenate([kept, jnp.array([0.0, 1.0], ts.dtype)])
    term = model.term(drive)

    def observe(t, y, piece_time):
        y = term.with_prescribed_rates(t, y, piece_time)
        return model.observe_with_energy(t, y, drive, s, piece_time)

    observed = jax.vmap(observe)(ts, ys, pieces)
    snap, energy = choose_rows(good, observed, jtu.tree_map(lambda x: jnp.nan, observed))
    links = {f.name: getattr(snap, f.name) for f in dataclasses.fields(Sections)}
    n = kept.shape[0]
    ends = None if complete else Sections(**{k: x[:, :, n:] for k, x in links.items()})
    links = {k: x[:, :, :n] for k, x in links.items()}
    names = type(run.solver).__name__, type(model.formulation).__name__
    return Trajectory(
        ts=ts,
        q=snap.q,
        qd=snap.qd,
        qdd=snap.qdd,
        motor=snap.motor,
        effort=snap.effort,
        **links,
        reaction=snap.reaction,
        energy=energy,
        status=end.status,
        t_fail=end.t_fail,
        where=end.where,
        stats=Statistics(end.steps, jnp.asarray(dt, ts.dtype), *names),
        final=marked(end.end, origin_of(model, run.start)),
        stations=kept,
        robot=model.robot,
        ends=ends,
    )
