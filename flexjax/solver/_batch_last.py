"""Batches as the last axis: on CPU, XLA vectorises inner loops along a batch, and not loops over three or six components."""

import jax
import jax.numpy as jnp
from jax import lax


def batch_last(fn):
    """``fn`` of arrays (own axes, ...) that takes any further axes at the end as a batch: under vmap the batch goes there instead of to the front. Only for
    functions that are never differentiated (a Newton iteration, a linear solve: their derivatives are written elsewhere)."""
    call = jax.custom_batching.custom_vmap(fn)

    @call.def_vmap
    def rule(size, batched, *args):
        def last(x, here):
            # The barrier makes XLA copy once: otherwise it reads the old layout in long strides wherever a number is used.
            return lax.optimization_barrier(jnp.moveaxis(x, 0, -1)) if here else jnp.broadcast_to(x[..., None], (*x.shape, size))

        out = call(*(jax.tree_util.tree_map(last, x, here) for x, here in zip(args, batched, strict=True)))
        return jax.tree_util.tree_map(lambda x: jnp.moveaxis(x, -1, 0), out), jax.tree_util.tree_map(lambda _: True, out)

    return call
