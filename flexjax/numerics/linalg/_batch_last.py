"""Batches as the last axis: on CPU, XLA vectorises loops along a batch, not over components."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree


def to_last(x: Array, here: bool) -> Array:
    """``x`` with its batch axis, in front if ``here``, moved to the end."""
    # The barrier makes XLA copy once; otherwise every use reads the old layout in long strides.
    return lax.optimization_barrier(jnp.moveaxis(x, 0, -1)) if here else x


def batch_last(fn: Callable) -> Callable:
    """Make vmap add its axis at the end of the arguments of ``fn``, which takes any such axes.

    Only for functions that are never differentiated (a Newton iteration, a linear solve): their
    derivatives are written elsewhere.
    """
    call = jax.custom_batching.custom_vmap(fn)

    @call.def_vmap
    def rule(size, batched, *args):
        moved = [jax.tree.map(to_last, x, here) for x, here in zip(args, batched, strict=True)]
        wide = [widened(x, here, size) for x, here in zip(moved, batched, strict=True)]
        out = call(*wide)
        front = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out)
        return front, jax.tree.map(lambda _: True, out)

    return call


def vmap_last(fn: Callable, batched: PyTree[bool], *args: PyTree[Array]) -> PyTree[Array]:
    """vmap over the last axis of the leaves that ``batched`` marks; results have it last, too."""
    leaves, tree = jax.tree.flatten(args)
    axes = [-1 if here else None for here in jax.tree.leaves(batched)]
    call = lambda leaves: fn(*jax.tree.unflatten(tree, leaves))
    return jax.vmap(call, in_axes=(axes,), out_axes=-1)(leaves)


def widened(tree: PyTree[Array], batched: PyTree[bool], size: int) -> PyTree[Array]:
    """``tree`` with a last axis of ``size``; leaves that ``batched`` does not mark are repeated."""
    repeat = lambda x: jnp.broadcast_to(x[..., None], (*x.shape, size))
    return jax.tree.map(lambda x, here: x if here else repeat(x), tree, batched)


def materialise(here: Float[Array, ""], fn: Callable[[], PyTree[Array]]) -> PyTree[Array]:
    """The arrays of ``fn()``, each computed once and written to memory.

    XLA on CPU fuses cheap operations into every kernel that uses them, even through barriers, but
    not through a branch. ``here`` is known only at run time and above -1.
    """
    shape = jax.eval_shape(fn)
    zeros = lambda: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    return lax.cond(here > -1.0, fn, zeros)
