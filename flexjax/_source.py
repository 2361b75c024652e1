"""Signatures and checks read from source text: importing their modules would import jax.

The command line checks its arguments with them, so that a refusal takes no second.
"""

import ast
import re
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parent


@cache
def _statements(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


def _defined(file: Path) -> dict[str, ast.stmt]:
    return {
        node.name: node
        for node in _statements(file)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


@cache
def _definition(folder: str, name: str) -> ast.stmt:
    """The function or class of that name in a folder's modules."""
    begins = re.compile(rf"^(def|class) {name}\b", re.MULTILINE)
    for file in sorted((PACKAGE / folder).glob("*.py")):
        # Parsing every file would take most of the time of a refusal.
        if begins.search(file.read_text(encoding="utf-8")):
            return _defined(file)[name]
    raise KeyError(f"{folder}: no {name}")


@cache
def _definitions(folder: str) -> dict[str, ast.stmt]:
    """Functions and classes of a folder's modules, by name."""
    files = sorted((PACKAGE / folder).glob("*.py"))
    return {name: node for file in files for name, node in _defined(file).items()}


def parameters_of(folder: str, function: str) -> dict[str, bool]:
    """Positional parameters of a function in a folder of the package: name -> whether required."""
    found = _definition(folder, function)
    assert isinstance(found, ast.FunctionDef)  # the caller names a function
    names = [arg.arg for arg in (*found.args.posonlyargs, *found.args.args)]
    required = len(names) - len(found.args.defaults)
    return {name: i < required for i, name in enumerate(names)}


def fields_of(folder: str, name: str) -> dict[str, Any]:
    """Fields of an ``eqx.Module`` in a folder of the package: name -> default."""
    found = _definition(folder, name)
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
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return ast.literal_eval(value.left) / ast.literal_eval(value.right)
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None


class Field(NamedTuple):
    """A field of an ``eqx.Module``; ``words`` are the names in its annotation, in order."""

    name: str
    words: tuple[str, ...]
    required: bool
    default: Any
    static: bool


def class_fields(folder: str, name: str) -> list[Field]:
    """The fields of an ``eqx.Module`` in a folder of the package, in order."""
    found = _definition(folder, name)
    assert isinstance(found, ast.ClassDef)  # the caller names a class
    return [_field(node) for node in found.body if isinstance(node, ast.AnnAssign)]


def _field(node: ast.AnnAssign) -> Field:
    words = re.findall(r"\w+", ast.unparse(node.annotation))
    keywords = node.value.keywords if isinstance(node.value, ast.Call) else []
    given = {k.arg: k.value for k in keywords}
    required = node.value is None or (bool(given) and "default" not in given)
    static = "static" in given and ast.literal_eval(given["static"])
    return Field(ast.unparse(node.target), tuple(words), required, _default(node.value), static)


def docstring_of(folder: str, name: str) -> str:
    """The docstring of a class in a folder of the package."""
    found = _definition(folder, name)
    assert isinstance(found, ast.ClassDef)
    return ast.get_docstring(found) or name


def types_of(folder: str, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Fields of classes in a folder: name -> the classes of the folder in its annotation.

    An abstract class stands for all that inherit from it.
    """
    classes = {k: v for k, v in _definitions(folder).items() if isinstance(v, ast.ClassDef)}
    found: dict[str, tuple[str, ...]] = {}
    for node in classes.values():
        if not {node.name, *map(ast.unparse, node.bases)} & set(names):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                words = re.findall(r"\w+", ast.unparse(field.annotation))
                found[field.target.id] = tuple(word for word in words if word in classes)
    return found


def module_of(folder: str, name: str) -> ModuleType | None:
    """A module of a folder that imports no jax, if there is one. Importing its package would."""
    path = PACKAGE / folder / f"{name}.py"
    if not path.is_file():
        return None
    spec = spec_from_file_location(f"flexjax.{folder.replace('/', '.')}.{name}", path)
    assert spec is not None and spec.loader is not None  # a file of the package
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_options(folder: str, name: str, options: dict[str, Any]) -> None:
    """Run the ``__check_init__`` of a formulation on the options, as its constructor would.

    A check that needs more than its own text, constants and checks that formulations share, or
    options that a converter changes, are left to the constructor.
    """
    found = _definition(folder, name)
    assert isinstance(found, ast.ClassDef)
    checks = [x for x in found.body if getattr(x, "name", "") == "__check_init__"]
    if not checks or any(isinstance(x, dict | tuple | list) for x in options.values()):
        return
    called = _functions(folder, _names_in(checks))
    names = _names_in([*checks, *called])
    space = _constants(folder, names)
    if "np" in names:  # for its types of numbers; a tenth of the time of importing jax
        import numpy as np

        space["np"] = np
    exec(compile(ast.Module([*called, *checks], []), f"{folder}:{name}", "exec"), space)
    try:
        space["__check_init__"](SimpleNamespace(**fields_of(folder, name) | options))
    except (NameError, AttributeError, TypeError):
        return


def _names_in(nodes: list[ast.stmt]) -> set[str]:
    return {x.id for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name)}


def _texts(folder: str) -> list[str]:
    """The modules of a folder and those below it."""
    return [file.read_text(encoding="utf-8") for file in sorted((PACKAGE / folder).rglob("*.py"))]


def _functions(folder: str, names: set[str]) -> list[ast.stmt]:
    """Those of ``names`` that are checks in the modules beside a folder, without annotations."""
    found: list[ast.stmt] = []
    wanted = {name for name in names if name.startswith("check_")}
    for file in sorted((PACKAGE / folder).parent.glob("*.py")) if wanted else ():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                for argument in node.args.args:
                    argument.annotation = None
                found.append(node)
    return found


def _constants(folder: str, names: set[str]) -> dict[str, Any]:
    """Those of ``names`` that are constants of a folder or one below it."""
    texts = _texts(folder)
    found: dict[str, Any] = {}
    for name in names:
        # Parsing every file would take most of the time of a refusal.
        lines = [text for text in texts if re.search(rf"^{name} = ", text, re.MULTILINE)]
        values = [_constant(x.value) for text in lines for x in _assignments(text, name)]
        if len(values) == 1:  # of two constants of one name, neither is known
            found[name] = values[0]
    for name, value in found.items():
        if isinstance(value, dict):
            known = _constants(folder, {x for x in value.values() if isinstance(x, _Name)})
            found[name] = {k: known.get(x) if isinstance(x, _Name) else x for k, x in value.items()}
    return {name: value for name, value in found.items() if value is not None}


def _assignments(text: str, name: str) -> list[ast.Assign]:
    """The statements of a module that set a name."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return [x for x in nodes if isinstance(x.targets[0], ast.Name) and x.targets[0].id == name]


class _Name(str):
    """The name of a constant, as a value in a table."""


def _constant(value: ast.expr) -> Any:
    """A literal, a table of literals and names, or None."""
    if isinstance(value, ast.Name):
        return _Name(value.id)
    if isinstance(value, ast.Dict) and all(isinstance(k, ast.Constant) for k in value.keys):
        keys = [k.value for k in value.keys if isinstance(k, ast.Constant)]
        return dict(zip(keys, map(_constant, value.values), strict=True))
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None
