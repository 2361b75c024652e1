"""Part of the tour: derivatives of the final tip by forward mode, reverse mode and finite differences."""

from flexjax.cli import _common

LIMIT = 1e-5


def show(tour) -> None:
    import jax.numpy as jnp

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic
    from flexjax.formulation import formulations_for
    from flexjax.robot import paths
    from flexjax.simulate import check_gradients, simulate

    robot = tour.robot
    holding, _ = formulations_for(robot)
    if not tour.runs:
        return
    # The flexible formulation that compiled fastest: its derivatives compile twice more.
    first = {row["formulation"]: row["first run [s]"] for row in tour.data["formulations"]}
    name = min([n for n in tour.runs if n != "RigidArm"] or tour.runs, key=lambda n: first[n])
    joint = robot.tree_joints[0].name
    link = robot.links[0].name
    known = {str(path) for path in paths(robot)}
    free = [
        p
        for p in (f"links.{link}.length", f"links.{link}.material.E", f"links.{link}.material.rho")
        if p in known
    ]
    ts = jnp.linspace(0.0, 0.05, 3)
    formulation = holding[name]

    def tip(numbers, angle):
        arm = robot
        for path, value in numbers.items():
            arm = arm.replace(path, value)
        drive = Drive(joints={joint: Motion(quintic(0.0, angle, 0.05))})
        return simulate(formulation.bind(arm), drive, ts, dt=2.5e-3, throw=False).tip[-1, 1]

    from flexjax.robot import get_path

    start = ({p: jnp.asarray(get_path(robot, p)) for p in free}, jnp.asarray(0.1))
    _common.say(f"gradients through {name}, three ways")
    table = check_gradients(tip, start)
    tour.report.heading("Gradients through the simulation")
    tour.report.text(
        "How much the final height of the tip changes with numbers of the arm and with the angle of the motion, differentiated through the "
        f"whole simulation in {name}: by jax's forward mode, "
        "by its reverse mode (as for training and optimisation), and by repeating the simulation with slightly changed numbers. All three must agree."
    )
    rows = [
        list(row)
        for row in zip(
            [*free, "angle of the motion"],
            table.forward.tolist(),
            table.reverse.tolist(),
            table.finite.tolist(),
            table.error.tolist(),
            strict=True,
        )
    ]
    tour.report.table(
        ["number", "forward", "reverse", "differences", "relative disagreement"],
        [[r[0], *(f"{x:.8g}" for x in r[1:4]), f"{r[4]:.1e}"] for r in rows],
    )
    tour.data["gradients"] = {row[0]: row[1:] for row in rows}
    tour.check(table.worst < LIMIT, f"gradients agree within {table.worst:.1e} (limit {LIMIT:g})")
