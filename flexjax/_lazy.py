"""Packages whose names are imported at first use (PEP 562). Imports no jax."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from jaxtyping import Array


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__`` and ``__all__`` of a package; the stub beside it lists its names."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {
        alias.asname or alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def fetch(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    return fetch, sorted(modules)


def is_traced(x: Any) -> "TypeGuard[Array]":
    """Whether a value is only known when a compiled program runs."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)
