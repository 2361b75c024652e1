"""Part of the tour: gradients by forward mode, reverse mode and finite differences."""

from typing import Any

from flexjax.cli.demo._demo import quickest

LIMIT = 1e-5


def show(tour: Any) -> None:
    import jax.numpy as jnp

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic
    from flexjax.robot import get_path, paths
    from flexjax.simulate import check_gradients, simulate

    robot = tour.robot
    joint = robot.tree_joints[0].name
    link = robot.links[0].name
    known = {str(path) for path in paths(robot)}
    free = [
        p
        for p in (f"links.{link}.length", f"links.{link}.material.E", f"links.{link}.material.rho")
        if p in known
    ]
    ts = jnp.linspace(0.0, 0.05, 3)
    name, method = quickest(robot)

    def tip(parameters, angle):
        arm = robot
        for path, value in parameters.items():
            arm = arm.replace(path, value)
        drive = Drive(joints={joint: Motion(quintic(0.0, angle, 0.05))})
        return simulate(method.bind(arm), drive, ts, dt=2.5e-3, throw=False).tip[-1, 1]

    start = ({p: jnp.asarray(get_path(robot, p)) for p in free}, jnp.asarray(0.1))
    table = check_gradients(tip, start)
    tour.report.heading("Gradients through the simulation")
    tour.report.text(
        "Derivatives of the final height of the tip with respect to parameters of the arm and the "
        f"angle of the motion, through the whole simulation in {name}: by jax's forward mode, by "
        "its reverse mode, and by finite differences of the simulation. All three must agree."
    )
    names = [*free, "angle of the motion"]
    columns = (table.forward, table.reverse, table.finite, table.error)
    rows = [list(row) for row in zip(names, *(x.tolist() for x in columns), strict=True)]
    tour.report.table(
        ["parameter", "forward", "reverse", "finite differences", "relative error"],
        [[r[0], *(f"{x:.8g}" for x in r[1:4]), f"{r[4]:.1e}"] for r in rows],
    )
    tour.data["gradients"] = {row[0]: row[1:] for row in rows}
    tour.check(table.worst < LIMIT, f"gradients agree within {table.worst:.1e} (limit {LIMIT:g})")
