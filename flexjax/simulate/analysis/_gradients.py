"""check_gradients: forward mode, reverse mode and finite differences side by side."""

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from flexjax._compile import jit
from flexjax._html import bars, block

RATIO = 3  # of one step of the differences to the last


class GradientTable(eqx.Module):
    """Forward, reverse and finite-difference derivative of every component of the float leaves."""

    names: tuple[str, ...] = eqx.field(static=True)
    forward: np.ndarray
    reverse: np.ndarray
    finite: np.ndarray
    uncertainty: np.ndarray  # estimated error of the differences
    scale: np.ndarray  # a typical size of that component

    @property
    def error(self) -> np.ndarray:
        """Disagreement per component, relative to the derivative, or to a thousandth of the largest
        scaled derivative if that is larger: below it, round-off dominates the differences."""
        size = np.maximum(
            np.abs(self.finite),
            np.max(np.abs(self.finite * self.scale), initial=0.0) / self.scale * 1e-3,
        )
        gaps = np.maximum(np.abs(self.forward - self.reverse), np.abs(self.reverse - self.finite))
        return np.where(size > 0, gaps / np.where(size > 0, size, 1.0), gaps)

    def _repr_html_(self) -> str:
        return block(str(self), bars(dict(zip(self.names, self.error, strict=True)), "error"))

    @property
    def worst(self) -> float:
        return float(np.max(self.error, initial=0.0))

    @property
    def zero(self) -> list[str]:
        """Names whose derivative is exactly zero in reverse mode."""
        return [n for n, g in zip(self.names, self.reverse, strict=True) if g == 0.0]

    def __str__(self) -> str:
        width = max([len(n) for n in self.names] + [4])
        rows = [
            f"{'leaf':<{width}}  {'forward':>15}  {'reverse':>15}  {'differences':>15}  "
            f"{'+-':>8}  {'error':>8}"
        ]
        for row in zip(
            self.names,
            self.forward,
            self.reverse,
            self.finite,
            self.uncertainty,
            self.error,
            strict=True,
        ):
            rows.append(
                f"{row[0]:<{width}}  {row[1]:15.8g}  {row[2]:15.8g}  {row[3]:15.8g}  "
                f"{row[4]:8.1e}  {row[5]:8.1e}"
            )
        return "\n".join([*rows, f"worst relative disagreement {self.worst:.1e}"])


def check_gradients(
    fn: Callable[..., Any], args: tuple, *, step: float = 1e-3, levels: int = 5
) -> GradientTable:
    """Compare derivatives of a scalar function with respect to every float leaf of ``args``:
    forward mode, reverse mode and finite differences.

    The differences use ``levels`` relative steps, ``step`` and each three times the last. Every
    three neighbouring steps are extrapolated to step zero; the value with the smallest estimated
    error counts, and the table's column +- shows this estimate. The differences are central, or
    one-sided where a parameter is at an end of its range (a load at s = 1).

    Arguments:
        fn: A function that returns a scalar.
        args: Its arguments, a tuple of pytrees such as ``(robot, drive)``.
        step: The smallest step, relative to the size of each leaf.
        levels: The number of steps, at least three.

    Returns:
        A ``GradientTable``: print it, or read ``worst``, ``error``, ``zero``.

    Raises:
        ValueError: an argument is invalid; the message gives its value and what was expected.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> print(fx.check_gradients(lambda x: jnp.sum(x**2), (jnp.array([1.0, 2.0]),)).worst < 1e-6)
    True
    """
    if levels < 3:
        raise ValueError(f"levels: {levels}; expected at least three steps to extrapolate from.")
    if not isinstance(args, tuple):
        raise ValueError(
            f"args: {type(args).__name__}; expected a tuple of the function's arguments, e.g. "
            "(robot,)."
        )
    flat, names, scale, build = _components(args)

    def scalar(x):
        return fn(*build(x))

    x0 = jnp.asarray(flat)
    value = jax.eval_shape(scalar, x0)
    if value.shape != ():
        raise ValueError(
            f"fn: returns shape {value.shape}; expected a scalar. Sum or pick one component."
        )
    reverse = np.asarray(jit(jax.grad(scalar))(x0))
    eye = np.eye(flat.size)
    both = jit(lambda x, v: jax.jvp(scalar, (x,), (v,)))
    forward, compiling, begin = [], 0.0, time.perf_counter()
    for k, e in enumerate(eye):
        forward.append(float(both(x0, jnp.asarray(e))[1]))
        if k == 0:
            compiling, begin = time.perf_counter() - begin, time.perf_counter()
    running = time.perf_counter() - begin
    # The program of the forward derivatives gives values too, for about twice their cost: one of
    # their own only where that is worth compiling it.
    alone = (
        jit(scalar) if levels * running > compiling else lambda x: both(x, jnp.zeros_like(x0))[0]
    )

    def secant(e, upper, lower):
        ends = [float(alone(jnp.asarray(flat + h * e))) for h in (upper, lower)]
        return (ends[0] - ends[1]) / (upper - lower)

    def slope(e, s):
        steps = [step * s * RATIO**k for k in range(levels)]
        central = extrapolate([secant(e, h, -h) for h in steps])
        if math.isfinite(central[0]):
            return central
        sides = [
            extrapolate([secant(e, h, 0) for h in sign * np.array(steps)], 1) for sign in (1, -1)
        ]
        return min(sides, key=lambda side: side[1])

    slopes = [slope(e, s) for e, s in zip(eye, scale, strict=True)]
    finite, uncertainty = (np.array([x[i] for x in slopes]) for i in (0, 1))
    return GradientTable(names, np.array(forward), reverse, finite, uncertainty, scale)


