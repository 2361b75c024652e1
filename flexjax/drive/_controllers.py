"""What can drive a joint. Kinds and functions are static, parameters are traced."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from flexjax._types import PieceTime, ScalarLike, as_float, as_float_or_none
from flexjax.drive._check import Range, is_finite, number_fault, refuse_any, signal_fault
from flexjax.drive.signal import AbstractSignal
from flexjax.robot import Motor

if TYPE_CHECKING:
    # Otherwise pyright would take it as an argument of every subclass's constructor.
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

Own = Float[Array, " k"]  # of one joint
All = Float[Array, " D"]  # of all joints, in robot order


class ActuationState(NamedTuple):
    """What an actuation measures: motor-side coordinates and rates, and its held effort; the motor
    of its joint."""

    q: Own
    qd: Own
    all_q: All
    all_qd: All
    held: Own | None  # of a sampled controller
    motor: Motor | None


class AbstractActuation(eqx.Module):
    """What drives one joint.

    ``prescribes``: the joint follows the signal exactly; otherwise an effort acts on it.
    """

    prescribes: AbstractClassVar[bool]

    @abc.abstractmethod
    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        """Effort on the joint (k,)."""

    @abc.abstractmethod
    def signals(self) -> tuple[AbstractSignal, ...]:
        """Its signals, whose breaks the time grid must contain."""

    def stiffness(self) -> tuple[Array | float, Array | float]:
        """Approximate (-d effort / d q, -d effort / d qd), for the Newton matrix."""
        return 0.0, 0.0

    def ranges(self) -> list[Range]:
        """The ranges of its parameters."""
        return []

    def faults(self, where: str) -> list[str]:
        """Faults of its values; ``where`` is the path of the actuation."""
        return [fault for x in self.ranges() for fault in x.faults(where)]

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        """Faults of its shapes on a joint with ``dofs`` coordinates."""
        return []


def _of_joint(where: str, signal: Any, dofs: int) -> list[str]:
    remedy = "Give one number, or one for each coordinate of the joint."
    return signal_fault(where, signal, ((), (dofs,)), remedy)


class Motion(AbstractActuation):
    """The joint follows a signal exactly; the required effort is an output.

    Outputs show the rate and the acceleration of the signal itself. At a break of the signal they
    show its values after the break.

    Arguments:
        signal: joint coordinate; of a flexible joint, that of the motor side.

    >>> import flexjax as fx
    >>> drive = fx.Drive(joints={"pin": fx.Motion(fx.quintic(0.0, 1.0, 0.5))})
    >>> drive.check(fx.load_robot("metal-link"))
    """

    prescribes = True
    signal: AbstractSignal

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return _of_joint(f"{where}.signal", self.signal, dofs)

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        return jnp.zeros_like(state.qd)

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.signal,)


class Effort(AbstractActuation):
    """A torque or force in time.

    Arguments:
        signal: torque [N m] or force [N].

    >>> import flexjax as fx
    >>> drive = fx.Drive(joints={"pin": fx.Effort(fx.sine(0.1, 2.0))})
    >>> drive.check(fx.load_robot("metal-link"))
    """

    prescribes = False
    signal: AbstractSignal

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return _of_joint(f"{where}.signal", self.signal, dofs)

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        return jnp.broadcast_to(self.signal.evaluate(t, piece_time)[0], state.qd.shape)

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.signal,)


class Voltage(AbstractActuation):
    """A motor at a voltage: its effort falls with its speed.

    The motor of the joint has the torque constant, the resistance and the back-EMF.

    Arguments:
        signal: voltage [V].

    >>> import flexjax as fx
    >>> drive = fx.Drive({"shoulder": fx.Voltage(fx.constant(12.0))})
    """

    prescribes = False
    signal: AbstractSignal

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return _of_joint(f"{where}.signal", self.signal, dofs)

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        motor = state.motor
        assert motor is not None  # the drive is checked
        constant, resistance = motor.torque_constant, motor.resistance
        assert constant is not None and resistance is not None
        back_emf = constant / motor.gear if motor.back_emf is None else motor.back_emf
        voltage = self.signal.evaluate(t, piece_time)[0] - back_emf * motor.gear * state.qd
        return jnp.broadcast_to(constant * voltage / resistance, state.qd.shape)

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.signal,)


class PD(AbstractActuation):
    """PD controller: ``kp (reference - q) + kd (reference_rate - qd)``.

    Arguments:
        kp, kd: gains.
        reference: joint coordinate to follow, on the motor side.
        limit: largest effort [N m or N].

    >>> import flexjax as fx
    >>> hold = fx.PD(20.0, 1.0, fx.constant(0.3), limit=5.0)
    >>> fx.Drive(joints={"pin": hold}).check(fx.load_robot("metal-link"))
    """

    prescribes = False
    kp: Float[Array, ""] = eqx.field(converter=as_float)
    kd: Float[Array, ""] = eqx.field(converter=as_float)
    reference: AbstractSignal
    limit: Float[Array, ""] | None = eqx.field(converter=as_float_or_none, default=None)

    def __check_init__(self):
        refuse_any(self.faults("pd"))

    def ranges(self) -> list[Range]:
        limit = "a positive effort in N m or N; leave it out for none"
        return [
            Range("kp", self.kp, is_finite, "a finite number"),
            Range("kd", self.kd, is_finite, "a finite number"),
            Range("limit", self.limit, lambda x: x > 0, limit),
        ]

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        remedy = "Use Feedback where the coordinates of a joint need gains of their own."
        return [
            *number_fault(f"{where}.kp", self.kp, remedy),
            *number_fault(f"{where}.kd", self.kd, remedy),
            *number_fault(f"{where}.limit", self.limit, remedy),
            *_of_joint(f"{where}.reference", self.reference, dofs),
        ]

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        r, rd, _ = self.reference.evaluate(t, piece_time)
        tau = self.kp * (r - state.q) + self.kd * (rd - state.qd)
        return tau if self.limit is None else jnp.clip(tau, -self.limit, self.limit)

    def stiffness(self) -> tuple[Array | float, Array | float]:
        return self.kp, self.kd

    def signals(self) -> tuple[AbstractSignal, ...]:
        return (self.reference,)


class Feedback(AbstractActuation):
    """A continuous control law.

    Arguments:
        fn: ``fn(t, q, qd, params) -> effort``, with motor-side coordinates and rates of all joints
            in robot order.
        params: pytree that is passed to ``fn``.

    >>> import flexjax as fx
    >>> def damp(t, q, qd, params):
    ...     return -params * qd[0]
    >>> drive = fx.Drive(joints={"pin": fx.Feedback(damp, 0.1)})
    >>> drive.check(fx.load_robot("metal-link"))
    """

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    params: PyTree = None

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        effort = self.fn(t, state.all_q, state.all_qd, self.params)
        return jnp.broadcast_to(effort, state.qd.shape)

    def signals(self) -> tuple[AbstractSignal, ...]:
        return ()


def _pairs(gauges: Any) -> Any:
    return tuple(gauge if isinstance(gauge, str) else tuple(gauge) for gauge in gauges)


class Sampled(AbstractActuation):
    """A digital controller, which holds its effort between samples. Needs a fixed time grid.

    It is evaluated at the first step boundary at or after each sample time.

    Arguments:
        fn: ``fn(t, q, qd, params) -> effort``, as in :class:`Feedback`.
        period: sampling period [s].
        params: pytree that is passed to ``fn``.
        delay: number of samples after which the effort acts.
        gauges: sections (link, s) whose strains are measured, s = 0 at the base. ``fn`` then takes
            them as a fifth argument (k, 6): axial, shear y, shear z, torsion, curvature y and
            curvature z, as in ``Trajectory.strain``.

    >>> import flexjax as fx
    >>> def damp(t, q, qd, params):
    ...     return -params * qd[0]
    >>> drive = fx.Drive(joints={"pin": fx.Sampled(damp, period=0.01, params=0.1, delay=1)})
    >>> drive.check(fx.load_robot("metal-link"))
    """

    prescribes = False
    fn: Callable[[Any, Array, Array, PyTree], Array] = eqx.field(static=True)
    period: Float[Array, ""] = eqx.field(converter=as_float)
    params: PyTree = None
    delay: int = eqx.field(static=True, default=0)
    gauges: tuple[tuple[str, float], ...] = eqx.field(static=True, converter=_pairs, default=())

    def __check_init__(self):
        refuse_any(self.faults("sampled"))

    def ranges(self) -> list[Range]:
        positive = lambda x: (x > 0) & is_finite(x)
        return [Range("period", self.period, positive, "a positive time in seconds, e.g. 0.01")]

    def faults(self, where: str) -> list[str]:
        faults = super().faults(where)
        if not isinstance(self.delay, int | np.integer) or self.delay < 0:
            expected = "a whole number of samples, 0 or more"
            faults.append(f"{where}.delay: {self.delay}; expected {expected}.")
        for gauge in self.gauges:
            if isinstance(gauge, str) or len(gauge) != 2 or not 0 <= gauge[1] <= 1:
                expected = "a link and a station from 0 (base) to 1 (tip), e.g. ('upper', 0.05)"
                faults.append(f"{where}.gauges: {gauge!r}; expected {expected}.")
        return faults

    def shape_faults(self, where: str, dofs: int) -> list[str]:
        return number_fault(f"{where}.period", self.period, "Give one period.")

    def effort(self, t: ScalarLike, piece_time: PieceTime, state: ActuationState) -> Own:
        assert state.held is not None  # Drive.effort passes the memory of a sampled controller
        return state.held

    def signals(self) -> tuple[AbstractSignal, ...]:
        return ()
