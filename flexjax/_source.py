"""Signatures read from source text: importing their modules would import jax.

The command line checks its arguments with them, so that a refusal takes no second.
"""

import ast
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


@cache
def _definitions(folder: str) -> dict[str, ast.stmt]:
    """Functions and classes of a folder's modules, by name."""
    return {
        node.name: node
        for file in sorted((PACKAGE / folder).glob("*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def parameters_of(folder: str, function: str) -> dict[str, bool]:
    """Positional parameters of a function in a folder of the package: name -> whether required."""
    found = _definitions(folder)[function]
    assert isinstance(found, ast.FunctionDef)  # the caller names a function
    names = [arg.arg for arg in (*found.args.posonlyargs, *found.args.args)]
    required = len(names) - len(found.args.defaults)
    return {name: i < required for i, name in enumerate(names)}


def fields_of(folder: str, name: str) -> dict[str, Any]:
    """Fields of an ``eqx.Module`` in a folder of the package: name -> default."""
    found = _definitions(folder)[name]
    assert isinstance(found, ast.ClassDef)  # the caller names a class
    return {
        node.target.id: _default(node.value)
        for node in found.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "ClassVar" not in ast.unparse(node.annotation)
    }


def _default(value: ast.expr | None) -> Any:
    """A literal default, or the ``default=`` of ``eqx.field``; None for any other expression."""
    if isinstance(value, ast.Call):
        value = next((k.value for k in value.keywords if k.arg == "default"), None)
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None
