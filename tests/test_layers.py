"""The import direction of the package, and that importing it does nothing.

The order below is the one of ARCHITECTURE.md: a module imports only from entries before its own.
"""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "flexjax"

LAYERS = (
    "_registry",
    "_html",
    "_lazy",
    "_source",
    "_files",
    "_configure",
    "_structure",
    "_kept",
    "_compile",
    "_deferred",
    "_phases",
    "_types",
    "_results",
    "_rules",
    "numerics.linalg",
    "numerics.screw",
    "numerics.beam",
    "numerics.term",
    "numerics.solver",
    "numerics",
    "robot",
    "drive.signal",
    "drive",
    "mechanism.joints",
    "mechanism.bodies",
    "mechanism",
    "mechanism.chain.geometry",
    "mechanism.chain.equations",
    "mechanism.chain",
    "formulation",
    "simulate.trajectory",
    "simulate.loop",
    "simulate",
    "simulate.analysis",
    "study.free",
    "study.identify",
    "study.optimise.problem",
    "study.optimise.search",
    "study.optimise.horizon",
    "study.optimise",
    "study.sweep",
    "study",
    "io",
    "viz.figures",
    "viz.scene",
    "viz.report",
    "viz",
    "cli",
    "cli.show",
    "cli.robot",
    "cli.study",
    "cli.demo",
    "__main__",
)
# Codes that results are compared with: in tests and benchmarks, and where robots are exported.
OUTSIDE = {"exudyn", "pinocchio", "pin", "mujoco"}


def _imports(tree: ast.AST, module: str, is_package: bool):
    """Dotted names that a module imports, at any depth of nesting: (line, name)."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{target}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            first = node.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def _layer(parts: list[str]) -> str | None:
    """The layer of a dotted module name without its leading "flexjax": the longest match."""
    names = (".".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    return next((name for name in names if name in LAYERS), None)


def faults(source: str, module: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports and the side effects of one module."""
    tree = parsed(source)
    parts = module.split(".")
    found = []
    own = _layer(parts[1:]) if len(parts) > 1 else None
    if len(parts) > 1 and own is None:
        return [
            f"{module}: {parts[1]!r} is in no layer; "
            "add it to ARCHITECTURE.md and to tests/test_layers.py"
        ]
    for line, name in _imports(tree, module, is_package):
        where = f"{module}:{line}"
        target = name.split(".")
        if target[-1] == "*":
            found.append(f"{where}: star import from {name[:-2]}")
        if target[0] in OUTSIDE and parts[1:3] != ["io", target[0]]:
            found.append(f"{where}: imports {target[0]}, which belongs in tests and benchmarks")
        if target[0] == "pydantic" and module != "flexjax.robot.files._file":
            found.append(f"{where}: imports pydantic, which lives in robot/files/_file.py only")
        if target[0] != "flexjax" or name == "flexjax.__version__":
            continue
        if len(parts) == 1 and name == "flexjax._registry.REGISTRY":
            continue  # a table without imports
        if len(parts) == 1:
            found.append(
                f"{where}: flexjax/__init__.py imports {name}; public names are fetched lazily"
            )
        elif len(target) == 1 or (layer := _layer(target[1:])) is None:
            found.append(f"{where}: imports {name} from the top; name the module it lives in")
        elif is_package and name.startswith(f"{module}."):
            continue  # a folder's `__init__` re-exports the names of the folders inside it
        elif LAYERS.index(layer) > LAYERS.index(own):
            found.append(f"{where}: layer {own!r} imports {name}, a layer above it")
        elif parts[1] == target[1] == "formulation" and len(parts) > 2 and len(target) > 2:
            folder, other = parts[2], target[2]
            if (
                not other.startswith("_")
                and other != folder
                and (PACKAGE / "formulation" / other).is_dir()
            ):
                found.append(f"{where}: one formulation imports another, {name}")
    # The command line, and the function that users call for it.
    if len(parts) > 1 and parts[1] in ("cli", "__main__", "_configure"):
        return found
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
        ):
            owner = node.func.value
            if (
                owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            ) == "config":
                found.append(f"{module}:{node.lineno}: changes a global setting of jax")
    return found


def _modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield path, ".".join(parts[:-1] if is_package else parts), is_package


parsed = functools.cache(ast.parse)  # several tests read the whole package


def test_tree_follows_the_layers():
    found = [
        f
        for path, module, is_package in _modules()
        for f in faults(path.read_text(), module, is_package)
    ]
    assert not found, "\n".join(found)


