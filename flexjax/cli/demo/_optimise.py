"""Part of the tour: a move without vibration beside the naive one."""

from typing import Any

from flexjax.cli import _common

GAIN = 50  # least ratio of the vibrations


def show(tour: Any) -> None:
    if tour.quick:
        return
    import numpy as np

    from flexjax.formulation.transfer_matrix import TransferMatrix
    from flexjax.robot import get_path, load_robot
    from flexjax.simulate import modes
    from flexjax.study.optimise import optimise
    from flexjax.viz import Animation

    model = TransferMatrix(segments=4).bind(load_robot("li-zhang-single-link"))
    duration = 1.5 / float(modes(model, n=1).frequencies[0])
    _common.log("TransferMatrix: compiling and searching a move without vibration")
    found = optimise(
        model,
        goal={"motor": 1.0},
        duration=duration,
        spread={"links.link.material.E": 0.1},
        samples=3,
        steps=60,
        tolerance=1e-4,
    )
    path = "links.link.material.E"
    E = float(np.asarray(get_path(model.robot, path)))
    values = [0.9 * E, E, 1.1 * E]
    peaks = {
        k: float(max(x)) for k, x in found.against("quintic", path=path, values=values).items()
    }
    tour.report.heading("A move without vibration")
    tour.report.text(
        f"The single link turns by 1 rad in 1.5 periods of its first mode, {duration:.3g} s. The "
        "quintic is the usual motion from rest to rest. The other motion was found on the "
        "derivatives of the simulation, for a stiffness that is known to 10 %."
    )
    rows = [[name, f"{1e3 * peak:.3g}"] for name, peak in peaks.items()]
    tour.report.table(["move", "worst peak at the tip after the move [mm]"], rows)
    runs = {"optimised": found.replay(), "quintic": found.replay(move="quintic")}
    tour.report.view(Animation(runs), "The optimised move and the quintic.")
    tour.data["move"] = {"duration": duration, "peaks": peaks, "status": found.status}
    ratio = peaks["quintic"] / peaks["optimised"]
    tour.check(
        ratio >= GAIN,
        f"the optimised move leaves {ratio:.0f} times less vibration (at least {GAIN})",
    )
