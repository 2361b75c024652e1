"""Part of the tour: the same arm in every formulation that supports it."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from flexjax.cli import _common

ROBOT = "metal-link"
# Largest distance of a flexible tip from the median, relative to that of the rigid arm.
AGREE = 0.02


def show(tour: Any) -> None:
    import jax.numpy as jnp

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic
    from flexjax.formulation import formulations_for
    from flexjax.io import save_trajectory
    from flexjax.mechanism import describe
    from flexjax.robot import load_robot

    robot = tour.robot = load_robot(ROBOT)
    joint = robot.tree_joints[0].name
    end, duration = (0.2, 0.15) if tour.quick else (0.6, 0.45)
    tour.drive = Drive(joints={joint: Motion(quintic(0.0, 1.2, duration))})
    ts = jnp.linspace(0.0, end, 41 if tour.quick else 121)
    report = tour.report
    report.heading("The arm").text(
        f"A motor rotates a slender aluminium bar by 1.2 rad in {duration:g} s and then holds it. "
        "The motion that remains is vibration. The robot file, and the quantities that follow from "
        "it:"
    )
    report.code(str(robot)).code(str(describe(robot)))
    supported, refused = formulations_for(robot)
    if tour.quick:
        supported = dict(list(supported.items())[:2])
    rows = []
    for name, (traj, seconds) in _runs(tour, supported, ts).items():
        tour.runs[name] = traj
        balance, e = np.asarray(traj.energy.balance), traj.energy
        scale = max(float(np.max(np.abs(np.asarray(x)))) for x in (e.kinetic, e.work, e.gravity))
        error = float(np.max(np.abs(balance - balance[0]))) / scale
        rows.append([name, unknowns_of(traj), error, *seconds])
        save_trajectory(traj, tour.folder / f"{name}.nc")
    flexible = {name: traj for name, traj in tour.runs.items() if supported[name].deforms}
    _agreement(tour, rows, flexible)
    for name, why in refused.items():
        report.text(f"{name} does not support this arm: {'; '.join(why)}.")
    if tour.runs:
        _figures(tour, flexible)


def _runs(tour: Any, supported: dict, ts: Any) -> dict[str, tuple[Any, list[float]]]:
    """Trajectories, with the times of the first and the second run [s]; the report shows a failure,
    and the tour continues."""
    import jax

    from flexjax.simulate import simulate

    def timed(model):
        begin = time.perf_counter()
        traj = jax.block_until_ready(simulate(model, tour.drive, ts, dt=1e-3))
        return traj, time.perf_counter() - begin

    def first(item):
        name, formulation = item
        _common.log(f"{name}: compiling and simulating {float(ts[-1]):g} s")
        try:
            model = formulation.bind(tour.robot)
            return model, timed(model)[1]
        except Exception as error:
            return error, 0.0

    # Two at a time: most of the tour is compilation, which releases Python's lock.
    with ThreadPoolExecutor(2) as pool:
        firsts = dict(zip(supported, pool.map(first, supported.items()), strict=True))
    runs = {}
    for name, (model, compiled) in firsts.items():
        if isinstance(model, Exception):
            what = f"{type(model).__name__}: {str(model).splitlines()[0]}"
            tour.check(False, f"{name} simulates the arm ({what})")
            continue
        traj, again = timed(model)
        runs[name] = traj, [compiled, again]
    return runs


def _figures(tour: Any, flexible: dict) -> None:
    from flexjax.viz import animate, plot

    report = tour.report
    caption = (
        "Path of the tip in all formulations. The flexible ones coincide; only the rigid arm, "
        "which does not vibrate, is visibly different."
    )
    report.figure(plot(tour.runs, "tip"), caption)
    report.figure(
        plot(tour.runs, "deflection"),
        "Deflection of the tip from the tangent at the base: the tip lags behind the motor, then "
        "vibrates.",
    )
    if len(flexible) > 1:
        finest = max(flexible, key=lambda n: unknowns_of(flexible[n]))
        caption = (
            f"Distance of the tips from that of {finest}, which has the most unknowns: within a "
            "millimetre for the flexible formulations, centimetres for the rigid arm."
        )
        report.figure(plot(tour.runs, "difference", reference=finest), caption)
    last = next(reversed(flexible or tour.runs))
    report.figure(
        plot({last: tour.runs[last]}, "energy"),
        f"Energies in {last}, and the error of their balance.",
    )
    report.heading("Motion").text(
        "Press Play. The deflection is small: set 'deformation' to 10x and tick 'rigid ghost' to "
        "compare the formulations."
    )
    report.view(
        animate(tour.runs),
        "Drag to rotate, scroll to zoom. The file arm.html in the folder of this report contains "
        "the same page.",
    )
    animate(tour.runs, tour.folder / "arm.html")


def unknowns_of(traj: Any) -> int:
    import jax

    return sum(x.size for x in jax.tree.leaves(traj.final.mech))


def _agreement(tour: Any, rows: Any, flexible: dict[str, Any]) -> None:
    tips = {name: np.asarray(traj.tip) for name, traj in tour.runs.items()}
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
        "includes compilation, which is needed once (here two formulations at a time). Last "
        "column: largest distance of the tip from the median of the flexible formulations."
    )
    tour.data["formulations"] = [dict(zip(head, row, strict=True)) for row in rows]
    rigid = [gaps[name] for name in tour.runs if name not in flexible]
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