def both_ways(modules: list[tuple[str, bool, str]]) -> list[str]:
    """Pairs of folders that import each other, from (module, whether a package, source).

    The ``__init__`` of a folder may import from folders inside it: it re-exports their names.
    """
    # A file at the top is a layer of its own.
    known = {
        name: name if package or name.count(".") == 1 else name.rpartition(".")[0]
        for name, package, _ in modules
    }
    found = set()
    for module, package, source in modules:
        for _, name in _imports(parsed(source), module, package):
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name in ("", "flexjax"):
                continue
            a, b = known[module], known[name]
            if a != b and not (package and b.startswith(f"{a}.")):
                found.add((a, b))
    return sorted(f"{a} and {b} import each other" for a, b in found if a < b and (b, a) in found)


def test_no_two_packages_import_each_other():
    modules = [(module, package, path.read_text()) for path, module, package in _modules()]
    assert both_ways(modules) == []


def test_the_check_finds_traffic_in_both_directions():
    check = ("flexjax.robot.check._check", False, "from flexjax.robot.files._load import load")
    load = ("flexjax.robot.files._load", False, "from flexjax.robot.check._check import check")
    whole = ("flexjax.robot", True, "from flexjax.robot.files._load import load")
    robot = ("flexjax.robot._robot", False, "from flexjax.robot.check._check import check")
    above = ("flexjax.robot.check._check", False, "from flexjax.robot._robot import Robot")
    assert both_ways([check, load]) == [
        "flexjax.robot.check and flexjax.robot.files import each other"
    ]
    assert both_ways([robot, above]) == ["flexjax.robot and flexjax.robot.check import each other"]
    assert both_ways([load, whole, robot]) == []


def test_folders_are_small():
    """At most ten files beside `__init__` and the refusals; PortHamiltonian has thirteen."""
    folders = [PACKAGE, *(p for p in PACKAGE.rglob("*") if p.is_dir())]
    beside = ("__init__", "_refusals")
    sizes = {
        folder.relative_to(PACKAGE).as_posix(): sum(
            p.stem not in beside for p in folder.glob("*.py")
        )
        for folder in folders
    }
    large = {name for name, n in sizes.items() if n > 10}
    assert large == {".", "formulation/port_hamiltonian"}
    assert sizes["."] <= 14 and sizes["formulation/port_hamiltonian"] <= 13


def test_interfaces_are_narrow():
    """An interface has at most seven abstract methods (CONTRIBUTING.md)."""
    wide = [
        f"{module}.{node.name}"
        for path, module, _ in _modules()
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and sum(
            "abstractmethod" in ast.unparse(decorator)
            for method in node.body
            if isinstance(method, ast.FunctionDef)
            for decorator in method.decorator_list
        )
        > 7
    ]
    assert wide == []


# Packages in which every argument is annotated; functions inside functions may infer theirs.
ANNOTATED = (
    "drive",
    "formulation",
    "mechanism",
    "numerics.linalg",
    "numerics.screw",
    "numerics.solver",
    "numerics.term",
    "robot",
    "simulate",
)


