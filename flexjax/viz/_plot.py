"""plot: one function for every figure."""

from typing import Any

from matplotlib.figure import Figure

from flexjax.io._dataset import check_single
from flexjax.simulate import Comparison, Linear, Modes
from flexjax.simulate.trajectory import Trajectory
from flexjax.study.identify import Identification
from flexjax.viz import _identify_plots, _model_plots, _time_plots
from flexjax.viz._style import style

OF_RUNS = {
    "joints": _time_plots.joints,
    "tip": _time_plots.tip,
    "deflection": _time_plots.deflection,
    "strain": _time_plots.strain,
    "spectrum": _time_plots.spectrum,
    "energy": _time_plots.energy,
    "difference": _time_plots.difference,
}
# what: (what it is drawn from, the function)
OF_OTHERS = {
    "modes": (Modes, _model_plots.mode_shapes),
    "frequency response": (Linear, _model_plots.frequency_response),
    "comparison": (Comparison, _model_plots.comparison),
    "convergence": (dict, _model_plots.convergence),
    **{name: (Identification, draw) for name, draw in _identify_plots.FIGURES.items()},
}


def as_runs(thing: Any, action: str) -> dict[str, Trajectory]:
    """``{name: trajectory}`` from a trajectory, a comparison or such a dict."""
    runs = (
        thing.trajectories
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
        raise ValueError(
            f"{action}: trajectories of different robots ({', '.join(t.robot.name for t in runs.values())}); expected one robot."
        )
    return runs


def plot(thing: Any, what: str | None = None, **options) -> Figure:
    """A figure of what flexjax returns.

    Of a trajectory, or of ``{name: trajectory}`` to see several together: ``what`` is "joints" (default), "tip", "deflection", "strain",
    "spectrum" (``modes=fx.modes(model)`` adds lines at the natural frequencies), "energy" or "difference" (of the tips of several runs, from the one
    that ``reference`` names). Of ``fx.modes(model)``: mode shapes (``model=model`` is needed). Of
    ``fx.linearise(...)``: the frequency response. Of ``fx.compare(...)``: the comparison, or any
    figure of trajectories. Of ``fx.identify(...)``: "fits" (default), "validation", "correlation", "autocorrelation", "responses" or "history".
    Of ``{name: (steps, errors)}`` with ``what="convergence"``: a convergence study.

    >>> import flexjax as fx
    >>> figure = fx.plot({"Newmark": ([0.1, 0.05], [4e-3, 1e-3])}, "convergence")
    >>> figure.savefig("order.png")  # doctest: +SKIP
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
    with style():
        if what in OF_RUNS:
            return OF_RUNS[what](as_runs(thing, "plot"), **options)
        if what in OF_OTHERS:
            cls, draw = OF_OTHERS[what]
            if not isinstance(thing, cls):
                raise ValueError(
                    f"plot: {what!r} is drawn from {cls.__name__}, not from {type(thing).__name__}."
                )
            return draw(thing, **options)
    raise ValueError(f"what: {what!r}; expected one of {', '.join([*OF_RUNS, *OF_OTHERS])}.")
