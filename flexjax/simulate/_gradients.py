"""check_gradients: forward mode, reverse mode and finite differences side by side."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class GradientTable(eqx.Module):
    """Per float leaf (and component): forward, reverse, finite difference, and the largest relative disagreement."""

    names: tuple[str, ...] = eqx.field(static=True)
    forward: np.ndarray
    reverse: np.ndarray
    finite: np.ndarray
    scale: np.ndarray  # what one would call a change of size one in that component

    @property
    def error(self) -> np.ndarray:
        """Disagreement per component, relative to the derivative there, or to a thousandth of the largest scaled derivative of all where that is
        more (below it, round-off of the differences rules)."""
        size = np.maximum(np.abs(self.finite), np.max(np.abs(self.finite * self.scale), initial=0.0) / self.scale * 1e-3)
        gaps = np.maximum(np.abs(self.forward - self.reverse), np.abs(self.reverse - self.finite))
        return np.where(size > 0, gaps / np.where(size > 0, size, 1.0), gaps)

    @property
    def worst(self) -> float:
        return float(np.max(self.error, initial=0.0))

    @property
    def zero(self) -> list[str]:
        """Names whose derivative is exactly zero in reverse mode."""
        return [n for n, g in zip(self.names, self.reverse, strict=True) if g == 0.0]

    def __str__(self) -> str:
        width = max([len(n) for n in self.names] + [4])
        rows = [f"{'leaf':<{width}}  {'forward':>15}  {'reverse':>15}  {'differences':>15}  {'error':>8}"]
        for row in zip(self.names, self.forward, self.reverse, self.finite, self.error, strict=True):
            rows.append(f"{row[0]:<{width}}  {row[1]:15.8g}  {row[2]:15.8g}  {row[3]:15.8g}  {row[4]:8.1e}")
        return "\n".join([*rows, f"worst relative disagreement {self.worst:.1e}"])


def check_gradients(fn: Callable[..., Any], args: tuple, *, step: float = 1e-3, order: int = 4) -> GradientTable:
    """Derivatives of a scalar function by every float leaf of ``args`` (a tuple), three ways: forward mode, reverse mode, central differences of the given
    order (2 or 4) with a relative ``step``.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> print(fx.check_gradients(lambda x: jnp.sum(x**2), (jnp.array([1.0, 2.0]),)).worst < 1e-6)
    True
    """
    if not isinstance(args, tuple):
        raise ValueError(f"args: {type(args).__name__}; expected a tuple of the function's arguments, e.g. (robot,).")
    floats, rest = eqx.partition(args, eqx.is_inexact_array)
    paths, treedef = jax.tree_util.tree_flatten_with_path(floats)
    shapes = [leaf.shape for _, leaf in paths]
    sizes = [leaf.size for _, leaf in paths]
    flat = np.concatenate([np.asarray(leaf, float).ravel() for _, leaf in paths]) if paths else np.zeros(0)
    names = tuple(f"{jax.tree_util.keystr(p).lstrip('.')}{_component(i, leaf.shape)}" for p, leaf in paths for i in range(leaf.size))
    dtypes = [leaf.dtype for _, leaf in paths]

    def build(x):
        parts = jnp.split(x, np.cumsum(sizes)[:-1]) if sizes else []
        leaves = [p.reshape(s).astype(d) for p, s, d in zip(parts, shapes, dtypes, strict=True)]
        return eqx.combine(jax.tree_util.tree_unflatten(treedef, leaves), rest)

    def scalar(x):
        return fn(*build(x))

    x0 = jnp.asarray(flat)
    value = jax.eval_shape(scalar, x0)
    if value.shape != ():
        raise ValueError(f"fn: returns shape {value.shape}; expected a scalar. Sum or pick one component.")
    # A number that is zero is changed by the size of its neighbours in the same array, or by a tenth where all are zero.
    largest = [np.max(np.abs(np.asarray(leaf)), initial=0.0) or 0.1 for _, leaf in paths]
    scale = np.concatenate([np.full(n, x) for n, x in zip(sizes, largest, strict=True)]) if sizes else np.zeros(0)
    reverse = np.asarray(jax.jit(jax.grad(scalar))(x0))
    eye = np.eye(flat.size)
    # For few numbers one compiled program gives values and forward derivatives; for many, the differences are worth a program of their own.
    both = jax.jit(lambda x, v: jax.jvp(scalar, (x,), (v,)))
    alone = jax.jit(scalar)
    forward = np.array([float(both(x0, jnp.asarray(e))[1]) for e in eye])

    def f(x):
        return float(alone(jnp.asarray(x)) if flat.size > 20 else both(jnp.asarray(x), jnp.zeros_like(x0))[0])

    weights = {2: ((1, 0.5), (-1, -0.5)), 4: ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))}[order]
    finite = np.array([sum(w * f(flat + k * step * s * e) for k, w in weights) / (step * s) for e, s in zip(eye, scale, strict=True)])
    return GradientTable(names, forward, reverse, finite, scale)


def _component(i: int, shape) -> str:
    return "" if shape == () else "[" + ",".join(str(int(k)) for k in np.unravel_index(i, shape)) + "]"
