"""A robot document as TOML text. Numbers are written with ``repr``, so that reading them back gives the same bits."""

import json


def document_to_toml(document: dict) -> str:
    """Top-level keys first, then one ``[[table]]`` per link, joint, payload and sensor."""
    lines = [
        f"{key} = {_value(value)}" for key, value in document.items() if not _is_tables(key, value)
    ]
    for key, value in document.items():
        if _is_tables(key, value):
            for row in value:
                lines += [
                    "",
                    f"[[{key}]]",
                    *(f"{name} = {_value(item, top=True)}" for name, item in row.items()),
                ]
    return "\n".join(lines) + "\n"


def _is_tables(key: str, value) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _value(value, top: bool = False) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are TOML escapes; TOML also wants the delete character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float | int):
        return repr(value)
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
            if value
            else "{}"
        )
    if isinstance(value, list):
        if top and value and isinstance(value[0], dict):
            return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(
        f"{value!r} has no place in a robot file; its number is not known on the host (inside jit, vmap or grad?)"
    )
