"""From the states of a run to its trajectory."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, Int, PyTree

from flexjax._compile import filter_jit, under_transformation
from flexjax._deferred import Source
from flexjax._results import Status
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.mechanism import SNAPSHOT
from flexjax.numerics.term import State
from flexjax.simulate._arguments import Run
from flexjax.simulate._start import marked, origin_of
from flexjax.simulate.loop._march import RunState
from flexjax.simulate.trajectory import Sections, Statistics, Trajectory


def choose_rows(pick: Bool[Array, " T"], a: PyTree, b: PyTree) -> PyTree:
    """Leaves with the rows of ``a`` where ``pick`` holds, else of ``b`` (broadcast)."""
    return jtu.tree_map(
        lambda x, y: jnp.where(pick.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), a, b
    )


class Marched(eqx.Module):
    """States at the output times of a run, a time in the piece of the signals of each, how the run
    ended (without the state of its solver), and its step [s]."""

    drive: Drive
    ys: State
    pieces: Float[Array, " T"]
    end: RunState
    dt: Float[Array, ""]


SECTIONS = (*(field.name for field in dataclasses.fields(Sections)), "positions")
OUTPUTS = (*sorted(SNAPSHOT), "energy")
# What is computed together, from little work to much.
GROUPS = (
    ("positions",),
    ("q", "qd", "motor", "frames"),
    ("deflection", "strain"),
    ("velocity",),
    ("qdd", "effort", "acceleration", "reaction"),
    ("energy",),
)


def _together(names: set[str], traced: bool, first: bool) -> tuple[str, ...]:
    """The outputs to compute when ``names`` are read; ``first``: nothing was read before."""
    if not traced and not first:
        # Values stay: who reads a second time reads more, and compiling all at once takes less
        # time than group by group.
        return OUTPUTS
    if not traced and names != {"positions"}:
        light = (*GROUPS[1], "velocity")
        if names - {"positions", *light}:
            return OUTPUTS
        return light if "velocity" in names else GROUPS[1]
    return tuple(name for group in GROUPS if names & {*group} for name in group)


def assemble(run: Run, marched: Marched) -> Trajectory:
    """The trajectory of a run. Its outputs are computed when they are read, in a program of their
    own, with at most one evaluation of the dynamics each."""
    model, end, (kept, complete) = run.model, marched.end, run.stations
    traced, read = under_transformation(), []

    def compute(names: Sequence[str]) -> dict[str, Any]:
        if names == ["coordinates"]:  # of no field: for warnings about a finished run
            return {"coordinates": marched.ys.mech.q}
        wanted = {name.removeprefix("ends.") for name in names}
        read.append(wanted)
        return _outputs(
            model,
            marched.drive,
            (run.ts, run.stations, run.intervals),
            (marched.ys, marched.pieces, end.status, end.t_fail),
            _together(wanted, traced, len(read) == 1),
        )

    outputs = Source(compute)

    def ends(names: Sequence[str]) -> dict[str, Any]:
        found = outputs([f"ends.{name}" for name in names])
        return {name: found[f"ends.{name}"] for name in names}

    steps = Statistics(
        end.steps,
        jnp.asarray(marched.dt, run.ts.dtype),
        type(run.solver).__name__,
        type(model.formulation).__name__,
    )
    return Trajectory.deferred(
        outputs,
        ts=run.ts,
        status=end.status,
        t_fail=end.t_fail,
        where=end.where,
        stats=steps,
        final=marked(end.end, origin_of(model, run.start)),
        stations=kept,
        robot=model.robot,
        ends=None if complete else Sections.deferred(ends),
    )


@filter_jit
def _outputs(
    model: AbstractModel,
    drive: Drive,
    places: tuple[Float[Array, " T"], tuple[Float[Array, " S"], bool], Array | None],
    states: tuple[State, Float[Array, " T"], Int[Array, ""], Float[Array, ""]],
    names: tuple[str, ...],
) -> dict[str, Any]:
    """The outputs ``names``, and those at the ends of links if stations lack one of them.

    An output on a break of the drive uses the signals after the break: the rates and accelerations
    that a Motion has there, and the reactions that belong to them.
    """
    (ts, (kept, complete), intervals), (ys, pieces, status, t_fail) = places, states
    begun = status != int(Status.invalid_parameter)
    good = (~(ts > t_fail - 1e-12) | (status == 0)) & begun
    if intervals is not None:
        late = jnp.arange(ts.shape[0]) > intervals
        good = good & ~late
        # Outputs that were not reached are zeros, which are no rotation: evaluate the start there
        # instead, and discard the result.
        ys = choose_rows(late, jtu.tree_map(lambda x: x[:1], ys), ys)

    s = kept if complete else jnp.concatenate([kept, jnp.array([0.0, 1.0], ts.dtype)])
    term = model.term(drive)

    def observe(t, y, piece_time):
        y = term.with_prescribed_rates(t, y, piece_time)
        return model.outputs(t, y, drive, s, piece_time, frozenset(names))

    observed = jax.vmap(observe)(ts, ys, pieces)
    found = choose_rows(good, observed, jtu.tree_map(lambda x: jnp.nan, observed))
    if "frames" in found:
        found["positions"] = found["frames"][..., :3]
    if complete:
        return found
    n = kept.shape[0]
    ends = {f"ends.{k}": x[:, :, n:] for k, x in found.items() if k in SECTIONS}
    return {k: x[:, :, :n] if k in SECTIONS else x for k, x in found.items()} | ends
