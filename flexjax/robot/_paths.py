"""Paths of parameters: ``links.upper.material.E``, ``joints.*.stiffness``, ``gravity``.

One resolver for every tree of modules, tuples and dicts whose leaves are float arrays. A path
addresses an element of a tuple by its ``name`` or index and a value of a dict by its key. Indices
after an array address its components (``gravity.1``, ``values.3.0``). ``*`` addresses all of them.
"""

import dataclasses
import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from flexjax._types import as_float
from flexjax.robot._table import columns, short
from flexjax.robot.check._check import check_robot
from flexjax.robot.parts._document import plain
from flexjax.robot.parts._fault import RobotError
from flexjax.robot.parts._fields import PARAMETERS, unit_of
from flexjax.robot.parts._joint import Joint

WHERE = "path"
ABSENT = "is absent in this robot; give the field in the description before it is set or freed"


class Found(NamedTuple):
    """A leaf that a path addresses.

    ``steps`` are the attributes, indices and keys from the root; ``index`` selects a component of
    an array (empty: the whole array).
    """

    path: str
    steps: tuple
    value: Any
    index: tuple[int, ...] = ()

    @property
    def part(self):
        """The addressed component, or the whole leaf."""
        return self.value[self.index] if self.index else self.value

    def components(self) -> "list[Found]":
        """Every scalar in it."""
        rest = np.ndindex(np.shape(self.value)[len(self.index) :])
        return [
            Found(".".join([self.path, *map(str, k)]), self.steps, self.value, (*self.index, *k))
            for k in rest
        ]

    def leaf_in(self, tree: Any):
        """The same leaf in a tree of the same structure, for ``eqx.tree_at``."""
        for step in self.steps:
            tree = _child(tree, step)
        return tree


class PathInfo(NamedTuple):
    value: Any
    unit: str


class Paths(dict):
    """Value and unit of every parameter by path; prints as a table."""

    def __str__(self) -> str:
        return "\n".join(
            columns(
                [
                    ["path", "value", "unit"],
                    *([p, short(plain(i.value)), i.unit] for p, i in self.items()),
                ],
                indent="",
            )
        )


def paths(robot: Any) -> Paths:
    """List every parameter of a robot by its path, with value and unit.

    ``robot.replace`` sets a parameter by its path; ``identify`` estimates parameters by path.

    Arguments:
        robot: a robot, or another pytree such as a drive.

    Returns:
        A dict from path to ``(value, unit)``, which prints as a table.

    >>> import flexjax as fx
    >>> fx.paths(fx.load_robot("metal-link"))["links.link.section.width"].unit
    'm'
    """
    return Paths(
        {found.path: PathInfo(found.value, _unit(robot, found)) for found in _leaves(robot, (), ())}
    )


def find_leaves(tree: Any, path: str) -> list[Found]:
    """The leaves of ``tree`` at ``path``; an error lists similar paths if there is none."""
    if not isinstance(path, str) or not path:
        raise RobotError(WHERE, [f"{path!r}: expected text such as 'links.upper.material.E'"])
    found = list(_resolve(tree, path.split("."), (), (), path, tree))
    if not found:
        raise RobotError(WHERE, [f"{path!r}: no element has it.{_near(tree, path)}"])
    return found


def get_path(tree: Any, path: str):
    """The parameter at ``path``; a list of parameters if the path contains a star."""
    values = [found.part for found in find_leaves(tree, path)]
    return values if "*" in path.split(".") else values[0]


def set_path(tree: Any, path: str, value: Any):
    """A copy of ``tree`` with the parameter at ``path`` set to ``value``, which may be traced.

    A path with a star sets every parameter that it addresses.

    >>> import flexjax as fx
    >>> arm = fx.load_robot("metal-link").replace("links.*.length", 0.7)
    """
    leaves: dict[tuple, tuple[Found, Any]] = {}
    for found in find_leaves(tree, path):
        old = leaves[found.steps][1] if found.steps in leaves else found.value
        leaves[found.steps] = (found, _placed(found, old, value))
    new = eqx.tree_at(
        lambda t: [found.leaf_in(t) for found, _ in leaves.values()],
        tree,
        [leaf for _, leaf in leaves.values()],
        is_leaf=lambda x: x is None,
    )
    if isinstance(new, _robot_class()):
        check_robot(new)
    return new


def _placed(found: Found, old: Any, value: Any):
    """The leaf ``old`` with ``value`` at the place that the path addresses."""
    try:
        new = as_float(value)
    except (TypeError, ValueError):
        raise RobotError(WHERE, [f"{found.path} = {value!r}: expected numbers"]) from None
    if not isinstance(old, jax.Array | np.ndarray):
        return new
    wanted = np.shape(old)[len(found.index) :]
    if np.shape(new) != wanted:
        expected = "one number" if wanted == () else f"numbers of shape {wanted}"
        raise RobotError(WHERE, [f"{found.path}: got shape {np.shape(new)}, expected {expected}."])
    new = jnp.asarray(new, dtype=old.dtype)
    return jnp.asarray(old).at[found.index].set(new) if found.index else new


