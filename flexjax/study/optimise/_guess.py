"""Where a search starts: at the given drive, at an earlier result, or at what a file keeps."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from flexjax._files import read_npz, reading, write_whole
from flexjax.study.optimise.problem import Problem

if TYPE_CHECKING:
    from flexjax.study.optimise._result import Optimisation


def first_guess(
    problem: Problem, guess: "Optimisation | None", checkpoint: str | os.PathLike[str] | None
) -> np.ndarray:
    """The first point of a search."""
    par, span = problem.parameters, problem.duration
    x = np.zeros(par.size + 1)
    x[-1] = span.share(float(span.reference))
    if checkpoint is not None and Path(checkpoint).exists():
        names, values, duration = _read(Path(checkpoint))
        where = f"checkpoint: {checkpoint}"
    elif guess is not None:
        names, values, duration = guess.names, guess.values, guess.duration
        where = "guess"
    else:
        return x
    if tuple(names) != par.names:
        raise ValueError(
            f"{where}: free parameters {', '.join(names)[:80]}; expected those of this move, "
            f"{', '.join(par.names)[:80]}. Give another file, or delete it."
        )
    x[:-1] = np.asarray(par.inverse(jnp.asarray(values)))
    if not np.all(np.isfinite(x)):
        raise ValueError(f"{where}: values outside of the bounds of this move.")
    if span.free:
        x[-1] = np.clip(span.share(duration), 0.0, 1.0)
    return x


def writer(
    problem: Problem, checkpoint: str | os.PathLike[str] | None
) -> Callable[[np.ndarray], None] | None:
    """A function that writes a point to the file."""
    if checkpoint is None:
        return None
    path, par = Path(checkpoint), problem.parameters
    if path.suffix != ".npz":
        raise ValueError(f"checkpoint: {path.name}; expected a name that ends in .npz.")

    def keep(x: np.ndarray) -> None:
        values = np.asarray(par.values(jnp.asarray(x[:-1])))
        duration = float(problem.duration_of(jnp.asarray(x)))

        def write(part: Path) -> None:
            with open(part, "wb") as file:
                np.savez(file, names=np.array(par.names), values=values, duration=duration)

        write_whole(path, write)

    return keep


def _read(path: Path) -> tuple[tuple[str, ...], np.ndarray, float]:
    where = f"checkpoint {str(path)!r}"
    kept = read_npz(path, where)
    with reading(where, "a checkpoint of fx.optimise", "Delete it or choose another name."):
        names = tuple(str(name) for name in kept["names"])
        values, duration = np.asarray(kept["values"], float), float(kept["duration"])
        if values.shape != (len(names),) or not np.isfinite(duration):
            raise ValueError(f"{values.shape} values of {len(names)} parameters")
        return names, values, duration
