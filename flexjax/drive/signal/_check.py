"""Checks of signals at construction, and of values that were replaced or traced later."""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from flexjax._types import NumbersLike, is_traced

POSITIVE = ("duration", "ramp", "period")  # fields of signals that are positive times


def as_concrete(x: NumbersLike) -> np.ndarray | None:
    return None if is_traced(x) else np.asarray(x)


class Range(NamedTuple):
    """The range of one parameter, checked on the host, or by the program where it is traced."""

    field: str
    value: Array | None
    good: Callable[[Any], Any]  # elementwise, for numpy and traced arrays
    expected: str

    def faults(self, where: str) -> list[str]:
        return value_fault(f"{where}.{self.field}", self.value, self.good, self.expected)

    def holds(self) -> Bool[Array, ""]:
        return jnp.asarray(True) if self.value is None else jnp.all(self.good(self.value))


def value_fault(where: str, value: NumbersLike | None, good: Callable, expected: str) -> list[str]:
    """A fault unless every entry of ``value`` is good; none where it is absent or traced."""
    known = None if value is None else as_concrete(value)
    if known is None or np.all(good(known)):
        return []
    long = known.size > 8
    shown = np.array2string(known, threshold=8, separator=", ") if long else known.tolist()
    return [f"{where}: {shown}; expected {expected}."]


def positive_times(signal: Any) -> list[Range]:
    expected = "a positive time in seconds"
    given = [(name, getattr(signal, name, None)) for name in POSITIVE]
    return [Range(name, x, lambda x: x > 0, expected) for name, x in given]


def increasing(times: Array) -> Range:
    return Range("times", times, lambda t: t[1:] > t[:-1], "increasing times")


def in_order(times: Array) -> Range:
    """Neighbours may be equal: a piece without length."""
    return Range("times", times, lambda t: t[1:] >= t[:-1], "increasing times")


def refuse(owner: str, field: str, value: Any, expected: str, remedy: str) -> NoReturn:
    raise ValueError(
        f"{owner}: {field} = {np.asarray(value).tolist()}, expected {expected}. {remedy}"
    )


def check_finite(owner: str, **fields: NumbersLike) -> None:
    for name, x in fields.items():
        value = as_concrete(x)
        if value is not None and not np.all(np.isfinite(value)):
            remedy = "Remove or fill in the NaN and infinite entries."
            refuse(owner, name, value, "finite numbers", remedy)


def check_scalar(owner: str, **fields: NumbersLike) -> None:
    """Expect finite numbers of shape (); shapes are known in a trace too."""
    for name, x in fields.items():
        if np.shape(x) != ():
            remedy = f"Give {name} as one number; use stack for several."
            refuse(owner, f"shape of {name}", np.shape(x), "()", remedy)
    check_finite(owner, **fields)


def check_positive(owner: str, **fields: NumbersLike) -> None:
    check_scalar(owner, **fields)
    for name, x in fields.items():
        value = as_concrete(x)
        if value is not None and not value > 0:
            refuse(owner, name, value, "a positive time in seconds", f"Give {name} > 0.")


def check_times(owner: str, at_least: int, **fields: NumbersLike) -> None:
    for name, x in fields.items():
        shape = np.shape(x)
        if len(shape) != 1 or shape[0] < at_least:
            expected, remedy = f"(n,) with n >= {at_least}", f"Give {name} as a list of times."
            refuse(owner, f"shape of {name}", shape, expected, remedy)
        check_finite(owner, **{name: x})
        value = as_concrete(x)
        if value is not None and not np.all(np.diff(value) > 0):
            k = int(np.argmin(np.diff(value) > 0))
            remedy = "Sort the samples and drop repeated times."
            refuse(owner, f"{name}[{k}:{k + 2}]", value[k : k + 2], "increasing times", remedy)


def check_same_length(owner: str, times: NumbersLike, values: NumbersLike) -> None:
    if np.ndim(values) < 1 or np.shape(values)[0] != np.shape(times)[0]:
        expected, remedy = (
            f"{np.shape(times)[0]} rows, one per time",
            "Give as many values as times.",
        )
        refuse(owner, "shape of values", np.shape(values), expected, remedy)
    check_finite(owner, values=values)


def check_broadcast(owner: str, **fields: NumbersLike) -> None:
    """Expect values of one shape, or numbers beside it."""
    shapes = {np.shape(x) for x in fields.values()} - {()}
    if len(shapes) > 1:
        names = " and ".join(fields)
        remedy = "Give both as numbers or as equal vectors."
        refuse(owner, f"shapes of {names}", sorted(shapes), "equal shapes", remedy)
    check_finite(owner, **fields)


def check_motion(
    owner: str, duration: NumbersLike, begin: NumbersLike, **values: NumbersLike
) -> None:
    """Checks of a signal that changes between ``begin`` and ``begin + duration``."""
    check_positive(owner, duration=duration)
    check_scalar(owner, begin=begin)
    check_broadcast(owner, **values)
