"""State and term: what makes simulate, modes, equilibrium and linearise one code for every
formulation."""

import abc
from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PyTree

from flexjax._types import PieceTime, Scalar, ScalarLike, hash_by_leaves

if TYPE_CHECKING:
    # An annotation of equinox's own would make it an argument of every subclass's constructor.
    from typing import ClassVar as AbstractVar
else:
    from equinox import AbstractVar


class State(eqx.Module):
    """State of a simulation: the formulation's own ``mech``, the work of the drive and the energy
    dissipated since the start, and the memory of sampled controllers and of bristles (what changes
    once a step). ``traj.final`` is one; pass
    it as ``start`` to continue. ``origin`` names the formulation of ``mech``, if known.

    >>> import flexjax as fx
    >>> import jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, None, jnp.linspace(0.0, 0.1, 3))
    >>> traj.final.origin
    'RigidArm'
    """

    mech: PyTree
    work: Float[Array, ""]
    dissipated: Float[Array, ""]
    memory: PyTree = ()
    origin: str = eqx.field(static=True, default="")

    @classmethod
    def fresh(cls, mech: PyTree, dtype: DTypeLike, memory: PyTree = ()) -> "State":
        zero = jnp.zeros((), dtype)
        return cls(mech, zero, zero, memory)


class Mechanical(eqx.Module):
    """Second-order mechanics: configuration ``q`` (nq,) and generalised velocity ``v`` (nv,). nq
    exceeds nv where q holds quaternions. Its tangent is a Mechanical too, with both parts of length
    nv."""

    # Bool: the masks of ``held``.
    q: Float[Array, " nq"] | Bool[Array, " nq"]
    v: Float[Array, " nv"] | Bool[Array, " nv"]


class Limits(eqx.Module):
    """Efforts (n,) before they are cut off at ``bound``, and their slopes w.r.t. the coordinate and
    the rate of their ``rows`` (static), positive where they resist."""

    effort: Float[Array, " n"]
    bound: Float[Array, " n"]
    kp: Float[Array, " n"]
    kd: Float[Array, " n"]
    rows: tuple[int, ...] = eqx.field(static=True)


class Step(eqx.Module):
    """A step in time, with the time that picks the piece of a piecewise signal (None: the time
    itself). ``running``: whether its result is used; iterations of other steps end at once."""

    t0: ScalarLike
    t1: ScalarLike
    piece_time: PieceTime = None
    running: Bool[Array, ""] | bool = True

    @property
    def dt(self) -> ScalarLike:
        return self.t1 - self.t0

    @property
    def middle(self) -> ScalarLike:
        return 0.5 * (self.t0 + self.t1)


class AbstractTerm(diffrax.AbstractTerm):
    """The right-hand side of one model under one drive. ``piece_time`` of every method is the time
    that picks the piece of a piecewise signal (the midpoint of a step), or None for the time
    itself."""

    drive: AbstractVar[PyTree]

    def __hash__(self) -> int:
        return hash_by_leaves(self)

    @abc.abstractmethod
    def rate(self, t: ScalarLike, y: State, piece_time: PieceTime) -> PyTree:
        """Tangent of ``y.mech`` with every constraint solved."""

    @abc.abstractmethod
    def retract(self, mech: PyTree, dx: PyTree) -> PyTree:
        """``mech`` moved along the tangent ``dx``: vector addition, or the group's exponential."""

    @abc.abstractmethod
    def ambient(self, mech: PyTree, dx: PyTree) -> PyTree:
        """The tangent ``dx`` as the time derivative of the numbers in ``mech`` (for explicit
        diffrax solvers)."""

    @abc.abstractmethod
    def power(self, t: ScalarLike, y: State, piece_time: PieceTime) -> tuple[Scalar, Scalar]:
        """(power of the drive, power dissipated)."""

    @abc.abstractmethod
    def motor_coordinates(self, y: State) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Motor-side joint coordinates and rates (D,), for sampled controllers."""

    def next_memory(
        self, t0: ScalarLike, t1: ScalarLike, y: State, strains: PyTree = None
    ) -> PyTree:
        """The memory with which the step from t0 to t1 runs: sampled controllers measure ``y``, and
        the ``strains`` at their gauges."""
        return self.drive.sample(t0, t1, *self.motor_coordinates(y), y.memory, strains)

    @property
    def no_ode(self) -> str | None:
        """Why ``vf`` is no ordinary differential equation of the whole state, with the remedy; None
        if it is one, as solvers of diffrax need it."""
        return None

    def with_prescribed_rates(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        """``y`` with the rates of a Motion, not those that a solver integrates; unchanged if the
        term reads these rates from the drive."""
        return y

    def held(self, t: ScalarLike, dx: PyTree) -> PyTree:
        """Masks like the tangent ``dx``: coordinates of the state that a Motion prescribes or that
        follow from others. They are static."""
        return jtu.tree_map(lambda x: jnp.zeros(x.shape, bool), dx)

    def complete(self, t: ScalarLike, mech: PyTree, piece_time: PieceTime) -> PyTree:
        """``mech`` with the coordinates of ``held`` computed from the drive and from the others."""
        return mech

    def relative_rate(self, t: ScalarLike, y: State, piece_time: PieceTime, about: State) -> PyTree:
        """``rate`` less the rate with which ``about`` follows the base and the prescribed joints:
        zero at an equilibrium. Only terms with absolute coordinates subtract it."""
        return self.rate(t, y, piece_time)

    def imbalance(self, t: ScalarLike, y: State, piece_time: PieceTime) -> PyTree:
        """Tangent that vanishes at an equilibrium: velocities, and forces that nothing balances.
        The rate, unless the term has the forces; then Newton's iteration converges from farther
        away, as inertia does not enter."""
        return self.relative_rate(t, y, piece_time, y)

    # diffrax's side: an ordinary differential equation in the ambient numbers.
    def vf(self, t: ScalarLike, y: State, piece_time: PieceTime) -> State:
        drive_power, dissipation = self.power(t, y, piece_time)
        memory = jtu.tree_map(jnp.zeros_like, y.memory)
        mech = self.ambient(y.mech, self.rate(t, y, piece_time))
        return State(mech, drive_power, dissipation, memory, y.origin)

    def contr(self, t0: ScalarLike, t1: ScalarLike, **kwargs: Any) -> ScalarLike:
        return t1 - t0

    def prod(self, vf: State, control: ScalarLike) -> State:
        return jtu.tree_map(lambda x: control * x, vf)


def unwrap(terms: Any) -> Any:
    """The flexjax term that ``diffeqsolve`` passes to a solver, wrapped in a private class."""
    return terms.term if isinstance(terms, diffrax._term.WrapTerm) else terms
