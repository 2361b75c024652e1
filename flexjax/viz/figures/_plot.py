"""``plot``: one function for all figures."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flexjax.io._dataset import check_single
from flexjax.simulate import Comparison, Linear, Modes
from flexjax.simulate.trajectory import Trajectory
from flexjax.study.identify import Identification
from flexjax.study.sweep import Sweep
from flexjax.viz.figures import _identify_plots, _model_plots, _sweep_plots, _time_plots
from flexjax.viz.figures._style import own_style

OF_RUNS = {
    "joints": _time_plots.joints,
    "tip": _time_plots.tip,
    "deflection": _time_plots.deflection,
    "strain": _time_plots.strain,
    "spectrum": _time_plots.spectrum,
    "energy": _time_plots.energy,
    "difference": _time_plots.difference,
}
# what: (class that it is drawn from, function)
OF_OTHERS = {
    "modes": (Modes, _model_plots.mode_shapes),
    "frequency response": (Linear, _model_plots.frequency_response),
    "comparison": (Comparison, _model_plots.comparison),
    "convergence": (dict, _model_plots.convergence),
    **{name: (Identification, draw) for name, draw in _identify_plots.FIGURES.items()},
    **{name: (Sweep, draw) for name, draw in _sweep_plots.FIGURES.items()},
}


def _begun(runs: dict[str, Trajectory]) -> dict[str, Trajectory]:
    """Runs of a comparison with anything to draw; all of them if none has."""
    return {n: t for n, t in runs.items() if np.isfinite(np.asarray(t.tip)).any()} or runs


def as_runs(thing: Any, action: str) -> dict[str, Trajectory]:
    """``{name: trajectory}`` from a trajectory, a comparison or such a dict."""
    runs = (
        _begun(thing.trajectories)
        if isinstance(thing, Comparison)
        else thing
        if isinstance(thing, dict)
        else {"": thing}
    )
    if not runs:
        raise ValueError(f"{action}: an empty dict; expected at least one trajectory.")
    for traj in runs.values():
        check_single(traj, action)
    runs = {name or traj.stats.formulation: traj.whole() for name, traj in runs.items()}
    shapes = {tuple(link.name for link in traj.robot.links) for traj in runs.values()}
    if len(shapes) > 1:
        names = ", ".join(t.robot.name for t in runs.values())
        raise ValueError(
            f"{action}: trajectories of different robots ({names}); expected the same robot."
        )
    return runs


def plot(thing: Any, what: str | None = None, **options: Any) -> Figure:
    """Plot a trajectory, modes, a linear model, a comparison, an identification or a sweep.

    The figures of each object, the default first:

    - a trajectory or ``{name: trajectory}``: "joints", "tip", "deflection", "strain", "spectrum",
      "energy", "difference" (distance of the tips from that of the trajectory ``reference``).
      ``modes=fx.modes(model)`` marks the natural frequencies in a spectrum.
    - ``fx.modes(...)``: "modes", the mode shapes; it needs ``model=model``.
    - ``fx.linearise(...)``: "frequency response".
    - ``fx.compare(...)``: "comparison", and every figure of trajectories.
    - ``fx.identify(...)``: "fits", "validation", "correlation", "autocorrelation", "responses",
      "history".
    - ``fx.sweep(...)``: "lines", "heat map", "parallel coordinates", "tornado", each with
      ``output=`` for one of its outputs.
    - ``{name: (steps, errors)}``: "convergence", which must be named.

    Arguments:
        thing: the object.
        what: name of the figure.
        options: options of the figure.

    Returns:
        A matplotlib figure, which notebooks display.

    Raises:
        ValueError: the argument is nothing that can be drawn, or there is no such figure.

    >>> import flexjax as fx
    >>> figure = fx.plot({"Newmark": ([0.1, 0.05], [4e-3, 1e-3])}, "convergence")
    >>> figure.savefig("order.png")
    """
    if what is None:
        what = next(
            (
                name
                for name, (cls, _) in OF_OTHERS.items()
                if cls is not dict and isinstance(thing, cls)
            ),
            "joints",
        )
    with own_style():
        if what in OF_RUNS:
            return OF_RUNS[what](as_runs(thing, "plot"), **options)
        if what in OF_OTHERS:
            cls, draw = OF_OTHERS[what]
            if not isinstance(thing, cls):
                raise ValueError(
                    f"plot: {what!r} of a {type(thing).__name__}; expected a {cls.__name__}."
                )
            return draw(thing, **options)
    raise ValueError(f"what: {what!r}; expected one of {', '.join([*OF_RUNS, *OF_OTHERS])}.")
