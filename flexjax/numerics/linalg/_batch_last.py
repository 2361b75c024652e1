"""Batches as the last axis: on CPU, XLA vectorises inner loops along a batch, and not loops over three or six components."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree


def to_last(x: Array, here: bool) -> Array:
    """``x`` with its batch, in front if ``here``, at the end."""
    # The barrier makes XLA copy once: otherwise it reads the old layout in long strides wherever a number is used.
    return lax.optimization_barrier(jnp.moveaxis(x, 0, -1)) if here else x


def batch_last(fn: Callable) -> Callable:
    """``fn`` of arrays (own axes, ...) that takes any further axes at the end as a batch: under vmap the batch goes there instead of to the front. Only for
    functions that are never differentiated (a Newton iteration, a linear solve: their derivatives are written elsewhere)."""
    call = jax.custom_batching.custom_vmap(fn)

    @call.def_vmap
    def rule(size, batched, *args):
        out = call(
            *(
                widened(jax.tree_util.tree_map(to_last, x, here), here, size)
                for x, here in zip(args, batched, strict=True)
            )
        )
        return jax.tree_util.tree_map(
            lambda x: jnp.moveaxis(x, -1, 0), out
        ), jax.tree_util.tree_map(lambda _: True, out)

    return call


def vmap_last(fn: Callable, batched: PyTree[bool], *args: PyTree[Array]) -> PyTree[Array]:
    """vmap over the last axis of those leaves of ``args`` that the tree ``batched`` marks; the batch of the results is last, too."""
    leaves, tree = jax.tree_util.tree_flatten(args)
    axes = [-1 if here else None for here in jax.tree_util.tree_leaves(batched)]
    return jax.vmap(
        lambda leaves: fn(*jax.tree_util.tree_unflatten(tree, leaves)), in_axes=(axes,), out_axes=-1
    )(leaves)


def widened(tree: PyTree[Array], batched: PyTree[bool], size: int) -> PyTree[Array]:
    """``tree`` with a last axis of ``size`` on every leaf: leaves that ``batched`` does not mark are repeated."""
    return jax.tree_util.tree_map(
        lambda x, here: x if here else jnp.broadcast_to(x[..., None], (*x.shape, size)),
        tree,
        batched,
    )


def written(here: Float[Array, ""], fn: Callable[[], PyTree[Array]]) -> PyTree[Array]:
    """The arrays of ``fn()``, each written to memory once. XLA on CPU fuses cheap operations into every kernel that uses them, through barriers as well, and so
    computes them again for each of its rows; it does not look through a branch. ``here`` is a number that is only known at run time and above -1."""
    shape = jax.eval_shape(fn)
    return lax.cond(
        here > -1.0,
        fn,
        lambda: jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), shape),
    )
