"""Linear state-space models for other programs: balanced truncation, python-control, MAT files.

Everything here is numpy on the host, in double precision.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flexjax._files import write_whole


class Matrices(NamedTuple):
    """x' = A x + B u, y = C x + D u."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray


def observed(system: Matrices) -> tuple[Matrices, np.ndarray]:
    """The system without states that nothing depends on, and the indices of the others.

    Coordinates that a Motion prescribes, or that follow from others, have zero columns.
    """
    keep = np.flatnonzero(np.any(system.A != 0, axis=0) | np.any(system.C != 0, axis=0))
    A, B, C, D = system
    return Matrices(A[keep][:, keep], B[keep], C[:, keep], D), keep


def frequency_response(system: Matrices, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies [Hz] around the eigenvalues, and the gains (n, outputs, inputs) there."""
    seen, _ = observed(system)
    size = np.abs(np.linalg.eigvals(seen.A)) if seen.A.size else np.ones(1)
    size = size[(size > 1e-3) & (size < 1e5)]
    low, high = (size.min(), size.max()) if len(size) else (1.0, 100.0)
    omega = np.geomspace(0.1 * low, 10 * high, count)
    eye = np.eye(len(seen.A))
    gains = [
        np.abs(seen.C @ np.linalg.solve(1j * w * eye - seen.A, seen.B) + seen.D) for w in omega
    ]
    return omega / (2 * np.pi), np.array(gains)


class Balanced(NamedTuple):
    """Hankel singular values, and the maps into (``left``) and out of balanced coordinates."""

    hankel: np.ndarray
    left: np.ndarray
    right: np.ndarray


def balance(system: Matrices) -> Balanced:
    """Balance a stable system by the square-root method; refuses an unstable one."""
    if not all(np.all(np.isfinite(x)) for x in system):
        raise ValueError("reduce: the matrices have entries that are not finite.")
    if system.A.size == 0:
        raise ValueError("reduce: the model has no state that an output depends on.")
    if 0 in (system.B.shape[1], system.C.shape[0]):
        raise ValueError(
            "reduce: the model has no input or no output; expected both. Leave a joint without a "
            "Motion, and add [[sensors]] to the robot."
        )
    # Displacements, velocities and strains differ by orders of magnitude.
    import scipy.linalg as sl  # imported here: it takes a quarter of a second

    scaled, (scale, permutation) = sl.matrix_balance(system.A, separate=True)
    A = np.empty_like(scaled)
    A[np.ix_(permutation, permutation)] = scaled
    unit = np.empty_like(scale)
    unit[permutation] = scale
    B, C = system.B / unit[:, None], system.C * unit[None, :]
    _refuse_unstable(A)
    reach = _factor(sl.solve_continuous_lyapunov(A, -B @ B.T))
    watch = _factor(sl.solve_continuous_lyapunov(A.T, -C.T @ C))
    u, hankel, vt = np.linalg.svd(watch.T @ reach)
    root = 1 / np.sqrt(np.maximum(hankel, np.finfo(float).tiny))
    left, right = root[:, None] * (u.T @ watch.T), reach @ vt.T * root[None, :]
    return Balanced(hankel, left / unit[None, :], right * unit[:, None])


def _refuse_unstable(A: np.ndarray) -> None:
    values = np.linalg.eigvals(A)
    rounding = len(A) * np.finfo(float).eps * np.linalg.norm(A, 2)
    bad = values[values.real >= -rounding]
    if not len(bad):
        return
    worst = bad[np.argmax(bad.real)]
    kind = (
        "grows"
        if worst.real > rounding
        else "is not damped"
        if abs(worst) > rounding
        else "has neither spring nor damping"
    )
    raise ValueError(
        f"reduce: {len(bad)} of {len(values)} eigenvalues lie on or right of the imaginary axis "
        f"(the worst: {worst.real:.3g} {worst.imag:+.3g}i 1/s, a motion that {kind}); expected a "
        "stable, damped model. Add damping to links and joints, hold joints with PD controllers "
        "or Motions, or linearise about a stable equilibrium."
    )


def _factor(gramian: np.ndarray) -> np.ndarray:
    """F with F F^T = gramian, which is positive up to rounding."""
    values, vectors = np.linalg.eigh(0.5 * (gramian + gramian.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def truncated(system: Matrices, order: int | None, tolerance: float) -> tuple[Matrices, np.ndarray]:
    """The reduced system, with its static response kept, and all Hankel singular values."""
    seen, _ = observed(system)
    found = balance(seen)
    hankel = found.hankel
    count = len(hankel)
    if order is None:
        # The error of a truncation is at most twice the sum of what is left out.
        tails = 2 * np.append(np.cumsum(hankel[::-1])[::-1], 0.0)
        order = max(1, int(np.argmax(tails <= tolerance * hankel[0])))
    if not 1 <= order <= count:
        raise ValueError(f"order: {order}; expected a whole number from 1 to {count}.")
    floor = count * np.finfo(float).eps * hankel[0]
    if hankel[order - 1] <= floor:
        least = int(np.sum(hankel > floor))
        raise ValueError(
            f"order: {order}; only {least} states are above rounding errors. Expected at most "
            f"{least}."
        )
    left, right = found.left[: int(np.sum(hankel > floor))], found.right
    right = right[:, : len(left)]
    A, B, C = left @ seen.A @ right, left @ seen.B, seen.C @ right
    # The states that are left out follow at once: their static response stays, and the error at
    # any frequency is at most twice the sum of their Hankel singular values.
    slow, fast = slice(None, order), slice(order, None)
    follow = np.linalg.solve(A[fast, fast], np.hstack([A[fast, slow], B[fast]]))
    by_state, by_input = follow[:, :order], follow[:, order:]
    reduced = Matrices(
        A[slow, slow] - A[slow, fast] @ by_state,
        B[slow] - A[slow, fast] @ by_input,
        C[:, slow] - C[:, fast] @ by_state,
        seen.D - C[:, fast] @ by_input,
    )
    return reduced, hankel


def control_system(system: Matrices, inputs: Sequence[str], outputs: Sequence[str], name: str):
    """The system as ``control.StateSpace``."""
    try:
        import control
    except ImportError:
        raise ImportError(
            "to_control needs the package control: pip install 'flexjax[control]'."
        ) from None
    return control.ss(
        *system,
        inputs=[_label(x) for x in inputs],
        outputs=[_label(x) for x in outputs],
        name=_label(name),
    )


def _label(name: str) -> str:
    """A signal name without dots, which python-control reserves for subsystems."""
    return name.replace(".", "_")


def write_mat(
    system: Matrices, names: dict[str, Sequence[str]], path: str | os.PathLike[str]
) -> Path:
    """Write the matrices and names to a MAT file (version 5)."""
    import scipy.io

    if Path(path).suffix.lower() != ".mat":
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .mat.")
    data: dict[str, Any] = dict(system._asdict())
    for key, words in names.items():
        cell = np.empty((len(words), 1), dtype=object)
        cell[:, 0] = list(words)
        data[key] = cell
    return write_whole(path, lambda part: scipy.io.savemat(part, data, appendmat=False))
