"""Convergence in the mesh and in the step, and the error for its cost."""

import time

import numpy as np

import flexjax as fx
from tests.validation._beams import beam, spin_up
from tests.validation._row import REFERENCE, method

STEPS = (10, 20, 40, 80, 160)  # of the spin-up to 2.5 s


def refined(name: str, count: int):
    """The formulation with that many elements, segments or functions on a link."""
    option = next(k for k in ("elements", "segments", "modes") if hasattr(method(name), k))
    return type(method(name))(**{option: count})


def in_h(name: str) -> dict:
    """Relative error of the second frequency of a clamped beam, by number of subdivisions."""
    exact = REFERENCE["frequencies"]["rows"]["clamped"]["beta"][1] ** 2
    counts = (2, 3, 4, 5) if hasattr(method(name), "modes") else (4, 8, 16)
    errors = []
    for n in counts:
        model = refined(name, n).bind(beam())
        found = 2 * np.pi * float(fx.modes(model, n=2).frequencies[1])
        errors.append(abs(found / exact - 1))
    return {"count": list(counts), "error": errors, "order": _order(counts, errors)}


def in_dt(name: str) -> dict:
    """Error of the tip's deflection in the spin-up at 2.5 s, for the largest in 10 s, against the
    converged run of the same mesh (time) and against the reference (all), with CPU seconds."""
    end, _, exact = REFERENCE["spin_up"]["rows"][0]
    size = max(abs(r[2]) for r in REFERENCE["spin_up"]["rows"])
    model = method(name).bind(spin_up())
    drive = fx.Drive(joints={"hub": fx.Motion(fx.spin_up(6.0, 15.0))})
    values, seconds = [], []
    for n in STEPS:
        # One program for all: times go on after the end, and intervals stops the run there.
        ts = np.arange(max(STEPS) + 1) * (end / n)
        for _ in range(2):
            began = time.process_time()
            run = fx.simulate(model, drive, ts, substeps=1, stations=2, intervals=np.asarray(n))
            int(run.status)
            used = time.process_time() - began
        values.append(float(run.deflection[n, 0, -1, 1]))
        seconds.append(used)
    finest = values[-1] + (values[-1] - values[-2]) / 3
    errors = [abs(v - finest) / size for v in values]
    return {
        "dt": [end / n for n in STEPS],
        "time_error": errors,
        "error": [abs(v - exact) / size for v in values],
        "cpu_seconds": seconds,
        "order": _order(STEPS[:-1], errors[:-1]),
    }


def _order(counts, errors) -> float:
    return float(np.log(errors[-2] / errors[-1]) / np.log(counts[-1] / counts[-2]))
