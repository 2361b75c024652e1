"""Sobol indices: how much of an output's variance each parameter causes."""

from typing import TYPE_CHECKING

import numpy as np

from flexjax.study.sweep._design import import_salib
from flexjax.study.sweep._result import Sweep

if TYPE_CHECKING:
    import xarray


def sobol_indices(
    result: Sweep, output: str | None = None, *, failed: str = "refuse", seed: int = 0
) -> "xarray.Dataset":
    """Shares of an output's variance that each parameter causes.

    Arguments:
        result: a sweep over :func:`saltelli`.
        output: name of the output; by default the only one.
        failed: "refuse" runs that failed or whose output is not finite, or "drop" every base point
            of which one run is such: the others are a smaller sample of the same kind. One NaN
            would make all indices zero.
        seed: seed of the bootstrap behind the confidence intervals.

    Returns:
        A dataset with "S1" (alone), "ST" (with all interactions) and half the widths of their 95 %
        confidence intervals, "S1_conf" and "ST_conf", for every parameter.

    Raises:
        ValueError: the sweep has failed runs, or its design is not that of ``fx.saltelli``.

    >>> import flexjax as fx, numpy as np
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> box = {"links.fore.body.mass": (2.0, 3.0), "links.upper.body.mass": (2.0, 3.0)}
    >>> def height(traj):
    ...     return traj.tip[-1, 1]
    >>> result = fx.sweep(model, fx.saltelli(box, 8), ts=np.linspace(0.0, 0.02, 3), outputs=height)
    >>> fx.sobol_indices(result)["ST"].sizes["parameter"]
    2
    """
    import xarray

    blocks = result.design.blocks
    if not blocks:
        raise ValueError(
            "sobol_indices: the design is of another kind; expected fx.saltelli(bounds, n)."
        )
    if failed not in ("refuse", "drop"):
        raise ValueError(f"failed: {failed!r}; expected 'refuse' or 'drop'.")
    name = _name(result, output)
    values = result.data[name]
    y = np.asarray(values.values, float)
    count = len(blocks) + 2
    y = y.reshape(-1, count, *y.shape[1:])  # one block of runs for each base point
    bad = ~np.isfinite(y).all(axis=tuple(range(1, y.ndim)))
    bad |= np.any(result.data["status"].values.reshape(-1, count) != 0, axis=1)
    if bad.any() and failed == "refuse":
        reasons = ", ".join(f"{n} {reason}" for reason, n in result.reasons().items())
        raise ValueError(
            f"sobol_indices: {name!r} is not finite in runs of {int(bad.sum())} of {len(bad)} base "
            f"points ({reasons}); expected good runs only. result.rerun(where='failed', dt=...) "
            "repeats them with smaller steps; failed='drop' leaves these points out."
        )
    y = y[~bad]
    if len(y) < 2:
        raise ValueError(f"sobol_indices: {len(y)} base points are left; expected at least 2.")
    found = _analyse(list(blocks), y.reshape(len(y) * count, -1), seed)
    dims = ("parameter", *values.dims[1:])
    shape = (len(blocks), *values.shape[1:])
    data = {k: (dims, x.reshape(shape)) for k, x in found.items()}
    coords = {k: v for k, v in values.coords.items() if "run" not in v.dims}
    attributes = {"output": name, "base_points": len(y), "dropped": int(bad.sum())}
    return xarray.Dataset(data, {"parameter": list(blocks), **coords}, attributes)


def _analyse(names: list[str], y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Indices (k, columns) of every column of ``y``."""
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    analyse = import_salib().analyze.sobol.analyze
    keys = ("S1", "S1_conf", "ST", "ST_conf")
    out = {key: np.full((len(names), y.shape[1]), np.nan) for key in keys}
    for k in range(y.shape[1]):
        if np.ptp(y[:, k]) == 0:  # a constant has no variance to share
            continue
        found = analyse(problem, y[:, k], calc_second_order=False, seed=seed)
        for key in keys:
            out[key][:, k] = found[key]
    return out


def _name(result: Sweep, output: str | None) -> str:
    known = result.names
    if output is None and len(known) == 1:
        return known[0]
    if output not in known:
        raise ValueError(f"output: {output!r}; expected one of {', '.join(known)}.")
    return output
