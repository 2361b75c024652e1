"""Step sizes chosen by a diffrax controller, between breaks of the drive."""

from typing import Any

import diffrax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


class Undifferentiated(diffrax.AbstractAdaptiveStepSizeController):
    """A controller whose proposed end of a step has no derivative.

    A step that ends on a break has the derivative of the break. The controller multiplies its
    length for the next step, and the one after: behind two breaks that are close to each other the
    derivative of the step ends would grow a millionfold, and that of the solution with it.
    """

    controller: diffrax.AbstractAdaptiveStepSizeController

    @property
    def rtol(self):
        return self.controller.rtol

    @property
    def atol(self):
        return self.controller.atol

    @property
    def norm(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.controller.norm

    def wrap(self, direction: Any):
        return _undifferentiated(self.controller.wrap(direction))

    def init(self, *args: Any):
        t1, state = self.controller.init(*args)
        return lax.stop_gradient(t1), state

    def adapt_step_size(self, *args: Any):
        keep, t0, t1, *rest = self.controller.adapt_step_size(*args)
        return keep, t0, lax.stop_gradient(t1), *rest


def _undifferentiated(controller: diffrax.AbstractStepSizeController) -> Undifferentiated:
    # pyright takes diffrax's abstract attributes, here properties, for arguments.
    return Undifferentiated(controller)  # pyright: ignore[reportCallIssue]


def stopping_at(
    controller: diffrax.AbstractStepSizeController, breaks: Float[Array, " b"]
) -> diffrax.ClipStepSizeController:
    """The controller with a step boundary on every break."""
    if isinstance(controller, diffrax.PIDController):
        controller = _undifferentiated(controller)
    # diffrax declares an adaptive controller, but works with any.
    clip = diffrax.ClipStepSizeController
    return clip(controller, jump_ts=jnp.sort(breaks))  # pyright: ignore[reportArgumentType]
