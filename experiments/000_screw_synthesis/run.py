"""Paper 000: link and welded links against theory, effect of printed errors, cost of long arms.

    python experiments/000_screw_synthesis/run.py [--quick]

The paper contains no examples. --quick shortens the runs and keeps two of the arms.
"""

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import printed as study

import flexjax as fx
from flexjax.formulation import Start

RESULTS = HERE / "results"
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
LOST = 1e3  # [J], [kg m/s], [kg m^2/s]: a larger change, or NaN, counts as lost


def arm(link, types, gravity=(0.0, -9.81, 0.0), scale=1.0, **over):
    """A serial arm of equal links, whose length is multiplied by ``scale``."""
    c = {k: v for k, v in link.items() if k != "length"} | over
    links = [
        fx.Link(f"link{i}", link["length"] * scale, constants=fx.BeamConstants(**c))
        for i in range(len(types))
    ]
    parents = ["ground", *(x.name for x in links[:-1])]
    joints = [
        fx.Joint(
            f"joint{i}",
            kind,
            parents[i],
            f"link{i}",
            **({"axis": AXES[i % 2]} if kind == "revolute" else {}),
        )
        for i, kind in enumerate(types)
    ]
    return fx.Robot.serial(links, joints, planar=False, gravity=gravity)


def frequencies(model):
    term, n = model.term(fx.Drive()), model.layout.nv
    q = model.initial_state(fx.Drive(), jnp.zeros(()), Start()).mech.q
    build = jax.jit(
        lambda term, q: (
            jax.vmap(lambda e: term.momentum(q, e))(jnp.eye(n)),
            jax.jacfwd(term.potential_gradient)(q),
        )
    )
    M, K = (np.asarray(x) for x in build(term, q))
    L = np.linalg.cholesky(0.5 * (M + M.T))
    inner = np.linalg.solve(L, np.linalg.solve(L, 0.5 * (K + K.T)).T)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(0.5 * (inner + inner.T)), 0.0))


class Claims:
    """Claims with value, expected value and verdict."""

    def __init__(self):
        self.rows = []

    def add(self, claim, number, expected, good):
        self.rows.append(
            {
                "claim": claim,
                "number": float(number),
                "expected": expected,
                "verdict": "agrees" if good else "DIFFERS",
            }
        )
        print(f"{self.rows[-1]['verdict']:8} {claim:<88} {number:14.6g}   {expected}", flush=True)


def one_link_and_weld(config, claims):
    link = config["link"]
    slender = {"rhoIy": 0.0, "rhoIz": 0.0}
    theory = (
        np.sqrt(link["EIz"] / link["rhoA"])
        / link["length"] ** 2
        * np.array([1.87510406871, 4.69409113297, 7.85475743824]) ** 2
    )
    table = {}
    for basis in ("polynomial", "clamped-free"):
        for r in (2, 3, 4, 5):
            make = fx.ScrewSynthesis(modes=(0, r, 0, 0), basis=basis, variant="paper")
            one = (
                frequencies(make.bind(arm(link, ["fixed"], (0.0, 0.0, 0.0), **slender)))[0]
                / theory[0]
                - 1
            )
            weld = (
                frequencies(make.bind(arm(link, ["fixed", "fixed"], (0.0, 0.0, 0.0), **slender)))[0]
                / (theory[0] / 4)
                - 1
            )
            table[f"{basis} {r}"] = (float(one), float(weld))
    claims.add(
        "clamped link, first frequency, 5 polynomials: relative error",
        abs(table["polynomial 5"][0]),
        "< 1e-7",
        abs(table["polynomial 5"][0]) < 1e-7,
    )
    claims.add(
        "two welded links, 3 polynomials: first frequency [rad/s]",
        (1 + table["polynomial 3"][1]) * theory[0] / 4,
        "24.27939",
        abs((1 + table["polynomial 3"][1]) * theory[0] / 4 - 24.2793868) < 1e-5,
    )
    ratio = table["clamped-free 2"][1] / table["clamped-free 4"][1]
    claims.add(
        "two welded links, eigenfunctions: error with 2 over error with 4 (falls like 1/r)",
        ratio,
        "about 2",
        1.5 < ratio < 2.6,
    )
    return table


