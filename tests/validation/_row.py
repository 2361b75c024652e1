"""One number of the validation page, and the reference values."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import flexjax as fx
from tests.contract_cases import CONTRACTS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = json.loads((ROOT / "tests" / "reference" / "validation.json").read_text())


@dataclasses.dataclass(frozen=True)
class Row:
    """``error`` of a quantity in one formulation, or why the formulation refuses the case.

    ``value`` and ``reference`` in the units of the case; ``error`` relative to what the case says.
    """

    case: str
    formulation: str
    quantity: str
    value: float | None = None
    reference: float | None = None
    error: float | None = None
    refused: str = ""

    @property
    def key(self) -> str:
        return f"{self.case} | {self.formulation} | {self.quantity}"


def row(case: str, name: str, quantity: str, value, reference, scale=None) -> Row:
    """The row of a value; its error is relative to ``scale``, or to the reference."""
    value, reference = np.atleast_1d(value).astype(float), np.atleast_1d(reference).astype(float)
    scale = np.abs(reference).max() if scale is None else scale
    error = float(np.max(np.abs(value - reference)) / scale)
    worst = int(np.argmax(np.abs(value - reference)))
    return Row(case, name, quantity, float(value[worst]), float(reference[worst]), error)


@dataclasses.dataclass(frozen=True)
class Case:
    """A section of the page: rows of one formulation by its name.

    ``scale``: what errors are relative to. ``quick``: formulations whose rows `make test` asserts.
    ``only``: quantities that need no row in other formulations. Refusals become rows.
    """

    title: str
    text: str
    scale: str
    rows: Callable[[str, str], list[Row]]  # (name of the case, name of the formulation)
    robot: Callable[[], fx.Robot]
    quick: tuple[str, ...] = ()
    elastic: bool = True  # a rigid arm has nothing to compare


def method(name: str):
    """The formulation with the resolution that the page uses."""
    return CONTRACTS[name].methods.get("validation", CONTRACTS[name].fine)()


def run(word: str, case: Case, name: str) -> list[Row]:
    """The rows of a case in a formulation; one row with the reason where it is refused."""
    refusals = method(name).refusals(case.robot())
    if refusals:
        return [Row(word, name, "", refused=refusals[0])]
    try:
        return case.rows(word, name)
    except (fx.SimulationError, fx.EquilibriumError) as error:
        return [Row(word, name, "", refused=str(error).split("\n")[0])]
