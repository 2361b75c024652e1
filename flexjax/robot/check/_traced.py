"""The ranges of parameters inside a compiled program, from the table of the checks on the host.

A traced parameter cannot be refused: it is known only when the program runs.
"""

import dataclasses
from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Bool

from flexjax.robot.parts._fields import PARAMETERS, RULES, SMALLER
from flexjax.robot.parts._link import Link


def parameters_hold(robot: eqx.Module) -> Bool[Array, ""]:
    """Whether every parameter of a robot, or of a part of it, is finite and in its range."""
    by_rule: dict[str, list[Array]] = {}
    holds = []
    for node in _modules(robot):
        kind = type(node).__name__
        for name, parameter in PARAMETERS.get(kind, {}).items():
            rule = parameter.rule
            if isinstance(node, Link) and name == "length" and node.body is None:
                rule = "positive"  # only a rigid link given by its body may have no length
            by_rule.setdefault(rule, []).append(getattr(node, name))
        for small, large, share in SMALLER.get(kind, ()):
            low, high = getattr(node, small), getattr(node, large)
            if low is not None and high is not None:
                holds.append(low < share * high)
    for rule, values in by_rule.items():
        leaves = [jnp.ravel(x) for x in jtu.tree_leaves(values)]
        if leaves:
            holds.append(jnp.all(RULES[rule].holds(jnp.concatenate(leaves))))
    return jnp.all(jnp.stack([jnp.all(x) for x in holds]))


def _modules(node: eqx.Module) -> Iterator[eqx.Module]:
    yield node
    for field in dataclasses.fields(node):  # pyright: ignore[reportArgumentType]
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, eqx.Module):
                yield from _modules(part)
