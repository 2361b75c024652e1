"""Part of the tour: the same motion, shaped so that it leaves little vibration."""

from dataclasses import replace
from typing import Any

import numpy as np

from flexjax.cli.demo._demo import quickest

LESS = 5.0  # times less vibration after the shaped motion


def show(tour: Any) -> None:
    import jax.numpy as jnp

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic, shape
    from flexjax.simulate import equilibrium, modes, residual_vibration, rest, simulate

    name, method = quickest(tour.robot)
    if not method.deforms:
        return
    model, ts = method.bind(tour.robot), tour.ts
    ((joint, motion),) = tour.drive.joints.items()
    duration, angle = float(motion.signal.duration), float(motion.signal.end)
    goal = {joint: angle}
    frequency = float(modes(model, at=goal, n=1).frequencies[0])
    # ZVD takes a whole period, ZV half of one.
    kind = "zvd" if frequency * duration > 1.5 else "zv"
    added = float(shape(motion.signal, frequency, kind).lengthens)
    shaped = shape(quintic(0.0, angle, duration - added), frequency, kind)
    # One program for both: the quintic is a shaped motion whose first copy has all of the weight.
    first_only = jnp.zeros_like(shaped.weights).at[0].set(1.0)
    usual = replace(shaped, signal=motion.signal, weights=first_only)
    drives = {
        label: Drive(joints={joint: Motion(signal)})
        for label, signal in (("quintic", usual), (kind.upper(), shaped))
    }
    # The link sags under gravity before it moves. Released straight, it would vibrate all the time.
    start = equilibrium(model, drives["quintic"])
    runs = {label: simulate(model, d, ts, dt=1e-3, start=start) for label, d in drives.items()}
    tip = rest(model, goal).tip
    peaks = {label: float(residual_vibration(r, duration, rest=tip)) for label, r in runs.items()}
    _report(tour, name, runs, peaks, frequency, added)


def _report(tour, name, runs, peaks, frequency, added) -> None:
    from flexjax.viz import animate, plot

    usual, kind = runs
    tour.report.heading("A move without vibration")
    tour.report.text(
        f"The first mode of the arm at the goal has {frequency:.3g} Hz. The input shaper {kind} "
        f"divides a quintic that is {added:.3g} s shorter among copies, so that the vibrations "
        f"that they excite cancel. Both motions start from rest under gravity and end at the same "
        f"time, in {name}. fx.optimise finds "
        "moves that are also robust and within limits: flexjax optimise --help."
    )
    rows = [[label, 1e3 * peak] for label, peak in peaks.items()]
    tour.report.table(["motion", "largest distance of the tip from rest afterwards [mm]"], rows)
    tour.report.figure(
        plot(runs, "deflection"), "Deflection of the tip: the shaped motion ends without vibration."
    )
    tour.report.view(animate(runs), "Both arms side by side.")
    tour.data["vibration"] = peaks
    less = peaks[usual] / peaks[kind]
    tour.check(
        np.isfinite(less) and less > LESS,
        f"the shaped motion leaves {less:.3g} times less vibration than the quintic of the same "
        f"duration (limit {LESS:g})",
    )
