"""Helpers of the identification experiments: recordings, black-box baselines, results, claims."""

import json
import os
import sys
from pathlib import Path

import numpy as np

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


def fit_percent(measured, predicted) -> float:
    error = np.linalg.norm(predicted - measured) / np.linalg.norm(measured - measured.mean())
    return float(100 * (1 - error))


def _regressors(u, y, order):
    n = len(y)
    rows = [np.ones(n - order)]
    rows += [y[order - k : n - k] for k in range(1, order + 1)]
    rows += [u[order - k : n - k] for k in range(order + 1)]
    return np.stack(rows, axis=1), y[order:]


def fit_arx(records, order: int) -> np.ndarray:
    """Least-squares fit of y_k = c + sum a_i y_{k-i} + sum b_j u_{k-j} to [(u, y), ...]."""
    parts = [_regressors(u, y, order) for u, y in records]
    A, b = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    return np.linalg.lstsq(A, b, rcond=None)[0]


def run_arx(theta, u, y, order: int) -> np.ndarray:
    """Free run: after the first ``order`` samples it uses only the input."""
    out = np.array(y, float)
    for k in range(order, len(y)):
        past = out[k - order : k][::-1]
        out[k] = (
            theta[0] + theta[1 : order + 1] @ past + theta[order + 1 :] @ u[k - order : k + 1][::-1]
        )
        if not np.isfinite(out[k]) or abs(out[k]) > 1e6:
            out[k:] = np.nan
            break
    return out


def best_arx(training, orders=range(2, 13)):
    """Order and coefficients whose free run fits the training recordings best."""
    found = []
    for order in orders:
        theta = fit_arx(training, order)
        fits = [
            fit_percent(y, np.nan_to_num(run_arx(theta, u, y, order), nan=1e6)) for u, y in training
        ]
        found.append((float(np.mean(fits)), order, theta))
    return max(found, key=lambda row: row[0])[1:]


def n4sid(records, orders=range(2, 9), rows: int = 15, score=None):
    """Subspace identification (nfoursid, PO-MOESP) of a state-space model from one recording.

    The library takes one recording at a time. Order and recording have the highest ``score``, by
    default the mean fit of the free run from rest to all recordings [(u, y), ...].

    Returns:
        The order and the model; ``None`` if the package is missing.
    """
    score = score or (
        lambda model: np.mean(
            [fit_percent(b, np.nan_to_num(run_model(model, a), nan=1e6)) for a, b in records]
        )
    )
    try:
        import pandas
        from nfoursid.nfoursid import NFourSID
    except ImportError:
        print("nfoursid is not installed (pip install 'flexjax[baselines]'): no subspace baseline")
        return None
    found = []
    for u, y in records:
        search = NFourSID(
            pandas.DataFrame({"u": u, "y": y}),
            output_columns=["y"],
            input_columns=["u"],
            num_block_rows=rows,
        )
        search.subspace_identification()
        for order in orders:
            model, _ = search.system_identification(rank=order)
            found.append((float(score(model)), order, model))
    return max(found, key=lambda row: row[0])[1:]


def run_model(model, u) -> np.ndarray:
    """Free run of a discrete state-space model from rest."""
    x, out = np.zeros(model.a.shape[0]), np.empty(len(u))
    for k in range(len(u)):
        out[k] = (model.c @ x)[0] + model.d[0, 0] * u[k]
        x = model.a @ x + model.b[:, 0] * u[k]
        if not np.all(np.abs(x) < 1e9):
            out[k + 1 :] = np.nan
            break
    return out


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
