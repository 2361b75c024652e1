"""What a joint can be driven by. Kinds and functions are static, numbers are traced."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from flexjax._types import as_float, as_float_or_none
from flexjax.drive.signal import AbstractSignal


class AbstractActuation(eqx.Module):
    """What drives one joint. ``prescribes`` says whether it fixes the joint's motion or gives an effort."""

    prescribes: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def effort(self, t, at, q, qd, all_q, all_qd, held) -> Array:
        """Effort on the joint (k,) from its own motor-side coordinates ``q``, rates ``qd``, those of all joints, and the held value."""

    @abc.abstractmethod
    def stiffness(self) -> tuple[Array | float, Array | float]:
        """(d effort / d q, d effort / d qd) with the sign turned, for the Newton matrix: exactness is not needed, size is."""

    @abc.abstractmethod
    def signals(self) -> tuple[AbstractSignal, ...]:
        """The signals in it, so that the time grid knows their breaks."""


class Motion(AbstractActuation):
    """The joint (its motor side, where the joint is flexible) follows ``signal`` exactly; the effort that takes is an output."""

    prescribes = True
    signal: AbstractSignal

    def effort(self, t, at, q, qd, all_q, all_qd, held):
        return jnp.zeros_like(qd)

    def stiffness(self):
        return 0.0, 0.0

    def signals(self):
        return (self.signal,)


class Effort(AbstractActuation):
    """A torque [N m] or force [N] in time."""

    prescribes = False
    signal: AbstractSignal

    def effort(self, t, at, q, qd, all_q, all_qd, held):
        return jnp.broadcast_to(self.signal.evaluate(t, at)[0], qd.shape)

    def stiffness(self):
        return 0.0, 0.0

    def signals(self):
        return (self.signal,)


class PD(AbstractActuation):
    """``kp (reference - q) + kd (reference_rate - qd)``, cut off at ``limit`` where one is given."""

    prescribes = False
    kp: Float[Array, ""] = eqx.field(converter=as_float)
    kd: Float[Array, ""] = eqx.field(converter=as_float)
    reference: AbstractSignal
    limit: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)

    def effort(self, t, at, q, qd, all_q, all_qd, held):
        r, rd, _ = self.reference.evaluate(t, at)
        tau = self.kp * (r - q) + self.kd * (rd - qd)
        return tau if self.limit is None else jnp.clip(tau, -self.limit, self.limit)

    def stiffness(self):
        return self.kp, self.kd

    def signals(self):
        return (self.reference,)


class Feedback(AbstractActuation):
    """Your own continuous law ``fn(t, q, qd, params) -> effort`` on the motor-side coordinates of all joints (robot order)."""

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    params: PyTree = None

    def effort(self, t, at, q, qd, all_q, all_qd, held):
        return jnp.broadcast_to(self.fn(t, all_q, all_qd, self.params), qd.shape)

    def stiffness(self):
        return 0.0, 0.0

    def signals(self):
        return ()


class Sampled(AbstractActuation):
    """A digital controller: ``fn(t, q, qd, params) -> effort`` is evaluated every ``period`` seconds (at the first step boundary at or after
    each sample time), acts ``delay`` samples later and is held in between. Needs a fixed time grid."""

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    period: Float[Array, ""] = eqx.field(converter=as_float)
    params: PyTree = None
    delay: int = eqx.field(static=True, default=0)

    def effort(self, t, at, q, qd, all_q, all_qd, held):
        return held

    def stiffness(self):
        return 0.0, 0.0

    def signals(self):
        return ()
