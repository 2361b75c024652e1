"""Data other than time series: measured natural frequencies, and frequency responses."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from flexjax._types import NumbersLike
from flexjax.drive import Drive
from flexjax.formulation import AbstractModel
from flexjax.robot import Robot
from flexjax.simulate import linearise, modes
from flexjax.study.identify.records._experiment import Experiment
from flexjax.study.identify.records._modal_track import ModalTrack

NEEDS_CONSTANT = "input: currents of {name!r} need joints.{name}.motor.torque_constant."


@dataclasses.dataclass(frozen=True, eq=False)
class Modal:
    """Measured natural frequencies and damping ratios.

    Arguments:
        frequencies: natural frequencies [Hz].
        damping: damping ratios, None where unknown.
        sd: relative standard deviation of the frequencies.
        damping_sd: absolute standard deviation of the damping ratios.
        index: number of each mode, 0 is the lowest (default: the lowest ones).
        at, lock, drive: as in :func:`flexjax.modes`.
        name: label in results.

    >>> import flexjax as fx
    >>> fx.Modal([6.05], sd=0.01).channels
    ('mode 1 [Hz]',)
    """

    frequencies: Any
    damping: Any = None
    sd: float = 0.01
    damping_sd: float = 0.002
    index: tuple[int, ...] | None = None
    at: Any = None
    lock: str = "motors"
    drive: Drive | None = None
    name: str = "modes"

    def __post_init__(self):
        f = np.atleast_1d(np.array(self.frequencies, float))
        if self.damping is None:
            z = np.full(f.shape, np.nan)
        else:
            z = np.array([np.nan if x is None else x for x in np.atleast_1d(self.damping)], float)
        index = tuple(range(len(f))) if self.index is None else tuple(int(i) for i in self.index)
        where = f"modal {self.name!r}"
        if f.ndim != 1 or not np.all(f > 0):
            raise ValueError(
                f"{where}: frequencies = {self.frequencies}; expected positive numbers in Hz."
            )
        if z.shape != f.shape or np.any(z < 0) or np.any(z >= 1):
            raise ValueError(
                f"{where}: damping = {self.damping}; expected a ratio from 0 to below 1 for each "
                "frequency, or None."
            )
        if len(index) != len(f) or min(index) < 0:
            raise ValueError(
                f"{where}: index = {self.index}; expected the number of a mode for each "
                "frequency, 0 the lowest."
            )
        if not (self.sd > 0 and self.damping_sd > 0):
            raise ValueError(
                f"{where}: sd = {self.sd}, damping_sd = {self.damping_sd}; expected positive "
                "numbers."
            )
        for field, value in (("frequencies", f), ("damping", z), ("index", index)):
            object.__setattr__(self, field, value)

    absolute = True  # its standard deviations are given, not estimated

    @property
    def channels(self) -> tuple[str, ...]:
        known = np.isfinite(self.damping)
        return (
            *(f"mode {i + 1} [Hz]" for i in self._modes),
            *(f"mode {i + 1} damping" for i, k in zip(self._modes, known, strict=True) if k),
        )

    @property
    def _modes(self) -> tuple[int, ...]:
        assert self.index is not None  # __post_init__ fills it in
        return self.index

    def faults(self, robot: Robot) -> list[str]:
        return []

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """(values, standard deviations): logarithms of frequencies, then damping ratios."""
        z = self.damping[np.isfinite(self.damping)]
        sd = [np.full(len(self.frequencies), self.sd), np.full(len(z), self.damping_sd)]
        return np.concatenate([np.log(self.frequencies), z]), np.concatenate(sd)

    def predict(self, model: AbstractModel) -> jax.Array:
        found = modes(model, self.drive, self.at, lock=self.lock, n=max(self._modes) + 1)
        if found.frequencies.shape[0] <= max(self._modes):
            raise ValueError(
                f"modal {self.name!r}: the model has {found.frequencies.shape[0]} modes; "
                f"expected {max(self._modes) + 1}. Refine it, or lock='none'."
            )
        pick = np.array(self._modes)
        damped = np.flatnonzero(np.isfinite(self.damping))
        return jnp.concatenate([jnp.log(found.frequencies[pick]), found.damping[pick][damped]])

    def shown(self, values: ArrayLike) -> np.ndarray:
        """For printing: frequencies in Hz."""
        n = len(self.frequencies)
        return np.concatenate([np.exp(np.asarray(values)[:n]), np.asarray(values)[n:]])


@dataclasses.dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """A measured frequency response from a joint's effort to a sensor.

    The model's response is that of its linearisation, times the sensor's low-pass and delay.

    Arguments:
        frequencies: frequencies [Hz].
        values: complex response at these frequencies.
        input: joint whose effort is the input.
        output: sensor.
        sd: standard deviations (default: relative to the values).
        current: the input is the motor current instead of the effort.
        absolute: whether ``sd`` is known absolutely, or only up to a factor.
        at, drive: state and drive of the linearisation, as in :func:`flexjax.linearise`.
        name: label in results.

    >>> import flexjax as fx
    >>> measured = fx.FrequencyResponse([1.0, 2.0], [0.5 + 0.1j, 0.4 - 0.2j], "pin", "gauge")
    >>> measured.frequencies.shape
    (2,)
    """

    frequencies: Any
    values: Any
    input: str
    output: str
    sd: Any = None
    current: bool = False
    absolute: bool = False
    at: Any = None
    drive: Drive | None = None
    name: str = "frequency response"

    def __post_init__(self):
        f, h = np.array(self.frequencies, float), np.array(self.values, complex)
        sd = np.abs(h) if self.sd is None else np.broadcast_to(np.array(self.sd, float), f.shape)
        if f.ndim != 1 or f.shape != h.shape or not np.all(f > 0) or not np.all(np.isfinite(h)):
            raise ValueError(
                f"{self.name}: {f.shape} frequencies and {h.shape} values; expected positive "
                "frequencies [Hz] and as many finite complex values."
            )
        if not np.all(sd > 0):
            raise ValueError(
                f"{self.name}: sd has zeros or negative numbers; expected positive standard "
                "deviations."
            )
        for field, value in (("frequencies", f), ("values", h), ("sd", sd)):
            object.__setattr__(self, field, value)

    @classmethod
    def from_period(
        cls,
        experiment: Experiment,
        input: str,
        output: str,
        lines: Sequence[int] | np.ndarray | None = None,
        **others: Any,
    ) -> "FrequencyResponse":
        """Divide the Fourier transforms of a recording of whole periods of a periodic input.

        Arguments:
            experiment: one or several whole periods.
            input, output: joint and sensor.
            lines: indices of the DFT that the input excites (default: found from the input).
                Keep some for validation with :meth:`pick`.
            others: other fields of the response.

        Returns:
            The response, with standard deviations of white noise on the output.
        """
        current = input in experiment.currents
        u = (experiment.currents if current else experiment.efforts)[input]
        y = experiment.sensors[output]
        if np.any(np.isnan(y)):
            raise ValueError(
                f"experiment {experiment.name!r}: sensors.{output} has gaps; a Fourier transform "
                "needs every sample."
            )
        n = len(y)
        U, Y = np.fft.rfft(u), np.fft.rfft(y)
        f = np.fft.rfftfreq(n, (experiment.ts[-1] - experiment.ts[0]) / (n - 1))
        if lines is None:
            lines = np.flatnonzero(np.abs(U) > 0.05 * np.abs(U[1:]).max())
        lines = np.asarray([k for k in lines if k > 0])
        others = {"name": f"response of {experiment.name}", **others}
        return cls(
            f[lines],
            Y[lines] / U[lines],
            input,
            output,
            sd=np.abs(U[lines]).max() / np.abs(U[lines]),
            current=current,
            **others,
        )

    @classmethod
    def from_noise(
        cls,
        experiment: Experiment,
        input: str,
        output: str,
        segment: float,
        band: tuple[float, float] | None = None,
        **others: Any,
    ) -> "FrequencyResponse":
        """Average over half-overlapping segments of a recording (H1, Hann window).

        Arguments:
            experiment: a recording with any broadband input.
            input, output: joint and sensor.
            segment: length of a segment [s].
            band: (low, high) [Hz] to keep.
            others: other fields of the response.

        Returns:
            The response, with standard deviations from the coherence.
        """
        from scipy.signal import coherence, csd, welch

        current = input in experiment.currents
        u = (experiment.currents if current else experiment.efforts)[input]
        y = experiment.sensors[output]
        step = (experiment.ts[-1] - experiment.ts[0]) / (len(experiment.ts) - 1)
        options = {"fs": 1 / step, "nperseg": int(round(segment / step)), "detrend": "constant"}
        f, suy = csd(u, y, **options)
        _, suu = welch(u, **options)
        _, gamma = coherence(u, y, **options)
        # Neighbouring segments share half of their samples.
        averages = max(1.0, 2 * len(y) / options["nperseg"] - 1) * 0.75
        H = suy / suu
        sd = np.abs(H) * np.sqrt((1 - gamma).clip(1e-6) / (2 * gamma.clip(1e-6) * averages))
        low, high = band or (0.0, np.inf)
        keep = (f > max(low, 0.0)) & (f <= high)
        others = {"name": f"response of {experiment.name}", **others}
        return cls(f[keep], H[keep], input, output, sd=sd[keep], current=current, **others)

    def pick(self, rows: Any) -> "FrequencyResponse":
        """Only these frequencies (indices, a slice or a mask)."""
        return dataclasses.replace(
            self, frequencies=self.frequencies[rows], values=self.values[rows], sd=self.sd[rows]
        )

    @property
    def channels(self) -> tuple[str, ...]:
        return (f"{self.input} to {self.output}",)

    def faults(self, robot: Robot) -> list[str]:
        faults = []
        joints = {j.name: j for j in robot.tree_joints}
        if self.input not in joints:
            faults.append(
                f"input: {self.input!r} is no joint; expected one of {', '.join(joints)}."
            )
        elif self.current and joints[self.input].torque_constant is None:
            faults.append(NEEDS_CONSTANT.format(name=self.input))
        sensors = [s.name for s in robot.sensors]
        if self.output not in sensors:
            faults.append(
                f"output: {self.output!r} is no sensor; expected one of "
                f"{', '.join(sensors) or 'none'}."
            )
        return faults

    @property
    def rows(self) -> np.ndarray:
        """The frequency that each measured value belongs to."""
        return np.tile(np.arange(len(self.frequencies)), 2)

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """(values, standard deviations), real parts then imaginary parts."""
        values = np.concatenate([self.values.real, self.values.imag])
        return values, np.concatenate([self.sd, self.sd])

    def predict(self, model: AbstractModel) -> jax.Array:
        H = self.response(model)
        return jnp.concatenate([H.real, H.imag])

    def response(self, model: AbstractModel, frequencies: NumbersLike | None = None) -> jax.Array:
        """The model's complex response at these frequencies [Hz] (default: the measured ones)."""
        linear = linearise(model, self.drive, self.at)
        if self.input not in linear.inputs:
            raise ValueError(
                f"{self.name}: the effort of {self.input!r} is no input of the linearised model "
                f"({', '.join(linear.inputs)}); free that joint in drive."
            )
        b = linear.B[:, linear.inputs.index(self.input)]
        row = linear.outputs.index(self.output)
        c, d = linear.C[row], linear.D[row, linear.inputs.index(self.input)]
        frequencies = self.frequencies if frequencies is None else frequencies
        w = 2 * jnp.pi * jnp.asarray(frequencies, linear.A.dtype)
        eye, b = jnp.eye(linear.A.shape[0], dtype=linear.A.dtype), b.astype(complex)
        H = jax.vmap(lambda w: c @ jnp.linalg.solve(1j * w * eye - linear.A, b) + d)(w)
        sensor = next(s for s in model.robot.sensors if s.name == self.output)
        if sensor.lowpass is not None:
            w0 = 2 * jnp.pi * sensor.lowpass.frequency
            H = H * w0**2 / (w0**2 - w**2 + 2j * sensor.lowpass.zeta * w0 * w)
        if sensor.delay is not None:
            H = H * jnp.exp(-1j * w * sensor.delay)
        if self.current:
            constant = model.robot.joints[model.robot.joint_index(self.input)].torque_constant
            if constant is None:
                raise ValueError(NEEDS_CONSTANT.format(name=self.input))
            H = H * constant
        return H

    def shown(self, values: ArrayLike) -> np.ndarray:
        n = len(self.frequencies)
        return np.asarray(values)[:n] + 1j * np.asarray(values)[n:]


Data = Experiment | Modal | ModalTrack | FrequencyResponse
