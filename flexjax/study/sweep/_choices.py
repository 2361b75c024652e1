"""Static choices in a design: formulation, its options, solver, robot. Each combination is a
program of its own."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import diffrax
import numpy as np

from flexjax.formulation import AbstractFormulation, AbstractModel, formulation
from flexjax.numerics import solver as solvers
from flexjax.robot import Robot, load_robot


def is_choice(path: str) -> bool:
    """Whether a column of a design names a static choice and no parameter."""
    return path in ("formulation", "solver", "robot") or path.startswith("formulation.")


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """One static choice: its distinct values with their labels, and which of them every run has."""

    labels: tuple[str, ...]
    values: tuple[Any, ...]
    codes: np.ndarray

    @property
    def column(self) -> np.ndarray:
        """The label of every run."""
        return np.array(self.labels)[self.codes]


def read_choice(path: str, values: Any) -> Choice:
    """The choice of a column of a design."""
    values = [] if isinstance(values, str) or not np.iterable(values) else list(values)
    if not values:
        raise ValueError(f"design {path!r}: expected a list of at least one value.")
    kept: list[Any] = []
    labels: list[str] = []
    codes = np.empty(len(values), int)
    for row, given in enumerate(values):
        value, label = _value(path, given, row)
        if label not in labels:
            labels.append(label)
            kept.append(value)
        codes[row] = labels.index(label)
    return Choice(tuple(labels), tuple(kept), codes)


def _value(path: str, given: Any, row: int) -> tuple[Any, str]:
    where = f"design {path!r}, row {row}: {given!r}"
    if path == "formulation":
        made = formulation(given)() if isinstance(given, str) else given
        if not isinstance(made, AbstractFormulation):
            raise ValueError(f"{where}; expected a formulation, e.g. fx.FiniteElement(elements=8).")
        return made, str(given) if isinstance(given, str) else repr(made)
    if path == "solver":
        made = getattr(solvers, given, None) if isinstance(given, str) else given
        made = made() if isinstance(made, type) else made
        if not isinstance(made, diffrax.AbstractSolver):
            raise ValueError(f"{where}; expected a solver, e.g. fx.Newmark().")
        return made, given if isinstance(given, str) else repr(made)
    if path == "robot":
        made = given if isinstance(given, Robot) else load_robot(given)
        return made, made.name if isinstance(given, Robot) else str(given)
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, float) and given.is_integer():  # of a table
        given = int(given)
    return given, str(given)


def chosen_model(
    model: AbstractModel, picks: Mapping[str, Any]
) -> tuple[AbstractModel, diffrax.AbstractSolver | None]:
    """The model of one combination of choices, and its solver if that is one of them."""
    robot = picks.get("robot", model.robot)
    method = picks.get("formulation", model.formulation)
    options = {
        path.removeprefix("formulation."): value
        for path, value in picks.items()
        if path.startswith("formulation.")
    }
    known = [f.name for f in dataclasses.fields(method)]
    for name in options:
        if name not in known:
            raise ValueError(
                f"design 'formulation.{name}': {type(method).__name__} has no option {name!r}; "
                f"expected one of {', '.join(known)}."
            )
    if any(path != "solver" for path in picks):
        model = dataclasses.replace(method, **options).bind(robot)
    return model, picks.get("solver")


def combinations(choices: Mapping[str, Choice], runs: int) -> tuple[list[dict], np.ndarray]:
    """Every combination of choices that occurs, and which of them every run has."""
    if not choices:
        return [{}], np.zeros(runs, int)
    codes = np.stack([choice.codes for choice in choices.values()], axis=1)
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    found = [
        {path: choice.values[c] for (path, choice), c in zip(choices.items(), row, strict=True)}
        for row in distinct
    ]
    return found, which.reshape(-1)
