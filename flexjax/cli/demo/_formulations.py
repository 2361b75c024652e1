"""Part of the tour: the same arm in every formulation that supports it."""

import time
from typing import Any

import numpy as np

from flexjax.cli import _check

ROBOT = "metal-link"
# Largest distance of a flexible tip from the median, relative to that of the rigid arm.
AGREE = 0.02


def names(quick: bool) -> list[str]:
    """The formulations of the tour."""
    return _check.supporting(ROBOT)[: 2 if quick else None]


def simulated(name: str, quick: bool, folder: str) -> dict[str, Any]:
    """Simulate the arm and save the trajectory. The report shows a failure."""
    from flexjax.cli.demo._demo import begin
    from flexjax.formulation import formulation
    from flexjax.io import save_trajectory

    tour = begin(quick, folder)
    try:
        model = formulation(name)().bind(tour.robot)
        traj, first = _timed(model, tour)
        save_trajectory(traj, tour.folder / f"{name}.nc")
        return {"seconds": [first, _timed(model, tour)[1]], "unknowns": _unknowns(traj)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}


def _timed(model: Any, tour: Any) -> tuple[Any, float]:
    """A run with all outputs, and its time [s]."""
    import jax

    from flexjax.simulate import simulate

    begin = time.perf_counter()
    traj = jax.block_until_ready(simulate(model, tour.drive, tour.ts, dt=1e-3))
    return traj, time.perf_counter() - begin


def _unknowns(traj: Any) -> int:
    import jax

    return sum(x.size for x in jax.tree.leaves(traj.final.mech))


def show(tour: Any, found: dict[str, dict[str, Any]]) -> None:
    """Compare the runs of `simulated`: formulation -> its result."""
    from flexjax.formulation import formulations_for
    from flexjax.io import load_trajectory
    from flexjax.mechanism import describe

    report, robot = tour.report, tour.robot
    report.heading("The arm").text(
        "A motor rotates a slender aluminium bar by 1.2 rad in "
        f"{tour.duration:g} s and then holds it. "
        "The motion that remains is vibration. The robot file, and the quantities that follow from "
        "it:"
    )
    report.code(str(robot)).code(str(describe(robot)))
    supported, refused = formulations_for(robot)
    runs, rows = {}, []
    for name, result in found.items():
        if "error" in result:
            tour.check(False, f"{name} simulates the arm ({result['error']})")
            continue
        traj = runs[name] = load_trajectory(tour.folder / f"{name}.nc")
        balance, e = np.asarray(traj.energy.balance), traj.energy
        scale = max(float(np.max(np.abs(np.asarray(x)))) for x in (e.kinetic, e.work, e.gravity))
        error = float(np.max(np.abs(balance - balance[0]))) / scale
        rows.append([name, result["unknowns"], error, *result["seconds"]])
    flexible = {name: traj for name, traj in runs.items() if supported[name].deforms}
    _agreement(tour, rows, runs, flexible)
    for name, why in refused.items():
        report.text(f"{name} does not support this arm: {'; '.join(why)}.")
    if runs:
        finest = max(flexible or runs, key=lambda name: found[name]["unknowns"])
        _figures(tour, runs, flexible, finest)


def _figures(tour: Any, runs: dict, flexible: dict, finest: str) -> None:
    from flexjax.viz import animate, plot

    report = tour.report
    caption = (
        "Path of the tip in all formulations. The flexible ones coincide; only the rigid arm, "
        "which does not vibrate, is visibly different."
    )
    report.figure(plot(runs, "tip"), caption)
    report.figure(
        plot(runs, "deflection"),
        "Deflection of the tip from the tangent at the base: the tip lags behind the motor, then "
        "vibrates.",
    )
    if len(flexible) > 1:
        caption = (
            f"Distance of the tips from that of {finest}, which has the most unknowns: within a "
            "millimetre for the flexible formulations, centimetres for the rigid arm."
        )
        report.figure(plot(runs, "difference", reference=finest), caption)
    last = next(reversed(flexible or runs))
    report.figure(
        plot({last: runs[last]}, "energy"),
        f"Energies in {last}, and the error of their balance.",
    )
    report.heading("Motion").text(
        "Press Play. The deflection is small: set 'deformation' to 10x and tick 'rigid ghost' to "
        "compare the formulations."
    )
    report.view(
        animate(runs),
        "Drag to rotate, scroll to zoom. The file arm.html in the folder of this report contains "
        "the same page.",
    )
    animate(runs, tour.folder / "arm.html")


def _agreement(tour: Any, rows: list, runs: dict[str, Any], flexible: dict[str, Any]) -> None:
    tips = {name: np.asarray(traj.tip) for name, traj in runs.items()}
    middle = np.median(np.stack([tips[name] for name in flexible]), axis=0) if flexible else None
    head = [
        "formulation",
        "unknowns",
        "energy balance",
        "first run [s]",
        "second run [s]",
        "tip from the median [mm]",
    ]
    gaps = {}
    for row in rows:
        gap = (
            float("nan")
            if middle is None
            else 1e3 * float(np.max(np.linalg.norm(tips[row[0]] - middle, axis=1)))
        )
        gaps[row[0]] = gap
        row.append(gap)
    tour.report.heading("Comparison of the formulations").text(
        "A formulation is a published method that turns the description of an arm into equations "
        "of motion. Several formulations with independent code simulate the same motion here, and "
        "the rigid arm for contrast. Their agreement is evidence that each is correct."
    )
    tour.report.table(head, rows)
    tour.report.text(
        "Unknowns: size of the state. Energy balance: largest error of kinetic, elastic and "
        "potential energy minus the motor's work, relative to the largest energy. First run: "
        "includes compilation, which is needed once (here two programs at a time). Last "
        "column: largest distance of the tip from the median of the flexible formulations."
    )
    tour.data["formulations"] = [dict(zip(head, row, strict=True)) for row in rows]
    rigid = [gaps[name] for name in runs if name not in flexible]
    if len(flexible) > 1 and rigid:
        worst = max(gaps[name] for name in flexible)
        share = worst / max(rigid)
        names = ", ".join(flexible)
        tour.check(
            share < AGREE,
            f"{names} agree: tips within {worst:.3g} mm, {100 * share:.2g} % of the effect of "
            f"bending (limit {100 * AGREE:g} %)",
        )
    worst = max((row[2] for row in rows), default=float("nan"))
    tour.check(
        worst < 1e-3,
        f"energy balance within {worst:.1e} of the largest energy in every formulation (limit "
        "1e-3)",
    )
