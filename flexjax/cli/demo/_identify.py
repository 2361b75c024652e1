"""Part of the tour: parameters of a small arm, estimated from a shipped recording."""

from typing import Any

NAME = "bench-arm"


def show(tour: Any) -> None:
    from flexjax.cli.demo._demo import QUICKEST
    from flexjax.formulation import formulation, formulations_for
    from flexjax.study.identify import identify, load_dataset
    from flexjax.viz import plot

    robot, training, validation, truth = load_dataset(NAME)
    report = tour.report.heading("Identification from data")
    if QUICKEST not in formulations_for(robot)[0]:
        report.text(f"Left out: the recording is that of a flexible link, which needs {QUICKEST}.")
        return
    model = formulation(QUICKEST)(segments=16).bind(robot)
    result = identify(model, training, list(truth), validation=validation, dt=1.25e-3)
    report.text(
        "Gradients make it cheap to estimate robot parameters from measurements. This recording of "
        "another arm, a flexible link whose gear sticks (LuGre friction), was simulated by another "
        f"code, Exudyn, with 2 % noise. So the true parameters are known: {training}. The fit "
        "starts from the guesses in the robot file and must recover the true parameters."
    )
    low_high = result.intervals(0.99)
    rows = [
        [n, u, float(a), f"{v:.5g}", f"{lo:.5g} to {hi:.5g}", float(truth[n])]
        for n, u, a, v, (lo, hi) in zip(
            result.names, result.units, result.start, result.values, low_high, strict=True
        )
    ]
    report.table(["parameter", "unit", "robot file", "estimate", "99 % interval", "truth"], rows)
    report.figure(
        plot(result, "validation"), "A second recording, not fitted: prediction and measurement."
    )
    tour.data["identification"] = result.estimates
    inside = all(lo <= truth[n] <= hi for n, (lo, hi) in zip(result.names, low_high, strict=True))
    worst = min(f for c in result.validation for f in c.fits.values())
    tour.check(
        inside,
        f"the 99 % intervals of {len(rows)} parameters contain the true values "
        f"({result.evaluations:.0f} gradient evaluations, {result.seconds:.0f} s)",
    )
    tour.check(worst > 97.0, f"the fit of the validation recording is {worst:.2f} % (2 % is noise)")
