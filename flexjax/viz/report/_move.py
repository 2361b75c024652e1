"""The report of an optimised move: joints, vibration against usual moves, limits, search."""

import numpy as np

from flexjax.simulate import Trajectory, rest
from flexjax.study.optimise import Optimisation
from flexjax.viz.figures._move_plots import joints, robustness, search, tips
from flexjax.viz.figures._style import own_style
from flexjax.viz.report._report import Report
from flexjax.viz.scene._animate import Animation

MOVES = ("quintic", "zv", "zvd")
VALUES = 9  # of an uncertain parameter


def move_report(result: Optimisation, notes: tuple[str, ...] = ()) -> Report:
    """Write up an optimised move: joints, vibration beside usual moves, limits and search.

    Arguments:
        result: the result of :func:`flexjax.optimise`.
        notes: paragraphs to add below the summary.

    Returns:
        A report; ``save("move.html")`` writes it as one page, with both arms in 3D.

    >>> import flexjax as fx
    >>> model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
    >>> res = fx.optimise(model, goal={"motor": 0.5}, duration=0.4, dt=1e-2, knots=4)
    >>> fx.move_report(res).save("move.html").name
    'move.html'
    """
    name = type(result.model.formulation).__name__
    report = Report(
        f"Move of {result.model.robot.name}",
        f"{name}, {result.duration:.4g} s, {result.steps} steps, {len(result.names)} free "
        f"parameters. "
        f"Status: {result.status} ({result.evaluations} evaluations, {result.seconds:.0f} s).",
    )
    report.heading("Result").verdict(result.ok, f"the search converged: {result.message}")
    report.verdict(
        result.violation <= 1e-6, f"limits are met; largest violation {result.violation:.1e}"
    )
    for note in notes:
        report.text(note)
    _costs(result, report)
    runs = _runs(result)
    goal = np.asarray(rest(result.model, result.goal).tip)
    with own_style():
        _vibration(result, report)
        report.figure(
            tips(runs, goal, result.duration),
            "Distance of the tip from its rest position; the move ends at the vertical line.",
        )
        report.heading("Motion")
        shown = {k: runs[k] for k in ("optimised", "quintic")}
        report.figure(joints(result, shown), "Joints; dotted: limits.")
        _limits(result, report)
        report.view(Animation(shown), "The optimised move and the quintic.")
        if len(result.history) > 1:
            report.heading("Search").figure(search(result), "Relative cost and violation.")
    report.folded("Summary", str(result))
    return report


def _costs(result: Optimisation, report: Report) -> None:
    many = len(result.samples) > 1
    head = ["cost", "nominal robot"] + (["worst sample"] if many else [])
    rows = [[name, a] + ([b] if many else []) for name, (a, b) in result.costs.items()]
    report.table(head, rows)


def _runs(result: Optimisation) -> dict[str, Trajectory]:
    """The optimised move and those usual moves that fit into its duration."""
    runs = {"optimised": result.trajectory}
    for name in MOVES:
        if result.fits(name):
            runs[name] = result.replay(move=name)
    for traj in runs.values():
        # With the efforts everything else is computed, in one program.
        assert traj.effort is not None
    return runs


def _vibration(result: Optimisation, report: Report) -> None:
    report.heading("Vibration after the move")
    nominal = {name: float(x[0]) for name, x in result.against(*MOVES).items()}
    rows: list[list] = [[name, 1e3 * x] for name, x in nominal.items()]
    head = ["move", "peak at the tip, nominal [mm]"]
    figures = []
    for k, path in enumerate(result.spread):
        values = np.linspace(result.samples[:, k].min(), result.samples[:, k].max(), VALUES)
        found = result.against(*MOVES, path=path, values=values)
        head.append(f"worst over {path} [mm]")
        rows = [[*row, 1e3 * float(np.max(found[row[0]]))] for row in rows]
        figures.append((robustness(path, values, found), f"Peak vibration over {path}."))
    report.table(head, [["-" if c != c else c for c in row] for row in rows])
    for figure, caption in figures:
        report.figure(figure, caption)


def _limits(result: Optimisation, report: Report) -> None:
    if not result.limits:
        report.text("No limits were given.")
        return
    rows = [
        [a.limit, a.where, a.sample, f"{a.times[0]:.4g} to {a.times[-1]:.4g}"]
        for a in result.active
    ]
    if rows:
        report.table(["limit that binds", "where", "sample", "time [s]"], rows)
    else:
        report.text("No limit binds.")
