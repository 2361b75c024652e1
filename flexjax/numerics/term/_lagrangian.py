"""Second-order mechanics with momenta: what an energy-conserving step requires."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._types import Coordinates, Scalar, ScalarLike, Velocities
from flexjax.numerics.term._base import Step
from flexjax.numerics.term._second_order import AbstractSecondOrderTerm

# M va, M vb, gradient of va^T M(q) vb / 2 - V(q); then the work of a moving base.
OnGround = tuple[Velocities, Velocities, Velocities, tuple[Scalar, Scalar, Scalar] | None]


class AbstractLagrangianTerm(AbstractSecondOrderTerm):
    """A second-order term with a Lagrangian v^T M(q) v / 2 - V(q), on a ground that may move."""

    @abc.abstractmethod
    def lagrangian_on_ground(
        self, step: Step, s: ScalarLike, q: Coordinates, va: Velocities, vb: Velocities
    ) -> OnGround:
        """(M va, M vb, body gradient of va^T M(q) vb / 2 - V(q), work) at the fraction ``s`` of a
        step, with the ground's twists at both ends of the step beside the velocities.

        The work is that of a moving base: the products of its mean twist with its momenta (of va,
        of vb), and the power that lifts the weight on it. None if the drive moves no base."""

    def gyration(self, v: Velocities, p: Velocities) -> Velocities:
        """ad*_v p (nv,): the transport of momenta in rotating axes; zero for plain coordinates."""
        return jnp.zeros_like(p)

    def kinks(self, q: Coordinates, dx: Velocities) -> Float[Array, " k"]:
        """Fractions (k,) of the straight path from q along dx at which the gradient of the
        Lagrangian jumps; 1 where it does not."""
        return jnp.zeros(0, q.dtype)

    def roundoff(self, factors: PyTree, q: Coordinates, v: Velocities) -> Scalar | None:
        """A few times the error of velocities that round-off of the momenta causes when
        ``precondition`` divides them by their inertia; None if it has the usual size."""
        return None
