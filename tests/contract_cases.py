"""The contract's cases, found from the registry: each formulation declares its own in
``tests/<its folder>/contract.py``."""

import importlib
from pathlib import Path

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
    if not (Path(__file__).parent / folder / "contract.py").exists():
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
