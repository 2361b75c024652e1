"""Natural frequencies, at rest and about steady rotation."""

import numpy as np

import flexjax as fx
from tests.validation._beams import beam
from tests.validation._row import REFERENCE, Row, method, row


def _angular(model, **options) -> np.ndarray:
    return 2 * np.pi * np.asarray(fx.modes(model, **options).frequencies)


def at_rest(case: str, name: str) -> list[Row]:
    """Two frequencies for each end condition, relative."""
    given, rows = REFERENCE["frequencies"], []
    model = method(name).bind(beam())
    for word, entry in given["rows"].items():
        changed = model.robot.replace("payloads.tip.mass", entry["tip_mass"])
        changed = changed.replace("joints.root.hub.inertia", entry["hub"])
        lock = "none" if entry["free"] else "motors"
        found = _angular(model.rebind(changed), lock=lock, n=2)[:2]
        exact = np.square(entry["beta"])
        for k in range(2):
            quantity = f"{word}, mode {k + 1}"
            rows.append(row(case, name, quantity, found[k], exact[k]))
    return rows


def rotating(case: str, name: str) -> list[Row]:
    """First frequency in the plane of rotation."""
    model, rows = method(name).bind(beam(EA=1e8)), []
    for speed, lag in REFERENCE["rotating"]["rows"]:
        turn = fx.Drive(joints={"root": fx.Motion(fx.polynomial((0.0, speed)))})
        rest = fx.equilibrium(model, turn)
        found = _angular(model, drive=turn, at=rest, n=1)[0]
        rows.append(row(case, name, f"speed {speed:g}", found, lag))
    return rows
