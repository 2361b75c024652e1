"""Second-order mechanics with momenta: what an energy-conserving step asks for."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.numerics.term._second_order import AbstractSecondOrderTerm


class AbstractLagrangianTerm(AbstractSecondOrderTerm):
    """A second-order term with a Lagrangian v^T M(q) v / 2 - V(q), on a ground that may move."""

    @abc.abstractmethod
    def lagrangian_on_ground(
        self,
        s: ScalarLike,
        t0: ScalarLike,
        dt: ScalarLike,
        q: Coordinates,
        va: Velocities,
        vb: Velocities,
        piece_time: PieceTime,
    ) -> tuple[Velocities, Velocities, Velocities, tuple[Scalar, Scalar, Scalar] | None]:
        """(M va, M vb, body gradient of va^T M(q) vb / 2 - V(q)) at the fraction ``s`` of a step
        from t0, with the ground's twists at both ends of the step beside the velocities.

        Then the work of a base that moves: the products of its mean twist with its momenta (of va,
        of vb), and the power that lifts the weight on it. None where the drive moves no base."""

    @abc.abstractmethod
    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        """ad*_v p (nv,): the transport of momenta that are measured in turning axes; zero for plain
        coordinates."""

    def kinks(self, q: Coordinates, dx: Velocities) -> Float[Array, " k"]:
        """Fractions (k,) of the straight path from q along dx at which the gradient of the
        Lagrangian jumps; 1 where it does not."""
        return jnp.zeros(0, q.dtype)

    def roundoff(self, factors: PyTree, q: Coordinates, v: Velocities) -> Scalar | None:
        """A few times what round-off of the momenta makes of velocities when ``precondition``
        divides them by their inertia; None where they are of the usual size."""
        return None
