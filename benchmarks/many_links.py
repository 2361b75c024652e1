"""Cost over the number of links: spatial serial arms of 2 to 100 equal flexible links (paper 000).

    python -m benchmarks.many_links

The arm falls from rest with a torque on the first joint. Four times are measured: binding with its
compilation, compilation of the time loop, one implicit energy-conserving step, and one Newton
iteration. A slope is that of a line through the logarithms, over all sizes and between successive
ones, because fixed costs dominate small arms. The cost is linear in the number of links if the
slope does not exceed one. The slope of a step is that of an iteration plus that of their number.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._harness import fresh_compilations, measure, row, save, show_environment

jax.config.update("jax_enable_x64", True)

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import Instant

SIZES = (2, 5, 10, 25, 50, 100)
MODES = (1, 1, 1, 1)
DT, STEPS, REPEATS = 1e-3, 20, 15
LINK = {
    "EA": 9e4,
    "EIy": 675.0,
    "EIz": 168.75,
    "GJ": 178.0,
    "rhoA": 0.54,
    "rhoIx": 0.00050625,
    "rhoIy": 0.000405,
    "rhoIz": 0.00010125,
}


def many_links(n: int, length: float = 0.2) -> fx.Robot:
    """Equal links; the joint axes alternate between z and y."""
    links = [fx.Link(f"link{i}", length, constants=fx.BeamConstants(**LINK)) for i in range(n)]
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    parents = ["ground", *(link.name for link in links)]
    joints = [
        fx.Joint(f"joint{i}", "revolute", parents[i], f"link{i}", axis=axes[i % 2])
        for i in range(n)
    ]
    return fx.Robot.serial(links, joints, planar=False)


def fall(term, solver, y, dt, steps):
    """Take ``steps`` steps.

    Returns:
        The state, the energy before, the energy minus work after, and the Newton iterations per
        step.
    """
    state = solver.init(term, 0.0 * dt, dt, y, 0.5 * dt)

    def body(k, carry):
        y, state, iterations = carry
        y, _, _, state, _ = solver.step(term, k * dt, (k + 1) * dt, y, (k + 0.5) * dt, state, False)
        return y, state, iterations + state

    end, _, iterations = jax.lax.fori_loop(0, steps, body, (y, state, state))
    before, after = (sum(term.energies(Instant(0.0), x.mech.q, x.mech.v)) for x in (y, end))
    return end, before, after - end.work, iterations / steps


def one_size(n: int) -> dict:
    robot = many_links(n)
    begun = time.perf_counter()
    model = jax.block_until_ready(fx.ScrewSynthesis(modes=MODES).bind(robot))
    bind = time.perf_counter() - begun
    drive = fx.Drive(joints={"joint0": fx.Effort(fx.constant(0.2))})
    y = model.initial_state(drive, jnp.zeros(()), Start())
    arrays, static = eqx.partition(model.term(drive), eqx.is_array)
    solver = model.default_solver(drive)
    (_, before, after, iterations), step = measure(
        lambda a, y: fall(eqx.combine(a, static), solver, y, jnp.asarray(DT), STEPS),
        arrays,
        y,
        repeats=REPEATS,
    )
    return row(
        f"{n} links",
        links=n,
        coordinates=model.layout.nv,
        bind=bind,
        step_compile=step.compile,
        step_cpu=step.cpu / STEPS,
        step_wall=step.wall / STEPS,
        iterations=float(iterations),
        iteration_cpu=step.cpu / STEPS / float(iterations),
        energy_less_work=float(after - before),
    )


def slope(rows: list[dict], what: str) -> float:
    return float(
        np.polyfit(np.log([r["links"] for r in rows]), np.log([r[what] for r in rows]), 1)[0]
    )


def main():
    fresh_compilations()
    show_environment()
    rows = []
    for n in SIZES:
        r = one_size(n)
        rows.append(r)
        print(
            f"{n:4d} links, {r['coordinates']:4d} coordinates: "
            f"bind {r['bind']:5.1f} s, compile {r['step_compile']:5.1f} s; "
            f"CPU per step {1e3 * r['step_cpu']:8.3f} ms, wall {1e3 * r['step_wall']:8.3f} ms, "
            f"{r['iterations']:4.1f} iterations of {1e3 * r['iteration_cpu']:6.3f} ms; "
            f"energy - work {r['energy_less_work']:8.1e} J",
            flush=True,
        )
    line, wall, one = (slope(rows, what) for what in ("step_cpu", "step_wall", "iteration_cpu"))
    print(
        f"slope of the step: {line:.3f} in CPU time, {wall:.3f} in wall time; "
        f"slope of one iteration: {one:.3f} in CPU time (linear: 1)"
    )
    for a, b in zip(rows, rows[1:], strict=False):
        parts = [
            slope([a, b], what) for what in ("step_cpu", "step_wall", "iteration_cpu", "iterations")
        ]
        print(
            f"{a['links']:4d} to {b['links']:4d} links: "
            f"slope of the step: {parts[0]:.3f} in CPU time, {parts[1]:.3f} in wall time; "
            f"of one iteration: {parts[2]:.3f} in CPU time; of their number: {parts[3]:.3f}"
        )
    print(save("many_links", rows, dt=DT, modes=MODES, slope=line, slope_wall=wall))


if __name__ == "__main__":
    main()
