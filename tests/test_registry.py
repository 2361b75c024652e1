"""A formulation joins with one folder and one line of the registry: the notebook's formulation,
registered for one test, is in every table that is made from the registry."""

import importlib.util
import sys
import types
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import pytest

import flexjax as fx
import tests
from flexjax.cli import main
from flexjax.formulation import REGISTRY, formulations_for
from tests import contract_cases, contract_parts, test_contract
from tests.test_notebooks import cells

ROOT = Path(__file__).resolve().parent.parent
NAME, FOLDER = "PseudoRigid", "pseudo_rigid"
CONTRACT = f"""
import flexjax as fx
from flexjax.formulation import formulation
from tests.contract_parts import Case, Contract, pendulum

def make():
    return formulation("{NAME}")()

case = Case(make, pendulum, fx.Drive, {{}}, zero={{}}, balance=1e-9)
CONTRACT = Contract(smallest=make, fine=make, quick=case, full={{"": case}})
"""


@pytest.fixture
def registered(monkeypatch, tmp_path):
    """The notebook's formulation, with a folder of tests, beside the rigid arm alone."""
    notebook = ROOT / "notebooks" / "adding_a_formulation.py"
    code = [text for kind, text in cells(notebook) if kind == "code"]
    until = next(i for i, text in enumerate(code) if "REGISTRY[" in text)
    # A notebook configures jax before its first array; this process has had one.
    lines = "\n".join(code[:until]).splitlines()
    source = "\n".join(x.replace("fx.configure(", "dict(") for x in lines)
    module = types.ModuleType(f"flexjax.formulation.{FOLDER}")
    exec(compile(source, str(notebook), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {name: path for name, path in REGISTRY.items() if name in contract_cases.RIGID}
    names[NAME] = f"{module.__name__}.{NAME}"
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "contract.py").write_text(CONTRACT)
    monkeypatch.setattr(tests, "__path__", [*tests.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"tests.{FOLDER}", raising=False)
    with mock.patch.dict(REGISTRY, names, clear=True):  # restores the order too
        yield module
    for name in (f"tests.{FOLDER}", f"tests.{FOLDER}.contract"):
        sys.modules.pop(name, None)


def test_comparison_and_capabilities_find_a_new_formulation(registered, capsys):
    robot = contract_parts.pendulum()
    supporting, _ = formulations_for(robot)
    assert NAME in supporting
    table = fx.compare(robot, None, jnp.array([0.0, 0.02, 0.04]), dt=0.01, n_modes=1)
    assert [row.name for row in table.rows] == list(REGISTRY) and NAME in str(table)
    assert all(row.status == "ok" for row in table.rows)
    assert main(["describe", "metal-link", "--json"]) == 0
    assert NAME in capsys.readouterr().out


def test_the_contract_finds_a_new_formulation(registered, monkeypatch):
    case = contract_cases.contract(NAME).quick
    monkeypatch.setitem(contract_cases.CASES, NAME, case)
    programs = test_contract.Programs(NAME)
    test_contract.test_runs_and_keeps_its_dtype(programs)
    balance = programs.base.energy.balance
    assert float(jnp.max(jnp.abs(balance - balance[0]))) < case.balance


def test_the_pages_show_a_new_formulation(registered, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("_make", ROOT / "docs" / "_make.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    for table in (pages.features(), pages.example_robots()):
        heads = [line for line in table if line.startswith("| ") and "RigidArm" in line]
        assert heads and all(f"| {NAME} |" in line for line in heads)
    rows = [line for line in pages.features() if "revolute" in line]
    assert any(line.rstrip("| ").endswith("yes") for line in rows)


def test_tests_do_not_list_formulations():
    """A dictionary or a list of their names would leave a new one out."""
    folder = Path(__file__).parent
    paths = [*folder.glob("test_*.py"), *folder.glob("simulate/*.py"), *folder.glob("start/*.py")]
    for path in [*paths, folder / "identify" / "test_formulations.py"]:
        text = path.read_text(encoding="utf-8")
        named = {name for name in REGISTRY if f'"{name}"' in text}
        assert len(named) <= 1, f"{path.name}: {sorted(named)}; expected names from the registry"
