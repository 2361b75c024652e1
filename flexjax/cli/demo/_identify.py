"""Part of the tour: numbers of a small arm from a recorded run that ships with flexjax."""

from flexjax.cli import _common

NAME = "bench-arm"


def show(tour) -> None:
    from flexjax.formulation import RigidArm
    from flexjax.study.identify import identify, load_dataset
    from flexjax.viz import plot

    robot, training, validation, truth = load_dataset(NAME)
    _common.say(
        "identification: stiffness, damping and payload of a flexible joint from a recorded run"
    )
    result = identify(
        RigidArm().bind(robot), training, list(truth), validation=validation, dt=2.5e-3
    )
    report = tour.report.heading("Identification from data")
    report.text(
        "Gradients make it cheap to ask which numbers of a robot explain a measurement. The record that ships with flexjax, of another arm "
        "(a rigid link behind a flexible joint), was simulated "
        f"with 2 % noise, so the true numbers are known: {training}. The robot file holds guesses; the fit starts from them and must find the true ones."
    )
    low_high = result.intervals(0.99)
    rows = [
        [n, u, float(a), f"{v:.5g}", f"{lo:.5g} to {hi:.5g}", float(truth[n])]
        for n, u, a, v, (lo, hi) in zip(
            result.names, result.units, result.start, result.values, low_high, strict=True
        )
    ]
    report.table(["number", "unit", "robot file", "estimate", "99 % interval", "truth"], rows)
    report.figure(
        plot(result, "validation"), "A second record, not fitted: prediction and measurement."
    )
    tour.data["identification"] = result.estimates
    inside = all(lo <= truth[n] <= hi for n, (lo, hi) in zip(result.names, low_high, strict=True))
    worst = min(f for c in result.validation for f in c.fits.values())
    tour.check(
        inside,
        f"the 99 % intervals of {len(rows)} numbers hold the true ones, {result.evaluations:.3g} evaluations in {result.seconds:.1f} s",
    )
    tour.check(
        worst > 97.0, f"a record that was not fitted is predicted to {worst:.2f} % (2 % is noise)"
    )