def _components(
    args: tuple,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray, Callable[[Array], tuple]]:
    """All float components of ``args``, their names, the size of a change of each, and a function
    that builds ``args`` from the components."""
    floats, rest = eqx.partition(args, eqx.is_inexact_array)
    paths, treedef = jax.tree_util.tree_flatten_with_path(floats)
    leaves = [leaf for _, leaf in paths]
    names = tuple(
        f"{jax.tree_util.keystr(p).lstrip('.')}{_component(i, leaf.shape)}"
        for p, leaf in paths
        for i in range(leaf.size)
    )

    def build(x):
        parts = jnp.split(x, np.cumsum([leaf.size for leaf in leaves])[:-1]) if leaves else []
        made = [
            part.reshape(leaf.shape).astype(leaf.dtype)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
        return eqx.combine(jax.tree_util.tree_unflatten(treedef, made), rest)

    none = [np.zeros(0)]
    flat = np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves] or none)
    # A number that is zero is changed by the size of its neighbours in the same array, or by a
    # tenth where all are zero.
    largest = [np.max(np.abs(np.asarray(leaf)), initial=0.0) or 0.1 for leaf in leaves]
    sizes = [np.full(leaf.size, x) for leaf, x in zip(leaves, largest, strict=True)]
    return flat, names, np.concatenate(sizes or none), build


def extrapolate(slopes: list[float], order: int = 2) -> tuple[float, float]:
    """(Differences with steps h, 3 h, 9 h, ... extrapolated to step zero, estimate of the error).

    ``order`` is that of the differences: 2 if central, 1 if one-sided. Steps from the first one
    that leaves the range of a parameter (NaN) are left out; fewer than three steps give NaN. Three
    neighbouring steps give one value of three times the order, and two of twice the order, whose
    gap estimates round-off and curvature. The gap may be small by chance, so it is also compared
    with the value of the next larger steps.
    """
    slopes = list(itertools.takewhile(math.isfinite, slopes))
    if len(slopes) < 3:
        return math.nan, math.inf
    a, b = RATIO**order, RATIO ** (2 * order)
    doubled = [(a * x - y) / (a - 1) for x, y in itertools.pairwise(slopes)]
    tripled = [(b * x - y) / (b - 1) for x, y in itertools.pairwise(doubled)]
    gaps = [abs(x - y) for x, y in itertools.pairwise(doubled)]
    uncertainties = [
        max(gap, abs(x - y))
        for gap, x, y in zip(gaps, tripled, [*tripled[1:], tripled[-1]], strict=True)
    ]
    k = int(np.argmin(uncertainties))
    if uncertainties[k] > 1e-3 * abs(tripled[k]) and abs(doubled[0] - slopes[0]) < uncertainties[k]:
        # No three steps agree to three digits: a kink lies within all but the two smallest (a joint
        # that ends its run just before a stop).
        return doubled[0], abs(doubled[0] - slopes[0])
    return tripled[k], uncertainties[k]


def _component(i: int, shape: tuple[int, ...]) -> str:
    return (
        "" if shape == () else "[" + ",".join(str(int(k)) for k in np.unravel_index(i, shape)) + "]"
    )
