"""Large deflection: Euler's elastica, a roll-up, a heavy beam, the bend of 45 degrees."""

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from tests.validation._beams import beam, bend
from tests.validation._row import REFERENCE, Row, method, row


def _held(force=(0.0, 0.0, 0.0), moment=0.0) -> fx.Drive:
    wrench = fx.constant((*force, 0.0, 0.0, moment))
    return fx.Drive(joints={"root": fx.Motion(fx.constant(0.0))}, loads=(fx.Load("beam", wrench),))


def rests(name: str, loads: list[tuple[float, float, float]]) -> list[np.ndarray | None]:
    """Tips of the clamped beam under (tip force, end moment, weight), each from the one before it.

    None from the first load on that has no equilibrium.
    """
    model = method(name).bind(beam(EA=1e5))  # extends by 1e-5 of the length under EI/L^2
    tip = jax.jit(lambda m, y, d: m.observe(0.0, y, d, jnp.ones(1)).frames[0, 0, :2])
    found, at, lost = [], None, False
    for force, moment, weight in loads:
        m = model.rebind(model.robot.replace("gravity", np.array([0.0, -weight, 0.0])))
        drive = _held((0.0, force, 0.0), moment)
        if not lost:
            rest = fx.find_equilibrium(m, drive, at)
            lost, at = not bool(rest.ok), rest.state
        found.append(None if lost else np.asarray(tip(m, at, drive)))
    return found


def _rows(case: str, name: str, words: list[str], loads, tips) -> list[Row]:
    rows = []
    for word, found, exact in zip(words, rests(name, loads), tips, strict=True):
        if found is None:
            rows.append(Row(case, name, word, refused="no equilibrium is found"))
        else:
            rows.append(row(case, name, word, found, exact, scale=1.0))
    return rows


def elastica(case: str, name: str) -> list[Row]:
    given = REFERENCE["elastica"]["rows"]
    return _rows(
        case,
        name,
        [f"P L^2/EI = {r[0]:g}" for r in given],
        [(r[0], 0.0, 0.0) for r in given],
        [(1 - r[2], r[1]) for r in given],
    )


def roll_up(case: str, name: str) -> list[Row]:
    given = REFERENCE["roll_up"]["rows"]
    return _rows(
        case,
        name,
        [f"{360 * r[0]:g} degrees" for r in given],
        [(0.0, 2 * np.pi * r[0], 0.0) for r in given],
        [r[1:] for r in given],
    )


def heavy(case: str, name: str) -> list[Row]:
    given = REFERENCE["heavy_elastica"]["rows"]
    return _rows(
        case,
        name,
        [f"q L^3/EI = {r[0]:g}" for r in given],
        [(0.0, 0.0, r[0]) for r in given],
        [(1 - r[2], -r[1]) for r in given],
    )


def bend_of_45(case: str, name: str) -> list[Row]:
    given = REFERENCE["bend"]
    model = method(name).bind(bend())
    force = fx.constant((0.0, 0.0, given["force"], 0.0, 0.0, 0.0))
    drive = fx.Drive(loads=(fx.Load("bend", force),))
    rest = fx.equilibrium(model, drive)
    tip = jax.jit(lambda y: model.observe(0.0, y, drive, jnp.ones(1)).frames[0, 0, :3])(rest)
    return [row(case, name, "tip under a force of 300", tip, given["tip"], scale=25 * np.pi)]
