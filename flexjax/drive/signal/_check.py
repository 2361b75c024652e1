"""Checks of signals at construction; the compiled program checks traced times."""

from typing import Any, NoReturn

import numpy as np

from flexjax._types import NumbersLike, is_traced

# Fields of signals that are positive times: ``check_positive`` refuses others on the host, and the
# program itself checks them where they are traced.
POSITIVE = ("duration", "ramp", "period")


def as_concrete(x: NumbersLike) -> np.ndarray | None:
    return None if is_traced(x) else np.asarray(x)


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