def _robot_class():
    from flexjax.robot._robot import Robot

    return Robot


# ---- walking a tree -----------------------------------------------------------------------------


def _children(node: Any) -> list[tuple[str, Any, Any]] | None:
    """(label, step, child) of every child of a node, absent ones included; ``None`` for a leaf."""
    if isinstance(node, eqx.Module):
        fields = [f for f in dataclasses.fields(node) if not f.metadata.get("static")]
        return [(f.name, f.name, getattr(node, f.name)) for f in fields]
    if isinstance(node, dict):
        return [(str(key), key, child) for key, child in node.items()]
    if isinstance(node, list | tuple):
        return [(_label(child, i), i, child) for i, child in enumerate(node)]
    return None


def _child(node: Any, step: Any) -> Any:
    return getattr(node, step) if isinstance(node, eqx.Module) else node[step]


def _label(child: Any, index: int) -> str:
    name = getattr(child, "name", None) if isinstance(child, eqx.Module) else None
    return name if isinstance(name, str) and name else str(index)


def _is_number(leaf: Any) -> bool:
    return isinstance(
        leaf, jax.Array | np.ndarray | float | jax.ShapeDtypeStruct
    ) and not isinstance(leaf, bool)


def _leaves(node: Any, labels: tuple, steps: tuple) -> Iterator[Found]:
    children = _children(node)
    if children is None:
        if _is_number(node):
            yield Found(".".join(labels), steps, node)
        return
    for label, step, child in children:
        yield from _leaves(child, (*labels, label), (*steps, step))


def _resolve(
    node: Any, words: list[str], labels: tuple, steps: tuple, path: str, root: Any
) -> Iterator[Found]:
    children = _children(node)
    if children is None:
        yield from _components(node, words, labels, steps, path, root)
        return
    if not words:
        raise RobotError(WHERE, [_several(node, labels, steps, path, root)])
    word, rest = words[0], words[1:]
    if word == "*":
        for label, step, child in children:
            try:
                yield from _resolve(child, rest, (*labels, label), (*steps, step), path, root)
            except RobotError:
                continue  # a star selects the elements that have the field
        return
    chosen = [c for c in children if c[0] == word] or [
        c for i, c in enumerate(children) if isinstance(node, list | tuple) and word == str(i)
    ]
    if not chosen:
        here = ".".join(labels) or "the tree"
        names = [label for label, _, _ in children]
        close = difflib.get_close_matches(word, names, 1, cutoff=0.5)
        listed = f" it has {', '.join(names) or 'nothing'}."
        hint = f" did you mean {close[0]!r}?" if close else listed
        raise RobotError(WHERE, [f"{path!r}: {here} has no {word!r};{hint}{_near(root, path)}"])
    label, step, child = chosen[0]
    yield from _resolve(child, rest, (*labels, label), (*steps, step), path, root)


def _components(
    node: Any, words: list[str], labels: tuple, steps: tuple, path: str, root: Any
) -> Iterator[Found]:
    """The components that indices after a leaf address."""
    if not _is_number(node):
        raise RobotError(WHERE, [f"{path!r}: {'.'.join(labels)} {ABSENT}.{_near(root, path)}"])
    indices: list[tuple[int, ...]] = [()]
    for axis, word in enumerate(words):
        size = np.shape(node)[axis] if axis < np.ndim(node) else 0
        if not size or word != "*" and not (word.isdecimal() and int(word) < size):
            what = f"has {size} components" if size else "is a number"
            here = ".".join((*labels, *words[:axis]))
            raise RobotError(WHERE, [f"{path!r}: {here} {what}.{_near(root, path)}"])
        more = range(size) if word == "*" else [int(word)]
        indices = [(*index, k) for index in indices for k in more]
    for index in indices:
        yield Found(".".join((*labels, *map(str, index))), steps, node, index)


def _several(node: Any, labels: tuple, steps: tuple, path: str, root: Any) -> str:
    """Why a path that ends before a leaf addresses no parameter."""
    inside = [found.path for found in _leaves(node, labels, steps)]
    here = ".".join(labels) or "the whole tree"
    if inside:
        return f"{path!r}: {here} has several parameters: {', '.join(inside[:12])}."
    return f"{path!r}: {here} {ABSENT}.{_near(root, path)}"


def _near(root: Any, path: str) -> str:
    names = [found.path for found in _leaves(root, (), ())]
    close = difflib.get_close_matches(path, names, 4, cutoff=0.3)
    return f" Near: {', '.join(close)}." if close else ""


def _unit(root: Any, found: Found) -> str:
    node: Any = root
    joint_type = None
    for step in found.steps[:-1]:
        node = _child(node, step)
        joint_type = node.type if isinstance(node, Joint) else joint_type
    fields = PARAMETERS.get(type(node).__name__, {})
    parameter = fields.get(found.steps[-1]) if found.steps else None
    return unit_of(parameter, joint_type) if parameter else ""
