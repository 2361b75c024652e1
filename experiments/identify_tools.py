"""Helpers of the identification experiments: recordings, black-box baselines, results, claims."""

import json
import os
import sys
from pathlib import Path

import numpy as np

from flexjax.study.identify.baselines._n4sid import fit_n4sid, installed

ROOT = Path(__file__).resolve().parent.parent


def find_data(relative: str) -> Path:
    """The path of measured data; without the data the experiment ends with a message."""
    root = Path(os.environ.get("FLEXJAX_DATA", ROOT.parent / "shared" / "data"))
    path = root / relative
    if not path.exists():
        print(
            f"skipped: measured data not found at {path}; "
            f"set FLEXJAX_DATA to the folder that contains {relative!r}"
        )
        sys.exit(0)
    return path


def n4sid(records, orders, rows, score):
    """Subspace model (order, matrices) of [(u, y), ...] with the highest score of its matrices.

    None, with a message, if the package is missing.
    """
    if not installed():
        print("nfoursid is not installed (pip install 'flexjax[baselines]'): no subspace baseline")
        return None
    pairs = [(np.asarray(u)[:, None], y) for u, y in records]
    found = fit_n4sid(pairs, orders, rows, lambda model: score(model.matrices))
    return found.order, found.matrices


def respond(model, frequencies, step: float) -> np.ndarray:
    """Frequency response of a discrete state-space model."""
    eye = np.eye(model.a.shape[0])
    return np.array(
        [
            (
                model.c @ np.linalg.solve(np.exp(2j * np.pi * f * step) * eye - model.a, model.b)
                + model.d
            )[0, 0]
            for f in frequencies
        ]
    )


def save(folder: Path, name: str, numbers: dict, arrays: dict) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n")
    np.savez_compressed(folder / f"{name}.npz", **arrays)


def judge(expected: Path, numbers: dict[str, float]) -> int:
    """Print each claim of expected.json (name: [expected, tolerance]) with its value.

    Returns:
        The number of unconfirmed claims.
    """
    claims, bad = json.loads(expected.read_text())["claims"], 0
    print(f"\n{'claim':58}{'value':>12}{'expected':>12}  verdict")
    for name, (target, tolerance) in claims.items():
        if name not in numbers:  # a baseline whose package is missing
            print(f"{name:58}{'-':>12}{target:12.5g}  not computed")
            continue
        good = abs(numbers[name] - target) <= tolerance
        bad += not good
        verdict = "holds" if good else "DOES NOT HOLD"
        print(f"{name:58}{numbers[name]:12.5g}{target:12.5g}  {verdict}")
    return bad