def printed_errors(config, claims, end):
    link, settings = config["link"], config["printed"]
    dt = settings["dt"]
    steps = round(end / dt)
    make = fx.ScrewSynthesis(modes=tuple(settings["modes"]), variant="paper")
    swing = make.bind(arm(link, ["revolute", "revolute"]))
    y = swing.initial_state(fx.Drive(), jnp.zeros(()), Start(joints={"joint1": jnp.asarray(0.6)}))
    energy, _ = (np.asarray(x) for x in study.march(swing, y, dt, steps))
    free = make.bind(arm(link, ["free", "revolute"], (0.0, 0.0, 0.0)))
    rates = {"joint0": jnp.array([0.3, -0.2, 0.1, 2.0, 3.0, -2.5]), "joint1": jnp.asarray(5.0)}
    y = free.initial_state(fx.Drive(), jnp.zeros(()), Start(rates=rates))
    free_energy, momentum = (np.asarray(x) for x in study.march(free, y, dt, steps))
    rows = {}
    print(
        f"\n{'printed':<46} {'swing: energy [J]':>18} {'free: energy [J]':>18} "
        f"{'lin. momentum':>14} {'ang. momentum':>14}"
    )
    for i, name in enumerate(["right", *study.FLAGS]):
        change = np.abs(momentum[i] - momentum[i, 0])
        drifts = [np.abs(energy[i] - energy[i, 0]), np.abs(free_energy[i] - free_energy[i, 0])]
        drifts += [np.max(change[:, :3], axis=1), np.max(change[:, 3:], axis=1)]
        rows[name] = [
            float(np.max(x)) if np.all(x < LOST) else f"lost at {dt * np.argmin(x < LOST):.3f} s"
            for x in drifts
        ]
        cells = [f"{x:.3g}" if isinstance(x, float) else x for x in rows[name]]
        print(f"{name:<46} {cells[0]:>18} {cells[1]:>18} {cells[2]:>14} {cells[3]:>14}")
    print()
    right = rows["right"]
    claims.add(
        "all corrected: energy and momentum drift of the study's own integrator",
        max(right),
        "< 1e-5",
        max(right) < 1e-5,
    )
    for name in study.FLAGS:
        worst = max(
            np.inf if isinstance(x, str) else x / max(ours, 1e-12)
            for x, ours in zip(rows[name], right, strict=True)
        )
        keeps = name in study.CONSISTENT  # conserves energy, but has wrong frequencies
        claims.add(
            f"printed {name}: worst drift over that of the corrected",
            worst,
            "about 1" if keeps else "> 1e3",
            (worst < 1e3) == keeps,
        )
    for n in (1, 2, 3):
        rank, size = study.ranks(
            make.bind(arm(link, ["revolute"] * n)),
            make.bind(arm(link, ["revolute"] * n))
            .initial_state(fx.Drive(), jnp.zeros(()), Start())
            .mech.q,
        )
        claims.add(
            f"printed projection with six wrenches (43, 67), {n} links: rank of M_q",
            rank,
            f"{11 * n} of {size}",
            rank == 11 * n,
        )
    rank, size = study.rank_with_rigid_functions()
    claims.add(
        "printed basis with rigid motions, one link in a plane: rank of its mass matrix",
        rank,
        f"3 of {size}",
        rank == 3,
    )
    np.savez(
        RESULTS / "printed.npz",
        energy=energy,
        free_energy=free_energy,
        momentum=momentum,
        dt=dt,
        names=np.array(["right", *study.FLAGS]),
    )
    return rows


