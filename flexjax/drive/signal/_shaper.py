"""Input shapers: a motion divided among delayed copies, whose vibrations cancel."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._compile import filter_jit
from flexjax._types import NumbersLike, PieceTime, ScalarLike, Times, as_float
from flexjax.drive.signal._base import AbstractSignal, Motion
from flexjax.drive.signal._check import as_concrete, refuse

Kind = Literal["zv", "zvd", "ei"]
KINDS = ("zv", "zvd", "ei")


class Shaped(AbstractSignal):
    """See `shape`."""

    signal: AbstractSignal
    delays: Float[Array, " n"] = eqx.field(converter=as_float)
    weights: Float[Array, " n"] = eqx.field(converter=as_float)

    def evaluate(self, t: ScalarLike, piece_time: PieceTime = None) -> Motion:
        def copy(delay):
            now = None if piece_time is None else piece_time - delay
            return self.signal.evaluate(t - delay, now)

        copies = jax.vmap(copy)(self.delays)
        return jax.tree.map(lambda x: jnp.tensordot(self.weights, x, axes=1), copies)

    @property
    def rate_jumps(self) -> bool:
        return self.signal.rate_jumps

    def breaks(self) -> Times:
        return (self.signal.breaks()[None, :] + self.delays[:, None]).reshape(-1)

    @property
    def lengthens(self) -> Float[Array, ""]:
        """Time by which the shaper prolongs the signal [s]."""
        return jnp.max(self.delays)


def shape(
    signal: AbstractSignal,
    modes: Any,
    kind: Kind = "zv",
    *,
    damping: NumbersLike = 0.0,
    vibration: float = 0.05,
) -> Shaped:
    """Shape a signal so that it leaves little vibration in given modes.

    The result is the signal convolved with a few impulses. Its end is later by half a period for
    every mode with "zv", and by a whole period with "zvd" and "ei". Several modes make a product
    of shapers. Shape the motions of all joints by the same modes.

    Arguments:
        signal: the signal, e.g. a quintic from rest to rest.
        modes: frequencies [Hz], a number or several; or the result of :func:`modes` about the
            goal, whose damping ratios are then used.
        kind: "zv" cancels the vibration at exactly these frequencies. "zvd" also has zero
            derivative with respect to the frequency. "ei" allows the share ``vibration`` at these
            frequencies and is insensitive over a wider band.
        damping: damping ratios, one or as many as frequencies.
        vibration: remaining share of the vibration for "ei".

    Returns:
        A signal. ``.lengthens`` is the time that it adds.

    Raises:
        ValueError: an argument is outside its range; the message gives its value and the range.

    >>> import flexjax as fx
    >>> shaped = fx.shape(fx.quintic(0.0, 1.0, 0.5), 4.0, kind="zv")
    >>> float(shaped.lengthens)
    0.125
    """
    if not isinstance(signal, AbstractSignal):
        raise ValueError(
            f"shape: signal = {type(signal).__name__}; expected a signal, e.g. "
            "fx.quintic(0.0, 1.0, 0.5). Shape the signal of each Motion."
        )
    if kind not in KINDS:
        refuse("shape", "kind", kind, "'zv', 'zvd' or 'ei'", "Choose one of these.")
    if not 0 <= vibration < 1:
        refuse("shape", "vibration", vibration, "a share from 0 to below 1", "Give e.g. 0.05.")
    if hasattr(modes, "frequencies"):
        frequencies, damping = modes.frequencies, modes.damping
    else:
        frequencies = modes
    frequencies = jnp.atleast_1d(as_float(frequencies))
    if np.ndim(damping) and np.shape(damping) != frequencies.shape:
        remedy = "Give one number for all modes, or one for each."
        refuse("shape", "shape of damping", np.shape(damping), f"{frequencies.shape}", remedy)
    damping = jnp.broadcast_to(as_float(damping), frequencies.shape)
    _check_modes(frequencies, damping)
    return Shaped(signal, *_all_impulses(frequencies, damping, kind, vibration))


def _check_modes(frequencies: Array, damping: Array) -> None:
    f, z = as_concrete(frequencies), as_concrete(damping)
    if frequencies.ndim != 1 or frequencies.shape[0] == 0:
        remedy = "Give the frequencies of the modes to suppress."
        refuse("shape", "shape of modes", frequencies.shape, "one frequency or several", remedy)
    if f is not None and not np.all((f > 0) & np.isfinite(f)):
        refuse("shape", "modes", f, "positive frequencies in Hz", "Leave out free motions.")
    if z is not None and not np.all((z > -1e-6) & (z < 1)):
        refuse("shape", "damping", z, "ratios from 0 to below 1", "Leave out damped motions.")


@filter_jit
def _all_impulses(
    frequencies: Array, damping: Array, kind: str, vibration: float
) -> tuple[Array, Array]:
    """Times and shares of the impulses for all modes."""
    delays, weights = jnp.zeros(1, frequencies.dtype), jnp.ones(1, frequencies.dtype)
    for f, z in zip(frequencies, damping, strict=True):
        times, shares = _impulses(f, z, kind, vibration)
        delays = (delays[:, None] + times[None, :]).reshape(-1)
        weights = (weights[:, None] * shares[None, :]).reshape(-1)
    return delays, weights


def _impulses(f: Array, z: Array, kind: str, vibration: float) -> tuple[Array, Array]:
    """Times and shares of the impulses for one mode. Damping weakens an earlier impulse by ``K``
    in half a period, so that a later one has to be weaker by as much."""
    root = jnp.sqrt(1 - z**2)
    half, K = 0.5 / (f * root), jnp.exp(-jnp.pi * z / root)
    plain = {
        "zv": (0.5, 0.5),
        "zvd": (0.25, 0.5, 0.25),
        "ei": ((1 + vibration) / 4, (1 - vibration) / 2, (1 + vibration) / 4),
    }[kind]
    step = jnp.arange(len(plain), dtype=f.dtype)
    shares = jnp.asarray(plain, f.dtype) * K**step
    return half * step, shares / jnp.sum(shares)
