"""My, Bien, Le, Packianather (2019): both arms, the experiment's arm, their rigid counterparts, and the sliding contact on a flexible carrier.

    python experiments/001_finite_element/run.py [--quick]

Writes results/*.npz and results/claims.json below this folder and prints every claim with its number.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import flexjax as fx  # noqa: E402
from flexjax.term import Mechanical, State  # noqa: E402

HERE = Path(__file__).resolve().parent
REFERENCE = json.loads((HERE.parents[1] / "tests" / "reference" / "001_finite_element.json").read_text())
CLAIMS = []


def claim(name, value, expected, limit, note=""):
    good = bool(abs(value - expected) <= limit)
    CLAIMS.append({"claim": name, "value": float(value), "expected": float(expected), "limit": float(limit), "holds": good, "note": note})
    print(f"{'ok  ' if good else 'NOT '} {name:70s} {value:14.7g}  expected {expected:.7g} +- {limit:.1g}  {note}", flush=True)


def drift(traj):
    e = traj.energy
    good = np.isfinite(np.asarray(e.kinetic))
    scale = max(float(np.max(np.abs(np.asarray(x)[good]))) for x in (e.kinetic, e.elastic, e.gravity, e.work))
    return float(np.max(np.abs(np.asarray(e.balance)[good] - e.balance[0]))) / scale


def save(name, traj, **more):
    readings = fx.measure(traj) if traj.robot.sensors else {}
    np.savez(
        HERE / "results" / f"{name}.npz", t=traj.ts, q=traj.q, qd=traj.qd, effort=traj.effort, tip=traj.tip, w=traj.deflection[:, -1, :, 1],
        slope_tip=np.gradient(np.asarray(traj.deflection[:, -1, :, 1]), axis=1)[:, -1], reaction=traj.reaction,
        kinetic=traj.energy.kinetic, elastic=traj.energy.elastic, work=traj.energy.work, balance=traj.energy.balance, stations=traj.stations,
        **{f"sensor_{k}": v for k, v in readings.items()}, **more,
    )  # fmt: skip


def driven(case, switches):
    return fx.Drive(joints={k: fx.Effort(fx.bang_bang(a, switches)) for k, a in case["amplitude"].items()})


def paper_arm(name, case, switches, quick):
    """One of the paper's arms, flexible and rigid."""
    robot = fx.load_robot(case["robot"])
    ts = jnp.arange(0.0, (case["quick_end"] if quick else case["end"]) + 1e-9, 0.01)
    drive = driven(case, switches)
    flexible = fx.simulate(fx.FiniteElement(elements=case["elements"]).bind(robot), drive, ts, dt=case["dt"], throw=False)
    rigid = fx.simulate(fx.FiniteElement(elements=0).bind(robot), drive, ts, dt=case["dt"], throw=False)
    save(name, flexible)
    save(f"{name}_rigid", rigid)
    claim(f"{name}: energy balance, relative", drift(flexible), 0.0, 1e-8)
    return flexible, rigid


def compare(name, traj, reference, limits):
    """Against the reference samples at the times both have."""
    t = np.asarray(traj.ts)
    for time_ in reference["t"]:
        k = int(np.argmin(np.abs(t - time_)))
        if abs(t[k] - time_) > 1e-9 or time_ not in (0.1, 0.5, 2.0):
            continue
        i = reference["t"].index(time_)
        found = {"p1": traj.q[k, 0], "p2": traj.q[k, 1], "w": traj.deflection[k, -1, -1, 1]}
        for key, limit in limits.items():
            claim(f"{name}: {key} at {time_} s", float(found[key]), reference[key][i], limit)


