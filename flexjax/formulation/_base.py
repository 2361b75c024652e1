"""The two interfaces that a formulation fills in."""

import abc
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from flexjax._compile import filter_jit
from flexjax._registry import unsupported
from flexjax._results import Status
from flexjax._rules import derivative_where
from flexjax._types import PieceTime, ScalarLike, Stations, hash_by_leaves
from flexjax.drive import Drive
from flexjax.mechanism import SNAPSHOT, Energy, Snapshot, Start, initial_memory
from flexjax.numerics.term import AbstractTerm, State
from flexjax.robot import Robot, parameters_hold

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractClassVar, ClassVar as AbstractVar
else:
    from equinox import AbstractClassVar, AbstractVar


class AbstractModel(eqx.Module):
    """A robot in one formulation: a pytree of arrays with pure functions.

    It stores the robot and the formulation; the rest is a cache.

    >>> import flexjax as fx
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> isinstance(model, fx.AbstractModel), model.robot.name
    (True, 'rigid-3r')
    """

    robot: AbstractVar[Robot]
    formulation: AbstractVar["AbstractFormulation"]

    def __hash__(self) -> int:
        return hash_by_leaves(self)

    @abc.abstractmethod
    def initial_mechanics(self, drive: Drive, t0: ScalarLike, start: Start) -> PyTree:
        """Consistent, differentiable coordinates at t0: prescribed joints set, loops closed."""

    def initial_state(self, drive: Drive, t0: ScalarLike, start: Start) -> State:
        """The state at t0: coordinates, memory of controllers and friction, no work yet."""
        faults = self.formulation.start_refusals(self.robot, start)
        if faults:
            raise ValueError("\n".join(faults))
        mech = self.initial_mechanics(drive, t0, start)
        return State.fresh(mech, self.robot.gravity.dtype, initial_memory(drive, self.robot))

    @abc.abstractmethod
    def term(self, drive: Drive) -> AbstractTerm:
        """The equations of motion under a drive."""

    @abc.abstractmethod
    def outputs(
        self,
        t: ScalarLike,
        y: State,
        drive: Drive,
        s: Stations,
        piece_time: PieceTime,
        names: frozenset[str],
    ) -> dict[str, Any]:
        """The fields ``names`` of the snapshot; also "energy", and the "positions" of the sections.

        It traces no more than these need. ``s``: stations in [0, 1] on every link; ``piece_time``
        selects the piece of the signals.
        """

    def observe(
        self, t: ScalarLike, y: State, drive: Drive, s: Stations, piece_time: PieceTime = None
    ) -> Snapshot:
        """All quantities at one instant; see :meth:`outputs`."""
        return Snapshot(**self.outputs(t, y, drive, s, piece_time, SNAPSHOT))

    @abc.abstractmethod
    def energy(self, t: ScalarLike, y: State, drive: Drive, piece_time: PieceTime = None) -> Energy:
        """Energies at one instant."""

    @abc.abstractmethod
    def default_solver(self, drive: Drive) -> diffrax.AbstractSolver:
        """The solver that ``simulate`` uses by default."""

    def failure(self, t: ScalarLike, y: State, drive: Drive) -> tuple[Array, Array]:
        """Failures that only this formulation detects: (status, index of the joint or -1)."""
        return jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)

    def rebind(self, robot: Robot) -> "AbstractModel":
        """The same formulation on a robot with other parameters; traceable."""
        return self.formulation.bind(robot, dtype=self.robot.gravity.dtype)


class AbstractFormulation(eqx.Module):
    """Options of a formulation, all static; ``paper`` is the reference for :func:`flexjax.cite`.

    >>> import flexjax as fx
    >>> isinstance(fx.FiniteElement(elements=4), fx.AbstractFormulation)
    True
    """

    paper: AbstractClassVar[str]
    deforms: ClassVar[bool] = True  # False where links are rigid bodies
    # Power of the bend (deflection of a tip over the length) to which tips are right; None: any.
    bend_power: ClassVar[int | None] = None

    @abc.abstractmethod
    def refusals(self, robot: Robot) -> list[str]:
        """Static facts of the robot that this formulation does not support; empty if it does."""

    def drive_refusals(self, robot: Robot, drive: Drive) -> list[str]:
        """Static facts of a drive that this formulation does not support on ``robot``."""
        return []

    @abc.abstractmethod
    def build(self, robot: Robot) -> AbstractModel:
        """The model of a supported robot with parameters of one precision; pure and traceable.

        ``bind`` calls it, compiled.
        """

    def start_refusals(self, robot: Robot, start: Start) -> list[str]:
        """Fields of a start that this formulation does not support on ``robot``."""
        return []

    def option_warnings(self, robot: Robot) -> list[str]:
        """Warnings about the chosen options, issued whenever a robot is bound."""
        return []

    def run_warnings(self, model: AbstractModel, traj: Any) -> list[str]:
        """Limits of the formulation that a finished run exceeded; ``simulate`` warns of them.

        Called with known numbers only, never under a transformation.
        """
        return []

    def bind(self, robot: Robot, *, dtype: DTypeLike | None = None) -> AbstractModel:
        """The model; pure and traceable in the robot's parameters. Refusals raise ValueError."""
        robot = _prepare(self, robot, dtype)
        for warning in self.option_warnings(robot):
            warnings.warn(warning, stacklevel=2)
        return _build(self, robot)


@filter_jit
def _build(formulation: AbstractFormulation, robot: Robot) -> AbstractModel:
    # One program: hundreds of small operations, run eagerly, take seconds.
    # A parameter outside its range gives NaN: its run ends with a status, its derivative is zero.
    return formulation.build(derivative_where(parameters_hold(robot), robot))


def check_variant(variant: str):
    """Refuse what is neither the complete physics nor the published form."""
    if variant not in ("complete", "paper"):
        raise ValueError(
            f"variant: {variant!r}; expected 'complete' (all terms) or 'paper' (as published)."
        )


def refuse(
    formulation: AbstractFormulation,
    subject: str,
    refusals: list[str],
    robot: Robot,
    drive: Drive | None = None,
) -> None:
    """Raise the refusals of ``subject``, with the formulations that support robot and drive."""
    if not refusals:
        return
    from flexjax.formulation._registry import formulations_for

    others = formulations_for(robot, drive)[0]
    raise unsupported(type(formulation).__name__, subject, refusals, others)


def _prepare(formulation: AbstractFormulation, robot: Robot, dtype: DTypeLike | None) -> Robot:
    """Refuse, and cast the robot once."""
    if not isinstance(robot, Robot):
        raise ValueError(
            f"robot: {type(robot).__name__}; expected fx.Robot, e.g. fx.load_robot('two-link')."
        )
    refuse(formulation, f"the robot {robot.name!r}", formulation.refusals(robot), robot)
    if dtype is None:
        dtype = jnp.result_type(float)
        if dtype == jnp.float32:
            _warn_single()
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), robot)


_warned = []


def _warn_single():
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "flexjax runs in float32: flexible links are stiff and lose digits. Switch double "
            "precision on with jax.config.update('jax_enable_x64', True) before building arrays, "
            "or pass dtype=jnp.float32 to bind to say that you mean it.",
            stacklevel=4,
        )


def cite(model: AbstractModel) -> str:
    """The publication behind a model's formulation.

    Arguments:
        model: a robot in a formulation.

    Returns:
        The reference, as text.

    >>> import flexjax as fx
    >>> fx.cite(fx.RigidArm().bind(fx.load_robot("rigid-3r"))) == fx.RigidArm.paper
    True
    """
    return model.formulation.paper
