"""Random changes of documents (dicts, lists, numbers, texts) and of bytes, for hypothesis."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["links", "joints", "name", "length", "type", "parent", "child", "axis", "body", "mass", "E"]
    + ["motion", "effort", "pd", "loads", "wrench", "start", "rates", "value", "s", "frame", "kp"]
    + ["shape", "dtype", "chunks", "filters", "compressor", "id", "class", "fields", "array"]
)
NASTY = st.sampled_from(
    ["", ".", "..", "../../etc/passwd", "/dev/zero", "nan", "</script><script>", "'; --", "\x00"]
    + ["\x1b[2J", "a" * 5000, "\u202e", "ground", "*", "0", "__main__", "%s%n", "{0.__class__}"]
)
NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**63, 10**400, -(10**400), 0.0, -0.0, 1e308, 5e-324, 1e-9]),
    st.floats(),
    st.integers(-5, 5),
)
SCALARS = st.one_of(NUMBERS, st.booleans(), NASTY, st.text(max_size=8))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.one_of(NAMES, NASTY, st.text(max_size=4)), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(node: Any, path: tuple = ()) -> list[tuple]:
    """Paths of everything in a document but the document itself."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, value in pairs:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


@st.composite
def changed(draw, document: dict) -> dict:
    """The document with one to three entries replaced, removed, doubled, renamed or nested."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        options = places(document)
        if not options:
            break
        *path, key = draw(st.sampled_from(options))
        node = document
        for step in path:
            node = node[step]
        how = draw(st.sampled_from(["replace", "replace", "remove", "double", "rename", "nest"]))
        if how == "replace":
            node[key] = draw(VALUES)
        elif how == "remove":
            del node[key]
        elif how == "nest":
            as_dict = draw(st.booleans())
            for _ in range(draw(st.sampled_from([1, 2, 70, 3000]))):
                node[key] = {"a": node[key]} if as_dict else [node[key]]
            break  # too deep to be walked once more
        elif isinstance(node, list):
            node += [node[key]] * draw(st.sampled_from([1, 2, 3000]))
        elif how == "rename":
            node[draw(st.one_of(NAMES, NASTY))] = node.pop(key)
        else:
            node[draw(NAMES)] = node[key]
    return document


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """The bytes cut off, changed, doubled, or something else altogether."""
    how = draw(st.sampled_from(["cut", "change", "change", "change", "insert", "other"]))
    if how == "cut":
        return content[: draw(st.integers(0, len(content)))]
    if how == "other" or not content:
        return draw(st.binary(max_size=200))
    new = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(new) - 1))
        if how == "insert":
            new[at:at] = draw(st.binary(min_size=1, max_size=16))
        else:
            new[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 127, 128, 255])))
    return bytes(new)


def toml(document: dict) -> str:
    """TOML of any document, one line per key of the top level; ``nan`` and huge integers too."""
    return "\n".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in document.items()) + "\n"


def _toml(value: Any) -> str:
    done: list[str] = []
    todo: list[Any] = [value]
    while todo:  # not recursive: documents are nested deeper than Python calls
        node = todo.pop()
        if isinstance(node, _Raw):
            done.append(node)
        elif isinstance(node, dict):
            todo.append(_Raw("}"))
            for i, (key, item) in reversed(list(enumerate(node.items()))):
                todo += [item, _Raw((", " if i else "") + json.dumps(str(key)) + " = ")]
            todo.append(_Raw("{"))
        elif isinstance(node, list):
            todo.append(_Raw("]"))
            for item in reversed(node):
                todo += [_Raw(", "), item]
            todo.append(_Raw("["))
        elif isinstance(node, bool):
            done.append("true" if node else "false")
        elif isinstance(node, str):
            done.append(json.dumps(node))
        else:
            done.append(repr(node))
    return "".join(done)


class _Raw(str):
    """Text that is TOML already."""