def crossing(case, basis):
    """A link slides over a flexible carrier that swings."""
    r = case["rider"]
    beam = fx.Link("carrier", case["length"], constants=fx.BeamConstants(EA=1, EIy=1, EIz=case["EI"], GJ=1, rhoA=case["mu"]))
    rider = fx.Link("rider", r["length"], constants=fx.BeamConstants(EA=1, EIy=1, EIz=1, GJ=1, rhoA=r["mu"]), rigid=True)
    joints = [fx.Joint("shoulder", "revolute", "ground", "carrier"), fx.Joint("slide", "sliding", "carrier", "rider", rotation=[0, 0, np.pi / 2])]
    robot = fx.Robot("rpa", [beam, rider], joints, [fx.Payload("load", "rider", r["payload"])], gravity=[0.0, 0.0, 0.0], planar=True)
    model = fx.FiniteElement(elements=case["elements"], basis=basis).bind(robot)
    x = np.linspace(0.05, 1.0, 30)
    m = model.layout.shapes[0]
    rows = np.stack([np.asarray(model.links._station(jnp.zeros((2, m)), jnp.full(2, s)).f[0]) for s in x])
    c = np.linalg.lstsq(rows, case["carrier_velocity"] * x**2, rcond=None)[0]
    q = jnp.zeros(m + 2).at[1].set(case["start"])
    v = jnp.concatenate([jnp.array([0.0, case["speed"]]), jnp.asarray(c)])
    hold = fx.Drive(joints={"shoulder": fx.Motion(fx.constant(0.0))})
    ts = jnp.arange(0.0, case["end"] + 1e-9, 0.01)
    return fx.simulate(model, hold, ts, dt=case["dt"], start=State.fresh(Mechanical(q, v), q.dtype), throw=False)


def main():
    quick = argparse.ArgumentParser()
    quick.add_argument("--quick", action="store_true")
    quick = quick.parse_args().quick
    config = tomllib.loads((HERE / "config.toml").read_text())
    (HERE / "results").mkdir(exist_ok=True)
    began, switches = time.time(), config["switches"]

    flexible, rigid = paper_arm("rpb", config["rpb"], switches, quick)
    compare("RPb, n = 5", flexible, REFERENCE["bang_bang"]["RPb"]["n5_dt2e-05"], {"p1": 3e-4, "p2": 3e-5, "w": 3e-4})
    flexible, rigid = paper_arm("par", config["par"], switches, quick)
    compare("PaR, n = 3", flexible, REFERENCE["bang_bang"]["PaR"]["n3_dt2e-05"], {"p1": 5e-5, "p2": 2e-2, "w": 2e-2})
    compare("PaR, rigid", rigid, REFERENCE["bang_bang"]["PaR"]["rigid"], {"p1": 1e-6, "p2": 1e-6})
    spline, hermite = crossing(config["crossing"], "auto"), crossing(config["crossing"], "hermite")
    save("crossing_bspline", spline)
    save("crossing_hermite", hermite)
    wanted = REFERENCE["pa_crossing"]["ale12"]
    claim("RPa crossing, contact at .8 s, B-splines", float(spline.q[-1, 1]), wanted["d_end"], 1e-4, "against ALE with 12 elements")
    claim("RPa crossing, energy, B-splines", drift(spline), 0.0, 1e-8)
    claim("RPa crossing, energy, Hermite (leaks at borders)", drift(hermite), 4.3e-4, 4e-4, "the reason for the default")
    if not quick:
        traj, _ = paper_arm("experiment", config["experiment"], switches, quick)
        sensors = fx.measure(traj)
        mean = {k: float(np.mean(np.asarray(v)[-100:])) for k, v in sensors.items()}
        print("flex sensors, mean of the last second [rad]:", mean)
        case = config["rpb"]
        model = fx.FiniteElement(elements=case["elements"]).bind(fx.load_robot(case["robot"]))
        out = fx.simulate(model, driven(case, switches), jnp.linspace(0.0, case["failure_end"], 81), dt=case["dt"], throw=False)
        save("rpb_failure", out)
        claim("RPb leaves its guide (typed failure) at [s]", float(out.t_fail), 5.3, 0.3, fx.Status(int(out.status)).name)
    (HERE / "results" / "claims.json").write_text(json.dumps(CLAIMS, indent=1))
    print(f"{sum(c['holds'] for c in CLAIMS)} of {len(CLAIMS)} claims hold; {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
