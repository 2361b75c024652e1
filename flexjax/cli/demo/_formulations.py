"""Part of the tour: the same arm in every formulation that can hold it."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from flexjax.cli import _common

ROBOT = "metal-link"
# How far the tips of the flexible formulations may lie from their median, relative to how far the rigid arm lies from it. Each runs with its default
# options and a step of 1 ms. Most of the 1.8 % is no error of meshes: ScrewSynthesis and FiniteElement have no foreshortening unless asked for
# (stiffening=True), so their tips lie 0.54 mm further out along the link, in step with the square of the deflection (correlation 0.9999; 0.6 w^2/L is
# 0.56 mm at 31 mm). Across the link the others ring at slightly different frequencies, by up to 0.5 mm, which grows with time.
AGREE = 0.02


def show(tour) -> None:
    import jax
    import jax.numpy as jnp

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic
    from flexjax.formulation import formulations_for
    from flexjax.io import save_trajectory
    from flexjax.robot import describe, load_robot
    from flexjax.simulate import simulate
    from flexjax.viz import animate, plot

    robot = tour.robot = load_robot(ROBOT)
    joint = robot.tree_joints[0].name
    end, duration = (0.2, 0.15) if tour.quick else (0.6, 0.45)
    drive = tour.drive = Drive(joints={joint: Motion(quintic(0.0, 1.2, duration))})
    ts = jnp.linspace(0.0, end, 41 if tour.quick else 121)
    report = tour.report
    report.heading("The arm").text(
        f"A slender aluminium bar on one motor. The motor turns it by 1.2 rad in {duration:g} s, smoothly, and then holds still: what moves "
        "afterwards is vibration. "
        "The robot file, and what follows from it:"
    )
    report.code(str(robot)).code(str(describe(robot)))
    holding, refused = formulations_for(robot)
    if tour.quick:
        holding = dict(list(holding.items())[:2])
    rows = []

    def timed(run):
        begin = time.perf_counter()
        return jax.block_until_ready(run()), time.perf_counter() - begin

    def first(item):
        """Bind, compile and run; what fails is told in the report, and the tour goes on."""
        name, formulation = item
        _common.say(f"{name}: compiling and simulating {end:g} s")
        try:
            model = formulation.bind(robot)
            return model, timed(lambda: simulate(model, drive, ts, dt=1e-3))[1]
        except Exception as error:
            return error, 0.0

    # Two at a time: most of the tour is compilation, which does not hold Python's lock and of which a good part uses one core.
    with ThreadPoolExecutor(2) as pool:
        firsts = dict(zip(holding, pool.map(first, holding.items()), strict=True))
    for name, (model, compiled) in firsts.items():
        if isinstance(model, Exception):
            tour.check(
                False,
                f"{name} simulates the arm ({type(model).__name__}: {str(model).splitlines()[0]})",
            )
            continue
        traj, again = timed(lambda model=model: simulate(model, drive, ts, dt=1e-3))
        seconds = [compiled, again]
        tour.runs[name] = traj
        balance = np.asarray(traj.energy.balance)
        scale = max(
            float(np.max(np.abs(np.asarray(x))))
            for x in (traj.energy.kinetic, traj.energy.work, traj.energy.gravity)
        )
        rows.append(
            [
                name,
                unknowns_of(traj),
                float(np.max(np.abs(balance - balance[0]))) / scale,
                seconds[0],
                seconds[1],
            ]
        )
        save_trajectory(traj, tour.folder / f"{name}.nc")
    flexible = {name: traj for name, traj in tour.runs.items() if name != "RigidArm"}
    _agreement(tour, rows, flexible)
    for name, why in refused.items():
        report.text(f"{name} cannot hold this arm: {'; '.join(why)}.")
    if not tour.runs:
        return
    caption = "Path of the tip in all formulations. They lie on each other; only the rigid arm, which does not vibrate, can be told apart."
    report.figure(plot(tour.runs, "tip"), caption)
    report.figure(
        plot(tour.runs, "deflection"),
        "Deflection of the tip from the tangent at the base: first it lags behind the motor, then it rings.",
    )
    if len(flexible) > 1:
        finest = max(flexible, key=lambda n: unknowns_of(flexible[n]))
        caption = f"How far the tips are from that of {finest}, with most unknowns: the flexible ones within a millimetre, the rigid arm by centimetres."
        report.figure(plot(tour.runs, "difference", reference=finest), caption)
    last = next(reversed(flexible or tour.runs))
    report.figure(
        plot({last: tour.runs[last]}, "energy"), f"Energies in {last}, and how well they balance."
    )
    report.heading("See it move").text(
        "Press Play. Bending is small at first sight: push 'deformation' to 10x and tick 'rigid ghost' to see who bends how."
    )
    report.view(
        animate(tour.runs),
        "Drag to turn, scroll to zoom. The same page as a file of its own: arm.html in the folder of this report.",
    )
    animate(tour.runs, tour.folder / "arm.html")


def unknowns_of(traj) -> int:
    import jax

    return sum(x.size for x in jax.tree.leaves(traj.final.mech))


def _agreement(tour, rows, flexible) -> None:
    tips = {name: np.asarray(traj.tip) for name, traj in tour.runs.items()}
    middle = np.median(np.stack([tips[name] for name in flexible]), axis=0) if flexible else None
    head = [
        "formulation",
        "unknowns",
        "energy balance",
        "first run [s]",
        "again [s]",
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
    tour.report.heading("Formulations side by side").text(
        "A formulation is a published way to turn the description of an arm into equations. Five of them simulate the same motion here, each "
        "by its own code, and the rigid arm for contrast. "
        "If they agree, none of them can be far off."
    )
    tour.report.table(head, rows)
    tour.report.text(
        "Unknowns: numbers of the state. Energy balance: how far kinetic, elastic and potential energy less the motor's work stray, of the "
        "largest energy. First run: compilation included, which "
        "happens once (two formulations at a time here); again: the same run after it. "
        "The last column: the largest distance of the tip from the median of the flexible formulations."
    )
    tour.report.text(
        "ScrewSynthesis and FiniteElement keep the length of a bent link along its own axis unless stiffening=True: their tips lie further out by about "
        "half the integral of the squared slope."
    )
    tour.data["formulations"] = [dict(zip(head, row, strict=True)) for row in rows]
    if len(flexible) > 1 and "RigidArm" in tour.runs:
        worst = max(gaps[name] for name in flexible)
        share = worst / gaps["RigidArm"]
        names = ", ".join(flexible)
        tour.check(
            share < AGREE,
            f"{names} agree: tips within {worst:.3g} mm, {100 * share:.2g} % of what bending changes (limit {100 * AGREE:g} %)",
        )
    worst = max((row[2] for row in rows), default=float("nan"))
    tour.check(
        worst < 1e-3,
        f"energies balance within {worst:.1e} of the largest energy in every formulation (limit 1e-3)",
    )
