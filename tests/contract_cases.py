"""The contract's cases, found from the registry: each formulation declares its own in
``tests/<its folder>/contract.py``."""

import importlib
from collections.abc import Collection
from pathlib import Path

import pytest

import tests
from flexjax.formulation import REGISTRY
from tests.contract_parts import (
    Contract,
    elastic_pair as elastic_pair,
    pair_drive as pair_drive,
    pendulum as pendulum,
)


def contract(name: str) -> Contract:
    """The contract of a registered formulation."""
    folder = REGISTRY[name].split(".")[-2]
    if not any((Path(root) / folder / "contract.py").exists() for root in tests.__path__):
        raise LookupError(
            f"tests/{folder}/contract.py: missing; expected CONTRACT, a tests.contract_parts."
            f"Contract, because {name} is in flexjax/_registry.py."
        )
    return importlib.import_module(f"tests.{folder}.contract").CONTRACT


CONTRACTS = {name: contract(name) for name in REGISTRY}
QUICK = {f"{name} quick": entry.quick for name, entry in CONTRACTS.items()}
FULL = {
    f"{name} {word}".strip(): case
    for name, entry in CONTRACTS.items()
    for word, case in entry.full.items()
}
CASES = QUICK | FULL
SMALLEST = {name: entry.smallest for name, entry in CONTRACTS.items()}
FINE = {name: entry.fine for name, entry in CONTRACTS.items()}
ELASTIC = [name for name, entry in CONTRACTS.items() if entry.quick.rigid is not None]
RIGID = [name for name in CONTRACTS if name not in ELASTIC]


def light(topic: str = "") -> list[str]:
    """Formulations that `make test` runs in the tests of a topic."""
    return [n for n, entry in CONTRACTS.items() if entry.light or topic in entry.quick_in]


def each(quick: Collection[str], of: Collection[str] = tuple(CONTRACTS)) -> list:
    """Every formulation, or those ``of`` a list, as a parameter of a test; those outside ``quick``
    are slow."""
    return [pytest.param(n, marks=() if n in quick else pytest.mark.slow) for n in of]


def method(name: str, topic: str):
    """The formulation as the tests of a topic need it; the smallest where its contract gives no
    other."""
    entry = CONTRACTS[name]
    return entry.methods.get(topic, entry.smallest)()


def settings(name: str, topic: str) -> dict:
    """Keywords of a topic's test that differ in this formulation."""
    return CONTRACTS[name].settings.get(topic, {})