def arms(config, claims, counts, steps):
    link, settings = config["link"], config["arms"]
    dt, cost, drift, tips = settings["dt"], {}, {}, {}
    make = fx.ScrewSynthesis(modes=tuple(settings["modes"]), variant="paper")
    drive = fx.Drive(joints={"joint0": fx.Effort(fx.constant(settings["torque"]))})
    ts = jnp.arange(steps // 10 + 1) * (10 * dt)
    for n in counts:
        model = make.bind(arm(link, ["revolute"] * n, scale=settings["length"] / link["length"]))
        # Rotated about every second axis at the start, so that the motion is spatial.
        bent = {f"joint{i}": settings["bent"] for i in range(1, n, 2)}
        begun = time.perf_counter()
        traj = jax.block_until_ready(
            fx.simulate(model, drive, ts, substeps=10, stations=3, start=bent)
        )
        first = time.perf_counter() - begun
        balance = np.asarray(traj.energy.balance)
        drift[n] = float(np.max(np.abs(balance - balance[0])))
        # CPU time is insensitive to other programs on the machine.
        begun = time.process_time()
        jax.block_until_ready(fx.simulate(model, drive, ts, substeps=10, stations=3, start=bent).ts)
        cost[n] = (time.process_time() - begun) / steps
        tips[n] = np.asarray(traj.frames[:, :, -1, :3])
        print(
            f"   {n:4d} links: {model.layout.nv} coordinates, first call {first:.1f} s, "
            f"{1e3 * cost[n]:.3f} ms CPU per step, energy - work {drift[n]:.2e} J",
            flush=True,
        )
        claims.add(
            f"{n} links under gravity and torque, {steps * dt:g} s: energy - work [J]",
            drift[n],
            "< 1e-9",
            drift[n] < 1e-9,
        )
        if n == counts[0]:
            good = [
                model.formulation.well_posed(
                    model.robot, dict(zip((j.name for j in traj.robot.joints), q, strict=True))
                )
                for q in traj.q[::5]
            ]
            worst = max(g.condition for g in good)
            claims.add(
                f"{n} links: largest condition number of M_sys along the run",
                worst,
                "< 1e6",
                worst < 1e6 and all(good),
            )
    sizes = np.array(sorted(cost))
    if counts[-1] == 100:
        coarse, at = settings["coarse"], round(settings["coarse_end"] / (10 * dt))
        end = jnp.array([0.0, settings["coarse_end"]])
        traj = fx.simulate(
            model, drive, end, dt=coarse, solver=fx.GeneralisedAlpha(0.9), stations=3, start=bent
        )
        gap = float(np.max(np.abs(np.asarray(traj.frames[-1, :, -1, :3]) - tips[100][at])))
        claims.add(
            f"100 links, generalised-alpha at {coarse:g} s against the energy-conserving step at "
            f"{dt:g} s, after {end[-1]:g} s: tips [m]",
            gap,
            "< 1e-5",
            gap < 1e-5,
        )
    if len(sizes) > 2:
        slope = np.polyfit(np.log(sizes), np.log([cost[n] for n in sizes]), 1)[0]
        claims.add("time per step against number of links: slope", slope, "<= 1.1", slope <= 1.1)
    np.savez(
        RESULTS / "arms.npz",
        sizes=sizes,
        ts=np.asarray(ts),
        cost=np.array([cost[n] for n in sizes]),
        **{f"tips{n}": tips[n] for n in sizes},
    )
    return {
        "cost_per_step_s": {str(k): v for k, v in cost.items()},
        "balance_J": {str(k): v for k, v in drift.items()},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("link", "printed", "arms"))
    args = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    RESULTS.mkdir(exist_ok=True)
    claims, out = Claims(), {}
    if args.only in (None, "link"):
        out["frequencies"] = one_link_and_weld(config, claims)
    if args.only in (None, "printed"):
        out["printed"] = printed_errors(
            config, claims, config["quick"]["end"] if args.quick else config["printed"]["end"]
        )
    if args.only in (None, "arms"):
        counts, steps = (
            (config["quick"]["links"], config["quick"]["steps"])
            if args.quick
            else (config["arms"]["links"], config["arms"]["steps"])
        )
        out["arms"] = arms(config, claims, counts, steps)
    for name, part in out.items():
        (RESULTS / f"{name}.json").write_text(json.dumps(part, indent=1))
    name = "claims.json" if args.only is None else f"claims-{args.only}.json"
    (RESULTS / name).write_text(json.dumps(claims.rows, indent=1))
    return any(row["verdict"] != "agrees" for row in claims.rows)


if __name__ == "__main__":
    sys.exit(main())
