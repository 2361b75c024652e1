"""What the identification experiments share: where the records are, a black-box baseline, saving."""

import json
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def find_data(relative: str) -> Path:
    """A path among the measured data; without them the experiment ends here, saying where to put them."""
    root = Path(os.environ.get("FLEXJAX_DATA", ROOT.parent / "shared" / "data"))
    path = root / relative
    if not path.exists():
        print(f"skipped: measured data not found at {path}; set FLEXJAX_DATA to the folder that holds {relative!r}")
        sys.exit(0)
    return path


def fit_percent(measured, predicted) -> float:
    return float(100 * (1 - np.linalg.norm(predicted - measured) / np.linalg.norm(measured - measured.mean())))


def _regressors(u, y, order):
    n = len(y)
    rows = [np.ones(n - order)]
    rows += [y[order - k : n - k] for k in range(1, order + 1)]
    rows += [u[order - k : n - k] for k in range(order + 1)]
    return np.stack(rows, axis=1), y[order:]


def fit_arx(records, order: int) -> np.ndarray:
    """Least squares over all records [(u, y), ...]: y_k = c + sum a_i y_{k-i} + sum b_j u_{k-j}."""
    parts = [_regressors(u, y, order) for u, y in records]
    A, b = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    return np.linalg.lstsq(A, b, rcond=None)[0]


def run_arx(theta, u, y, order: int) -> np.ndarray:
    """Free run: after the first ``order`` samples only the input is used, never the measured output."""
    out = np.array(y, float)
    for k in range(order, len(y)):
        past = out[k - order : k][::-1]
        out[k] = theta[0] + theta[1 : order + 1] @ past + theta[order + 1 :] @ u[k - order : k + 1][::-1]
        if not np.isfinite(out[k]) or abs(out[k]) > 1e6:
            out[k:] = np.nan
            break
    return out


def best_arx(training, orders=range(2, 13)):
    """The order whose free run fits the training records best, with its coefficients."""
    found = []
    for order in orders:
        theta = fit_arx(training, order)
        fits = [fit_percent(y, np.nan_to_num(run_arx(theta, u, y, order), nan=1e6)) for u, y in training]
        found.append((float(np.mean(fits)), order, theta))
    return max(found, key=lambda row: row[0])[1:]


def save(folder: Path, name: str, numbers: dict, arrays: dict) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n")
    np.savez_compressed(folder / f"{name}.npz", **arrays)
