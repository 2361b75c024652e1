"""Writes a robot document as TOML. ``repr`` writes numbers so that reading restores every bit."""

import json
from typing import Any


def document_to_toml(document: dict) -> str:
    """TOML text with the top-level keys first, then one ``[[table]]`` per link, joint, ..."""
    lines = [
        f"{key} = {toml_value(value)}"
        for key, value in document.items()
        if not _is_tables(key, value)
    ]
    for key, value in document.items():
        if _is_tables(key, value):
            for row in value:
                lines += [
                    "",
                    f"[[{key}]]",
                    *(f"{name} = {toml_value(item, top=True)}" for name, item in row.items()),
                ]
    return "\n".join(lines) + "\n"


def _is_tables(key: str, value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def toml_value(value: Any, top: bool = False) -> str:
    """One value as TOML; with ``top``, a list of tables has one line for each."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are TOML escapes; TOML also requires an escaped delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float | int):
        return repr(value)
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + " }"
            if value
            else "{}"
        )
    if isinstance(value, list):
        if top and value and isinstance(value[0], dict):
            return "[\n" + "".join(f"    {toml_value(item)},\n" for item in value) + "]"
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    raise TypeError(
        f"a robot file cannot contain {value!r}: the value is not known on the host. "
        "Save the robot outside jit, vmap and grad."
    )