def _bare(body: list[ast.stmt], inside: bool = False):
    """(line, name) of arguments without annotation, of functions and methods."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _bare(node.body, True)
        elif isinstance(node, ast.If):
            yield from _bare([*node.body, *node.orelse], inside)
        elif isinstance(node, ast.FunctionDef):
            own = node.args
            plain = [*own.posonlyargs, *own.args]
            static = any(ast.unparse(x) == "staticmethod" for x in node.decorator_list)
            plain = plain[1:] if inside and not static else plain
            starred = [x for x in (own.vararg, own.kwarg) if x is not None]
            for arg in [*plain, *own.kwonlyargs, *starred]:
                if arg.annotation is None:
                    yield node.lineno, f"{node.name}({arg.arg})"


def test_arguments_are_annotated():
    from flexjax import _EXPORTS

    public = {f"{name}(" for name in _EXPORTS}
    found = [
        f"{module}:{line}: {name}"
        for path, module, _ in _modules()
        for line, name in _bare(parsed(path.read_text()).body)
        if f"{module}.".startswith(tuple(f"flexjax.{p}." for p in ANNOTATED))
        or name[: name.index("(") + 1] in public
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("flexjax.drive.signal._ramp", "from flexjax.simulate import simulate", "a layer above it"),
        ("flexjax.drive.signal._ramp", "from .._drive import Drive", "a layer above it"),
        ("flexjax.drive.signal._ramp", "def f():\n    import flexjax.cli", "a layer above it"),
        (
            "flexjax.drive.signal._ramp",
            "import importlib\nimportlib.import_module('flexjax.io')",
            "a layer above it",
        ),
        ("flexjax.drive.signal._ramp", "from flexjax import Robot", "from the top"),
        ("flexjax.drive.signal._ramp", "from numpy import *", "star import"),
        ("flexjax.drive.signal._ramp", "import pinocchio", "tests and benchmarks"),
        ("flexjax.robot._robot", "from pydantic import BaseModel", "_file.py only"),
        (
            "flexjax.robot._robot",
            "import jax\njax.config.update('jax_enable_x64', True)",
            "global setting",
        ),
        ("flexjax.nowhere._x", "", "in no layer"),
        ("flexjax", "from flexjax.robot import Robot", "lazily"),
    ],
)
def test_the_check_finds_faults(module, source, message):
    found = faults(source, module)
    assert len(found) == 1 and message in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "flexjax.simulate.loop._march",
            "from flexjax.numerics.solver import Newmark\nfrom ._simulate import simulate",
        ),
        (
            "flexjax.cli._main",
            "import jax\njax.config.update('jax_enable_x64', True)\nfrom flexjax.viz import plot",
        ),
        ("flexjax.robot.files._file", "import pydantic"),
        ("flexjax.io._netcdf", "from flexjax import __version__"),
    ],
)
def test_the_check_lets_good_code_pass(module, source):
    assert faults(source, module) == []


def test_formulations_do_not_import_each_other(monkeypatch, tmp_path):
    for name in ("screw_synthesis", "finite_element"):
        (tmp_path / "formulation" / name).mkdir(parents=True)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    module = "flexjax.formulation.finite_element._link"
    assert faults("from flexjax.formulation._base import AbstractModel", module) == []
    assert faults("from flexjax.formulation.finite_element._chain import assemble", module) == []
    found = faults("from ..screw_synthesis._link import Link", module)
    assert len(found) == 1 and "one formulation imports another" in found[0]


def _python(code: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_import_is_silent_and_light():
    code = """
import sys
import flexjax
assert flexjax.__version__ and sorted(flexjax.__all__) == dir(flexjax)
assert 'Robot' not in vars(flexjax)
heavy = 'jax jaxlib numpy scipy equinox diffrax matplotlib pydantic xarray'.split()
heavy = set(heavy) & set(sys.modules)
assert not heavy, heavy
"""
    assert _python(code) == ""


def test_importing_every_module_changes_nothing():
    names = [m for _, m, _ in _modules() if not m.endswith("__main__")]
    code = f"""
import importlib, os
import jax, numpy, matplotlib
config, env, errors = dict(jax.config.values), dict(os.environ), numpy.geterr()
options, rc = numpy.get_printoptions(), dict(matplotlib.rcParams)
for name in {names!r}:
    importlib.import_module(name)
# a library may register options of its own (pallas does); none that was there may change
assert {{k: jax.config.values[k] for k in config}} == config, 'jax configuration changed'
assert dict(os.environ) == env, 'environment changed'
assert numpy.geterr() == errors and numpy.get_printoptions() == options, 'numpy settings changed'
assert dict(matplotlib.rcParams) == rc, 'matplotlib settings changed'
"""
    assert _python(code) == ""


def test_a_folder_does_not_hide_the_function_of_its_name():
    """`import flexjax.simulate`, by whomever, must leave `flexjax.simulate` the function."""
    code = """
import types
import flexjax
flexjax._EXPORTS['simulate'] = 'flexjax.simulate'
folder = types.ModuleType('flexjax.simulate')
folder.simulate = print
import sys
sys.modules['flexjax.simulate'] = folder
flexjax.simulate = folder  # what the import system does after loading a submodule
assert flexjax.simulate is print
"""
    assert _python(code) == ""


def test_every_public_name_resolves():
    import flexjax

    for name in flexjax.__all__:
        assert getattr(flexjax, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Robbot'"):
        flexjax.Robbot  # noqa: B018


def test_type_checkers_see_the_public_names():
    """`flexjax/__init__.pyi` imports each public name from the module that resolves it."""
    import flexjax
    from flexjax.formulation import REGISTRY

    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    typed = {
        alias.name: node.module
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    # Formulations are lazy in their own package too: the stub names the folder of each.
    real = {name: path.rpartition(".")[0] for name, path in REGISTRY.items()}
    assert typed == {name: real.get(name, module) for name, module in flexjax._EXPORTS.items()}
