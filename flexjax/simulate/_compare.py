"""compare: the same robot in every formulation that can hold it."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from flexjax.drive import Drive
from flexjax.formulation import formulations_for
from flexjax.robot import Robot
from flexjax.simulate._linear import modes
from flexjax.simulate._simulate import simulate
from flexjax.simulate.trajectory import Trajectory


class Row(eqx.Module):
    """One formulation in a comparison; differences are the largest over time against the reference."""

    name: str = eqx.field(static=True)
    unknowns: int = eqx.field(static=True)
    tip: float
    joints: float
    energy: float
    balance: float
    frequencies: tuple[float, ...]
    first_seconds: float
    run_seconds: float


class Comparison(eqx.Module):
    """Agreement, frequencies and cost of the formulations that can hold a robot; ``refused`` says why the others cannot."""

    robot: Robot
    reference: str = eqx.field(static=True)
    rows: tuple[Row, ...]
    trajectories: dict[str, Trajectory]
    refused: dict[str, list[str]] = eqx.field(static=True)

    def __str__(self) -> str:
        cost = f"{'first [s]':>10}{'run [s]':>9}"
        head = f"{'formulation':<18}{'unknowns':>9}{'tip [m]':>11}{'joints':>11}{'energy [J]':>11}{'balance':>10}{cost}  frequencies [Hz]"
        lines = [
            f"{self.robot.name}: largest difference from {self.reference} (the finest that is flexible)",
            head,
        ]
        for r in self.rows:
            freq = ", ".join(f"{f:.4g}" for f in r.frequencies)
            cost = f"{r.first_seconds:>10.2f}{r.run_seconds:>9.3f}"
            lines.append(
                f"{r.name:<18}{r.unknowns:>9d}{r.tip:>11.2e}{r.joints:>11.2e}{r.energy:>11.2e}{r.balance:>10.1e}{cost}  {freq}"
            )
        lines += [f"{name} refused: {'; '.join(why)}" for name, why in self.refused.items()]
        return "\n".join(lines)


def compare(
    robot: Robot,
    drive: Drive | None,
    ts,
    *,
    formulations: dict | None = None,
    reference: str | None = None,
    n_modes: int = 3,
    progress: Callable[[str], None] | None = None,
    **options,
) -> Comparison:
    """Simulate a robot in every registered formulation that can hold it, and compare tip, joints, energy, frequencies and cost.

    ``formulations`` (name -> formulation with your options) replaces the registry's defaults; ``reference`` names the one to compare with (default: the
    one with most unknowns that is not rigid); ``progress`` is called with the name of each before it is compiled and run; ``options`` go to :func:`simulate`.
    """
    holding, refused = formulations_for(robot)
    if formulations is not None:
        refused = {name: f.refusals(robot) for name, f in formulations.items() if f.refusals(robot)}
        holding = {name: f for name, f in formulations.items() if name not in refused}
    if not holding:
        raise ValueError(
            f"robot {robot.name!r}: no formulation can hold it:\n"
            + "\n".join(f"  - {k}: {'; '.join(v)}" for k, v in refused.items())
        )
    runs, sizes = {}, {}
    for name, formulation in holding.items():
        if progress is not None:
            progress(name)
        model = formulation.bind(robot)
        seconds = []
        for _ in range(2):
            begin = time.perf_counter()
            traj = jax.block_until_ready(simulate(model, drive, ts, **options))
            seconds.append(time.perf_counter() - begin)
        sizes[name] = sum(x.size for x in jax.tree_util.tree_leaves(traj.final.mech))
        frequencies = tuple(float(f) for f in modes(model, n=n_modes).frequencies)
        runs[name] = (traj, seconds, frequencies)
    flexible = [n for n in runs if n != "RigidArm"] or list(runs)
    reference = max(flexible, key=lambda n: sizes[n]) if reference is None else reference
    if reference not in runs:
        raise ValueError(f"reference: {reference!r}; expected one of {', '.join(runs)}.")
    best = runs[reference][0]
    rows = tuple(
        _row(name, sizes[name], traj, best, seconds, freq)
        for name, (traj, seconds, freq) in runs.items()
    )
    return Comparison(robot, reference, rows, {name: run[0] for name, run in runs.items()}, refused)


def _row(name, size, traj, best, seconds, frequencies) -> Row:
    def gap(a, b):
        return float(np.nanmax(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0))

    e = traj.energy
    balance = np.asarray(e.balance)
    scale = max(
        float(np.nanmax(np.abs(np.asarray(x)))) for x in (e.kinetic, e.elastic, e.gravity, e.work)
    )
    return Row(
        name, size, gap(traj.tip, best.tip), gap(traj.q, best.q), gap(e.mechanical - e.mechanical[0], best.energy.mechanical - best.energy.mechanical[0]),
        float(np.nanmax(np.abs(balance - balance[0]))) / scale if scale else 0.0, frequencies, seconds[0], seconds[1],
    )  # fmt: skip
