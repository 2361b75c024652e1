"""What a joint can be driven by. Kinds and functions are static, numbers are traced."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, ScalarLike, as_float, as_float_or_none
from flexjax.drive._check import number_fault, refuse_any, signal_fault, value_fault
from flexjax.drive.signal import AbstractSignal

if TYPE_CHECKING:
    # An annotation of equinox's own would make it an argument of every subclass's constructor.
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

Own = Float[Array, " k"]  # of one joint
All = Float[Array, " D"]  # of all joints, in robot order


class AbstractActuation(eqx.Module):
    """What drives one joint.

    ``prescribes``: the joint follows the signal exactly; otherwise an effort acts on it.
    """

    prescribes: AbstractClassVar[bool]

    @abc.abstractmethod
    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        """Effort on the joint (k,) from its own motor-side coordinates ``q``, rates ``qd``, those of all joints, and the held value."""

    @abc.abstractmethod
    def stiffness(self) -> tuple[Array | float, Array | float]:
        """(d effort / d q, d effort / d qd) with the sign turned, for the Newton matrix: exactness is not needed, size is."""

    @abc.abstractmethod
    def signals(self) -> tuple[AbstractSignal, ...]:
        """The signals in it, so that the time grid knows their breaks."""

    def faults(self, where: str) -> list[str]:
        """What is wrong with its values; ``where`` is the path of the actuation."""
        return []

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        """What is wrong with its shapes on a joint of so many coordinates."""
        return []


def _of_joint(where: str, signal: Any, dofs: int) -> list[str]:
    remedy = "Give one number, or one for each coordinate of the joint."
    return signal_fault(where, signal, ((), (dofs,)), remedy)


class Motion(AbstractActuation):
    """The joint (its motor side, where the joint is flexible) follows ``signal`` exactly; the effort that takes is an output."""

    prescribes = True
    signal: AbstractSignal

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return _of_joint(f"{where}.signal", self.signal, dofs)

    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        return jnp.zeros_like(qd)

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return 0.0, 0.0

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.signal,)


class Effort(AbstractActuation):
    """A torque [N m] or force [N] in time."""

    prescribes = False
    signal: AbstractSignal

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return _of_joint(f"{where}.signal", self.signal, dofs)

    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        return jnp.broadcast_to(self.signal.evaluate(t, at)[0], qd.shape)

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return 0.0, 0.0

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.signal,)


class PD(AbstractActuation):
    """``kp (reference - q) + kd (reference_rate - qd)``, cut off at ``limit`` where one is given."""

    prescribes = False
    kp: Float[Array, ""] = eqx.field(converter=as_float)
    kd: Float[Array, ""] = eqx.field(converter=as_float)
    reference: AbstractSignal
    limit: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)

    def __check_init__(self):
        refuse_any(self.faults("pd"))

    def faults(self, where: str) -> list[str]:
        limit = "a positive effort in N m or N; leave it out for none"
        return [
            *value_fault(f"{where}.kp", self.kp, np.isfinite, "a finite number"),
            *value_fault(f"{where}.kd", self.kd, np.isfinite, "a finite number"),
            *value_fault(f"{where}.limit", self.limit, lambda x: x > 0, limit),
        ]

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        remedy = "Use Feedback where the coordinates of a joint need gains of their own."
        return [
            *number_fault(f"{where}.kp", self.kp, remedy),
            *number_fault(f"{where}.kd", self.kd, remedy),
            *number_fault(f"{where}.limit", self.limit, remedy),
            *_of_joint(f"{where}.reference", self.reference, dofs),
        ]

    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        r, rd, _ = self.reference.evaluate(t, at)
        tau = self.kp * (r - q) + self.kd * (rd - qd)
        return tau if self.limit is None else jnp.clip(tau, -self.limit, self.limit)

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return self.kp, self.kd

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.reference,)


class Feedback(AbstractActuation):
    """Your own continuous law ``fn(t, q, qd, params) -> effort`` on the motor-side coordinates of all joints (robot order)."""

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    params: PyTree = None

    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        return jnp.broadcast_to(self.fn(t, all_q, all_qd, self.params), qd.shape)

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return 0.0, 0.0

    def signals(self) -> tuple[AbstractSignal, ...]:
        return ()


class Sampled(AbstractActuation):
    """A digital controller: ``fn(t, q, qd, params) -> effort`` is evaluated every ``period`` seconds (at the first step boundary at or after
    each sample time), acts ``delay`` samples later and is held in between. Needs a fixed time grid."""

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    period: Float[Array, ""] = eqx.field(converter=as_float)
    params: PyTree = None
    delay: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        refuse_any(self.faults("sampled"))

    def faults(self, where: str) -> list[str]:
        positive = lambda x: (x > 0) & np.isfinite(x)
        faults = value_fault(
            f"{where}.period", self.period, positive, "a positive time in seconds, e.g. 0.01"
        )
        if not isinstance(self.delay, int | np.integer) or self.delay < 0:
            expected = "a whole number of samples, 0 or more"
            faults.append(f"{where}.delay: {self.delay}; expected {expected}.")
        return faults

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return number_fault(f"{where}.period", self.period, "Give one period.")

    def effort(
        self,
        t: ScalarLike,
        at: PieceTime,
        q: Own,
        qd: Own,
        all_q: All,
        all_qd: All,
        held: Own | None,
    ) -> Own:
        assert held is not None  # Drive.effort passes the memory of a sampled controller
        return held

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return 0.0, 0.0

    def signals(self) -> tuple[AbstractSignal, ...]:
        return ()
