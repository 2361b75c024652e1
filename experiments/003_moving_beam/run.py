"""Paper 003: computes every case and prints each claim with value, expected value and verdict.

    python experiments/003_moving_beam/run.py [--quick] [case ...]

The script writes results/<case>.json.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent.parent / ".cache" / "xla"))

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import Mechanical, State

sys.path.insert(0, str(HERE))
import resonance
import roller as moving_roller
from tools import CONFIG, first_mode, integrate, tip

jax.config.update("jax_enable_x64", True)
warnings.filterwarnings("ignore", message=".*unbounded below.*")
EXPECTED = json.loads((HERE / "expected.json").read_text())
ORDERS = ("linear", "cubic", "complete", "consistent")
ONLY: list[str] = []


def store(name, out):
    """Write the results so far; with ``--only`` the other variants are kept."""
    path = HERE / "results" / f"{name}.json"
    before = json.loads(path.read_text()) if path.exists() and ONLY else {}
    path.write_text(json.dumps(before | out))


def manoeuvre(name, robot, joints, quick, variants):
    c = CONFIG[name]
    end = c["end"]
    ts = np.linspace(0, end, int(40 * end) + 1)
    out = {"t": ts.tolist()}
    for label, options in variants.items():
        began = time.time()
        model = fx.MovingBeam(elements=c["elements"], **options).bind(robot)
        drive = fx.Drive(joints=joints | {"hub": fx.Motion(fx.spin_up(c["speed"], c["duration"]))})
        q, _, energy, status, t_fail = integrate(model, drive, ts, c["dt"] * (2 if quick else 1))
        ux, uy, _ = tip(model, q)
        late = ts > c["duration"]
        steady = float(np.mean(ux[late])) if late.any() and status == 0 else float("nan")
        balance = np.asarray(energy.balance)
        drift = float(
            np.max(np.abs(balance - balance[0])) / np.max(np.abs(np.asarray(energy.kinetic)))
        )
        out[label] = {
            "ux": ux.tolist(),
            "uy": uy.tolist(),
            "peak_uy": float(np.nanmin(uy)),
            "peak_ux": float(np.nanmin(ux)),
            "t_peak": float(ts[np.nanargmin(uy)]),
            "steady_ux": steady,
            "status": status,
            "t_fail": t_fail,
            "drift": drift,
        }
        print(
            f"  {label}: peak uy {np.nanmin(uy):.6f}, steady ux {steady:.6e}, status {status}, "
            f"t_fail {t_fail:.4g}, {time.time() - began:.0f} s",
            flush=True,
        )
        store(name, out)
    return out


def variants(quick, names):
    table = {order: {"order": order} for order in ORDERS} | {
        "constant": {"order": "linear", "inertia": "constant"}
    }
    return {k: table[k] for k in (ONLY or (("consistent", "cubic") if quick else names))}


def spin_up(quick):
    return manoeuvre(
        "spin_up",
        fx.load_robot("soeffker-spin-up"),
        {},
        quick,
        variants(quick, (*ORDERS, "constant")),
    )


def telescopic(quick):
    return manoeuvre(
        "telescopic",
        fx.load_robot("soeffker-telescopic-locked"),
        {},
        quick,
        variants(quick, (*ORDERS, "constant")),
    )


def _boom(c, length):
    constants = fx.BeamConstants(EA=c["EA"], EIy=c["EI"], EIz=c["EI"], GJ=c["EI"], rhoA=c["rhoA"])
    joint = fx.Joint("guide", "prismatic", "ground", "boom", home=c["start"])
    return fx.Robot(
        "boom",
        [fx.Link("boom", length, constants=constants)],
        [joint],
        gravity=(0.0, 0.0, 0.0),
        planar=True,
    )


def deployment(quick):
    """A boom extends from its guide and retracts with reversed velocities, retracing its motion.

    The consistent order (the default) agrees with the reference at an amplitude of 0.05 m. The
    complete order does so at a hundredth of it: the error of the missing terms grows with the
    square of the amplitude.
    """
    c = CONFIG["deployment"]
    ts = np.linspace(0, 6, 25)
    out = {"t": ts.tolist()}
    outwards = fx.Drive(
        joints={"guide": fx.Motion(fx.quintic(c["start"], c["stop"], c["duration"]))}
    )
    large = c["amplitude"]
    for order in ONLY or (("consistent",) if quick else ("complete", "consistent", "linear")):
        model = fx.MovingBeam(elements=c["elements"], order=order).bind(_boom(c, c["stop"]))

        def run(amplitude, model=model):
            shape = fx.Shape.of(y=lambda s: amplitude * first_mode(s))
            start = model.initial_state(outwards, 0.0, Start(links={"boom": shape}))
            return integrate(model, outwards, ts, c["dt"], start)

        want = (
            np.array(EXPECTED["deployment"]["tip_linear" if order == "linear" else "tip_complete"])
            / large
        )
        q, v, energy, status, _ = run(large)
        uy, balance = tip(model, q)[1] / large, np.asarray(energy.balance)
        drift = np.max(np.abs(balance - balance[0])) / np.max(np.asarray(energy.kinetic))
        row = {
            "uy": uy.tolist(),
            "want": want.tolist(),
            "error": float(np.max(np.abs(uy - want))),
            "status": status,
            "drift": float(drift),
        }
        if order == "complete":
            small = tip(model, run(large / 100)[0])[1] / (large / 100)
            row |= {"small": small.tolist(), "error_small": float(np.max(np.abs(small - want)))}
        if order == "consistent":
            at = int(np.argmin(np.abs(ts - c["duration"])))
            inwards = fx.Drive(
                joints={"guide": fx.Motion(fx.quintic(c["stop"], c["start"], c["duration"]))}
            )
            mechanical = Mechanical(jnp.asarray(q[at]), -jnp.asarray(v[at]))
            reversed_ = State.fresh(mechanical, jnp.float64)
            path = integrate(model, inwards, ts[: at + 1], c["dt"], reversed_)[0]
            back = tip(model, path)[1] / large
            row |= {
                "back": back.tolist(),
                "retraced": float(np.max(np.abs(back[::-1] - uy[: at + 1]))),
            }
        out[order] = row
        shown = [k for k in ("error", "error_small", "drift", "retraced") if k in row]
        print(f"  {order}" + "".join(f", {k} {row[k]:.2e}" for k in shown), flush=True)
        store("deployment", out)
    return out


def three_tubes(quick):
    """The three tubes of arm S retract and extend while the arm rotates.

    The overlaps grow and shrink, and material moves through the elements.
    """
    c = CONFIG["three_tubes"]
    model = fx.MovingBeam(elements=5).bind(fx.load_robot("soeffker-telescopic"))
    ts = np.linspace(0, c["duration"] + 1.0, 101)
    out = {"t": ts.tolist()}
    for label, (a, b) in {
        "retrieval": (c["long"], c["short"]),
        "deployment": (c["short"], c["long"]),
    }.items():
        slides = {f"telescope{k}": fx.Motion(fx.quintic(a, b, c["duration"])) for k in (1, 2)}
        drive = fx.Drive(joints=slides | {"hub": fx.Motion(fx.polynomial([0.0, c["speed"]]))})
        q, _, energy, status, _ = integrate(model, drive, ts, c["dt"])
        ux, uy, _ = tip(model, q)
        balance, kinetic = np.asarray(energy.balance), np.asarray(energy.kinetic)
        out[label] = {
            "ux": ux.tolist(),
            "uy": uy.tolist(),
            "work": np.asarray(energy.work).tolist(),
            "kinetic": kinetic.tolist(),
            "status": status,
            "drift": float(np.max(np.abs(balance - balance[0])) / np.max(kinetic)),
            "largest_uy": float(np.max(np.abs(uy))),
        }
        print(
            f"  {label}: largest uy {out[label]['largest_uy']:.4e}, "
            f"energy {out[label]['drift']:.1e}, status {status}",
            flush=True,
        )
    return out


def slow_extension(quick):
    """Amplitude of the free vibration while the boom extends slowly: sqrt(L)."""
    c, b = CONFIG["slow_extension"], CONFIG["deployment"]
    model = fx.MovingBeam(elements=c["elements"], order="linear").bind(_boom(b, 10.0))
    drive = fx.Drive(joints={"guide": fx.Motion(fx.quintic(b["start"], c["stop"], c["duration"]))})
    shape = fx.Shape.of(y=lambda s: 0.01 * first_mode(s))
    start = model.initial_state(drive, 0.0, Start(links={"boom": shape}))
    end = c["duration"] + 2.0
    ts = np.linspace(0, end, int(50 * end) + 1)
    q, _, _, status, _ = integrate(model, drive, ts, c["dt"], start)
    uy = tip(model, q)[1]
    before, after = np.max(np.abs(uy[ts < 2.0])), np.max(np.abs(uy[ts > c["duration"]]))
    ratio, law = after / before, np.sqrt(c["stop"] / b["start"])
    print(f"  amplitude ratio {ratio:.4f}, sqrt(L1/L0) {law:.4f}", flush=True)
    return {
        "t": ts.tolist(),
        "uy": uy.tolist(),
        "ratio": float(ratio),
        "law": float(law),
        "status": status,
    }


def static_limit(quick):
    """Tip load over tip deflection of a cantilever in each order, in radii of gyration.

    The deflection of five elements is prescribed in statics.
    """
    constants = fx.BeamConstants(EA=1e4, EIy=1.0, EIz=1.0, GJ=1.0, rhoA=1.0)  # r = 0.01
    robot = fx.Robot(
        "rod",
        [fx.Link("rod", 1.0, constants=constants)],
        [fx.Joint("weld", "fixed", "ground", "rod")],
        gravity=(0.0, 0.0, 0.0),
        planar=True,
    )
    r = 0.01
    w = np.linspace(0.0, 1.3, 53)
    out = {"w": w.tolist()}
    for order in ("linear", "cubic", "complete", "consistent"):
        model = fx.MovingBeam(elements=5, order=order).bind(robot)
        term = model.term(fx.Drive())
        at = (model.layout.elements - 1) * model.layout.width + 1  # uy of the tip

        @jax.jit
        def solve(q, deflection, term=term, at=at):
            free = jnp.arange(q.shape[0]) != at
            q = q.at[at].set(deflection)

            def newton(_, q):
                g, H = jax.grad(term.strain)(q), jax.hessian(term.strain)(q)
                H = jnp.where(free[:, None] & free[None, :], H, jnp.eye(q.shape[0]))
                return q - jnp.linalg.solve(H, jnp.where(free, g, 0.0))

            q = jax.lax.fori_loop(0, 12, newton, q)
            return q, jax.grad(term.strain)(q)

        q, load = jnp.zeros(model.layout.nv), []
        for x in w:
            q, g = solve(q, r * x)
            # Past a singular point of the other unknowns there is no equilibrium.
            balanced = np.max(np.abs(np.delete(np.asarray(g), at))) < 1e-6
            load.append(float(g[at]) / r if balanced else float("nan"))
        out[order] = load
    top = int(np.nanargmax(out["cubic"]))
    a, b, c = np.polyfit(w[top - 1 : top + 2], np.array(out["cubic"])[top - 1 : top + 2], 2)
    out["limit"] = float(-b / (2 * a))
    at_limit = {k: float(np.interp(out["limit"], w, out[k])) for k in ("complete", "consistent")}
    for k, load in at_limit.items():
        out[f"{k}_over_linear"] = load / float(np.interp(out["limit"], w, out["linear"]))
    ratios = ", ".join(f"{k} / linear there {out[f'{k}_over_linear']:.5f}" for k in at_limit)
    print(
        f"  limit point of the cubic order at {out['limit']:.3f} radii of gyration; {ratios}",
        flush=True,
    )
    return out


def parametric(quick):
    return resonance.parametric()


def planes(quick):
    return resonance.planes(ONLY or (["linear", "consistent"] if quick else []))


def roller(quick):
    """The recording of a beam with a moving roller; skipped if the data are missing."""
    root = Path(os.environ.get("FLEXJAX_DATA", HERE.parent.parent.parent / "shared" / "data"))
    path = root / "dropbear8" / "slow_10steps_slow5.csv"
    if not path.exists():
        print(
            f"  skipped: measured data not found at {path}; "
            "set FLEXJAX_DATA to the folder that contains dropbear8",
            flush=True,
        )
        return {}
    out = moving_roller.study(path, CONFIG["roller"])
    print(
        f"  rms error of the fit {out['rms_in']:.2%}, of the validation {out['rms_back']:.2%}, "
        f"of the twelve published frequencies {out['rms']:.2%}",
        flush=True,
    )
    return out


CASES = {
    f.__name__: f
    for f in (
        static_limit,
        spin_up,
        telescopic,
        deployment,
        three_tubes,
        slow_extension,
        parametric,
        planes,
        roller,
    )
}


def claims():
    """The claims of the existing results: (text, value, expected, tolerance).

    Without a tolerance the value must be at least as large as expected.
    """
    have = {
        k: json.loads((HERE / "results" / f"{k}.json").read_text())
        for k in CASES
        if (HERE / "results" / f"{k}.json").exists()
    }

    def get(*path):
        node = have
        for key in path:
            if key not in node:
                return None
            node = node[key]
        return node

    for claim in EXPECTED["claims"]:
        value = get(*claim["path"])
        if value is not None:
            yield claim["text"], value, claim["expected"], claim.get("tolerance")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="compute only this variant of the case (linear, cubic, ...); keep other results",
    )
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    given = parser.parse_args()
    (HERE / "results").mkdir(exist_ok=True)
    ONLY.extend(given.only)
    for name in given.cases or (("static_limit", "telescopic", "roller") if given.quick else CASES):
        print(name, flush=True)
        store(name, CASES[name](given.quick))
    failed = 0
    print(f"\n{'claim':78s} {'value':>12s} {'expected':>12s}  verdict")
    for text, value, expected, tolerance in claims():
        ok = value >= expected if tolerance is None else abs(value - expected) <= tolerance
        failed += not ok
        print(f"{text:78s} {value:12.6g} {expected:12.6g}  {'holds' if ok else 'DOES NOT HOLD'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
