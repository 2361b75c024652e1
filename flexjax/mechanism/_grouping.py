"""One computation for many parts of a robot, in a program that does not grow with their number."""

import functools
from collections.abc import Callable, Hashable, Sequence

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree


def vmap_groups(f: Callable, items: Sequence[tuple[Hashable, PyTree]]) -> PyTree:
    """``f(facts, parameters)`` of every item, stacked in order.

    Items with equal facts and equally shaped parameters share one vmap: a hundred equal links
    compile like one. The parameters must not contain names.

    >>> one = jnp.ones(2)
    >>> vmap_groups(lambda n, x: n * x, [(1, one), (3, one), (1, 0 * one)])[:, 0]
    Array([1., 3., 0.], dtype=...)
    """
    groups: dict[tuple[Hashable, ...], list[int]] = {}
    for i, (facts, parameters) in enumerate(items):
        leaves, structure = jtu.tree_flatten(parameters)
        key = (facts, structure, tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves))
        groups.setdefault(key, []).append(i)
    parts = []
    for (facts, *_), members in groups.items():
        together = jtu.tree_map(lambda *x: jnp.stack(x), *[items[i][1] for i in members])
        own = functools.partial(f, facts)
        parts.append(jax.vmap(own, axis_size=len(members))(together))
    if len(parts) == 1:
        return parts[0]
    place = np.argsort(np.concatenate(list(groups.values())), kind="stable")
    return jtu.tree_map(lambda *x: jnp.concatenate(x)[place], *parts)
