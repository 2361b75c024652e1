"""The checked arguments of `simulate`, as its compiled parts take them."""

import diffrax
import equinox as eqx
from jaxtyping import Array, Float, Int

from flexjax.drive import Drive
from flexjax.formulation import AbstractModel, Start
from flexjax.numerics.term import State


class Run(eqx.Module):
    """One run. ``stations``: positions along a link, and whether both ends are among them.
    ``substeps``: steps per output interval; None in an adaptive run. ``batch``: how many runs are
    computed at once, as a power of two."""

    model: AbstractModel
    drive: Drive
    ts: Float[Array, " T"]
    solver: diffrax.AbstractSolver
    start: Start | State
    stations: tuple[Float[Array, " S"], bool]
    substeps: int | None = None
    intervals: Int[Array, ""] | None = None
    batch: int = eqx.field(static=True, default=1)
