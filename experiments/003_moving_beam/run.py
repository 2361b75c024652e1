"""Paper 003: computes every case, writes results/<case>.json and prints each claim with its number, what was expected, and the verdict.

python experiments/003_moving_beam/run.py [--quick] [case ...]

The cases look at elastic unknowns only, so states are integrated without recovering poses, strains and reactions (a third of the compile time).
"""

import argparse
import json
import os
import sys
import time
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent.parent / ".cache" / "xla"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import flexjax as fx  # noqa: E402
from flexjax.formulation import Start  # noqa: E402
from flexjax.simulate._march import march  # noqa: E402
from flexjax.term import Mechanical, State  # noqa: E402

jax.config.update("jax_enable_x64", True)
warnings.filterwarnings("ignore", message=".*unbounded below.*")
CONFIG = tomllib.loads((HERE / "config.toml").read_text())
EXPECTED = json.loads((HERE / "expected.json").read_text())
ORDERS = ("linear", "cubic", "complete", "consistent")
ONLY: list[str] = []


def integrate(model, drive, ts, dt, start=None, solver=None):
    """Configurations and velocities at ``ts``, energies, status, time of failure."""
    ts = jnp.asarray(ts)
    substeps = max(1, int(np.ceil(float(np.max(np.diff(ts))) / dt * (1 - 1e-6))))
    solver = model.default_solver(drive) if solver is None else solver

    @jax.jit
    def run(model, drive, start):
        y0 = model.initial_state(drive, ts[0], Start()) if start is None else start
        ys, lane = march(model, drive, solver, ts, substeps, y0, checkpoint=False)
        return ys, jax.vmap(lambda t, y: model.energy(t, y, drive))(ts, ys), lane.status, lane.t_fail

    ys, energy, status, t_fail = run(model, drive, start)
    good = ~(np.asarray(ts) > float(t_fail) - 1e-12)
    q = np.where(good[:, None], np.asarray(ys.mech.q), np.nan)
    return q, np.asarray(ys.mech.v), energy, int(status), float(t_fail)


def store(name, out):
    """Results so far; with ``--only`` other variants are kept."""
    path = HERE / "results" / f"{name}.json"
    before = json.loads(path.read_text()) if path.exists() and ONLY else {}
    path.write_text(json.dumps(before | out))


def tip(model, q):
    """(ux, uy, uz) of the outer end, in the joint frame."""
    lay = model.layout
    last = q[:, lay.dofs + (lay.elements - 1) * lay.width :]
    zero = np.zeros(len(q))
    return (last[:, 0], last[:, 1], zero) if lay.planar else (last[:, 0], last[:, 2], last[:, 4])


def first_mode(x):
    """First mode of a cantilever, one at the tip."""
    b = 1.87510406871
    s = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    return 0.5 * (jnp.cosh(b * x) - jnp.cos(b * x) - s * (jnp.sinh(b * x) - jnp.sin(b * x)))


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
        drift = float(np.max(np.abs(balance - balance[0])) / np.max(np.abs(np.asarray(energy.kinetic))))
        out[label] = {
            "ux": ux.tolist(), "uy": uy.tolist(), "peak_uy": float(np.nanmin(uy)), "peak_ux": float(np.nanmin(ux)), "t_peak": float(ts[np.nanargmin(uy)]),
            "steady_ux": steady, "status": status, "t_fail": t_fail, "drift": drift,
        }  # fmt: skip
        print(f"  {label}: peak uy {np.nanmin(uy):.6f}, steady ux {steady:.6e}, status {status}, t_fail {t_fail:.4g}, {time.time() - began:.0f} s", flush=True)
        store(name, out)
    return out


def variants(quick, names):
    table = {order: {"order": order} for order in ORDERS} | {"constant": {"order": "linear", "inertia": "constant"}}
    return {k: table[k] for k in (ONLY or (("complete", "cubic") if quick else names))}


def spin_up(quick):
    return manoeuvre("spin_up", fx.load_robot("soeffker-spin-up"), {}, quick, variants(quick, (*ORDERS, "constant")))


def telescopic(quick):
    return manoeuvre("telescopic", fx.load_robot("soeffker-telescopic-locked"), {}, quick, variants(quick, ("linear", "cubic", "complete", "constant")))


def _boom(c, length):
    constants = fx.BeamConstants(EA=c["EA"], EIy=c["EI"], EIz=c["EI"], GJ=c["EI"], rhoA=c["rhoA"])
    joint = fx.Joint("guide", "prismatic", "ground", "boom", home=c["start"])
    return fx.Robot("boom", [fx.Link("boom", length, constants=constants)], [joint], gravity=(0.0, 0.0, 0.0), planar=True)


def deployment(quick):
    """A boom runs out of its guide, then is drawn in again: the way back, begun with turned velocities, must retrace the way out.

    The reference is the limit of small deflections. The complete order is therefore run at a hundredth of its amplitude too; what 0.05 m changes is finite
    amplitude and not error (it falls with the square of the amplitude)."""
    c = CONFIG["deployment"]
    ts = np.linspace(0, 6, 25)
    out = {"t": ts.tolist()}
    for order in ONLY or (("complete",) if quick else ("complete", "linear")):
        model = fx.MovingBeam(elements=c["elements"], order=order).bind(_boom(c, c["stop"]))

        def run(ts, drive, amplitude=None, start=None, model=model):
            if start is None:
                start = model.bent(model.initial_state(drive, 0.0, Start()), uy=lambda x: amplitude * first_mode(x / c["start"]))
            return integrate(model, drive, ts, c["dt"], start)

        outwards = fx.Drive(joints={"guide": fx.Motion(fx.quintic(c["start"], c["stop"], c["duration"]))})
        small, large = c["amplitude"] / 100, c["amplitude"]
        q, _, _, status, _ = run(ts, outwards, small)
        uy = tip(model, q)[1] / small
        want = np.array(EXPECTED["deployment"][f"tip_{order}"]) / large
        q, v, energy, _, _ = run(ts, outwards, large)
        finite, balance = tip(model, q)[1] / large, np.asarray(energy.balance)
        at = int(np.argmin(np.abs(ts - c["duration"])))
        inwards = fx.Drive(joints={"guide": fx.Motion(fx.quintic(c["stop"], c["start"], c["duration"]))})
        back, _, _, status_back, _ = run(ts[: at + 1], inwards, start=State.fresh(Mechanical(jnp.asarray(q[at]), -jnp.asarray(v[at])), jnp.float64))
        out[order] = {
            "uy": uy.tolist(), "finite": finite.tolist(), "want": want.tolist(), "error": float(np.max(np.abs(uy - want))), "status": status + status_back,
            "finite_amplitude": float(np.max(np.abs(finite - uy))), "drift": float(np.max(np.abs(balance - balance[0])) / np.max(np.asarray(energy.kinetic))),
            "back": (tip(model, back)[1] / large).tolist(), "retraced": float(np.max(np.abs(tip(model, back)[1][::-1] / large - finite[: at + 1]))),
        }  # fmt: skip
        print("  " + order + "".join(f", {k} {out[order][k]:.2e}" for k in ("error", "finite_amplitude", "drift", "retraced")), flush=True)
        store("deployment", out)
    return out


def three_tubes(quick):
    """The three tubes of arm S are drawn in, and pushed out again, while the arm turns: overlaps grow and shrink, material runs through the elements."""
    c = CONFIG["three_tubes"]
    model = fx.MovingBeam(elements=5).bind(fx.load_robot("soeffker-telescopic"))
    ts = np.linspace(0, c["duration"] + 1.0, 101)
    out = {"t": ts.tolist()}
    for label, (a, b) in {"retrieval": (c["long"], c["short"]), "deployment": (c["short"], c["long"])}.items():
        slides = {f"telescope{k}": fx.Motion(fx.quintic(a, b, c["duration"])) for k in (1, 2)}
        drive = fx.Drive(joints=slides | {"hub": fx.Motion(fx.polynomial([0.0, c["speed"]]))})
        q, _, energy, status, _ = integrate(model, drive, ts, c["dt"])
        ux, uy, _ = tip(model, q)
        balance, kinetic = np.asarray(energy.balance), np.asarray(energy.kinetic)
        out[label] = {
            "ux": ux.tolist(), "uy": uy.tolist(), "work": np.asarray(energy.work).tolist(), "kinetic": kinetic.tolist(), "status": status,
            "drift": float(np.max(np.abs(balance - balance[0])) / np.max(kinetic)), "largest_uy": float(np.max(np.abs(uy))),
        }  # fmt: skip
        print(f"  {label}: largest uy {out[label]['largest_uy']:.4e}, energy {out[label]['drift']:.1e}, status {status}", flush=True)
    return out


def slow_extension(quick):
    """Amplitude of the free vibration while the boom grows slowly: sqrt(L)."""
    c, b = CONFIG["slow_extension"], CONFIG["deployment"]
    model = fx.MovingBeam(elements=c["elements"], order="linear").bind(_boom(b, 10.0))
    drive = fx.Drive(joints={"guide": fx.Motion(fx.quintic(b["start"], c["stop"], c["duration"]))})
    start = model.bent(model.initial_state(drive, 0.0, Start()), uy=lambda x: 0.01 * first_mode(x / b["start"]))
    end = c["duration"] + 2.0
    ts = np.linspace(0, end, int(50 * end) + 1)
    q, _, _, status, _ = integrate(model, drive, ts, c["dt"], start)
    uy = tip(model, q)[1]
    before, after = np.max(np.abs(uy[ts < 2.0])), np.max(np.abs(uy[ts > c["duration"]]))
    ratio, law = after / before, np.sqrt(c["stop"] / b["start"])
    print(f"  amplitude ratio {ratio:.4f}, sqrt(L1/L0) {law:.4f}", flush=True)
    return {"t": ts.tolist(), "uy": uy.tolist(), "ratio": float(ratio), "law": float(law), "status": status}


def static_limit(quick):
    """Tip load against tip deflection of a cantilever in each order, in radii of gyration: statics of five elements, the deflection given."""
    constants = fx.BeamConstants(EA=1e4, EIy=1.0, EIz=1.0, GJ=1.0, rhoA=1.0)  # radius of gyration 0.01
    robot = fx.Robot("rod", [fx.Link("rod", 1.0, constants=constants)], [fx.Joint("weld", "fixed", "ground", "rod")], gravity=(0.0, 0.0, 0.0), planar=True)
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
            # Past a singular point of the remaining unknowns there is no equilibrium to follow.
            load.append(float(g[at]) / r if np.max(np.abs(np.delete(np.asarray(g), at))) < 1e-6 else float("nan"))
        out[order] = load
    top = int(np.nanargmax(out["cubic"]))
    a, b, c = np.polyfit(w[top - 1 : top + 2], np.array(out["cubic"])[top - 1 : top + 2], 2)
    out["limit"] = float(-b / (2 * a))
    at_limit = {k: float(np.interp(out["limit"], w, out[k])) for k in ("complete", "consistent")}
    out["complete_over_linear"] = at_limit["complete"] / float(np.interp(out["limit"], w, out["linear"]))
    print(f"  limit point of the cubic order at {out['limit']:.3f} radii of gyration; complete / linear there {out['complete_over_linear']:.5f}", flush=True)
    return out


def planes(quick):
    """A nearly round beam bent in y with a slight imperfection in z, base shaken along the axis near twice its bending frequency."""
    c = CONFIG["planes"]
    constants = fx.BeamConstants(EA=2e5, EIy=1.02, EIz=1.0, GJ=0.8, rhoA=0.1, rhoIx=1e-5, rhoIy=5e-6, rhoIz=5e-6)
    robot = fx.Robot("rod", [fx.Link("rod", 1.0, constants=constants)], [fx.Joint("weld", "fixed", "ground", "rod")], gravity=(0.0, 0.0, 0.0))
    omega = 3.516 * np.sqrt(1.0 / 0.1)
    ts = np.linspace(0, 1.0 if quick else c["end"], 401)
    out = {"t": ts.tolist(), "omega": float(omega)}
    shake = fx.stack([fx.sine(amplitude=0.03, frequency=2 * omega / (2 * np.pi)), fx.constant(0.0), fx.constant(0.0)])
    for order in ("complete",) if quick else ("linear", "complete"):
        model = fx.MovingBeam(elements=c["elements"], order=order).bind(robot)
        for label, drive in (("shaken", fx.Drive(base=fx.Base(translation=shake))), ("free", fx.Drive())):
            y = model.initial_state(drive, 0.0, Start())
            start = model.bent(y, uy=lambda x: 0.02 * first_mode(x), uz=lambda x: 0.005 * first_mode(x))
            q, _, energy, status, _ = integrate(model, drive, ts, c["dt"], start)
            _, uy, uz = tip(model, q)
            out[f"{order} {label}"] = {"uy": uy.tolist(), "uz": uz.tolist(), "growth": float(np.max(np.abs(uy)) / 0.02), "status": status}
            print(f"  {order}, {label}: largest uy {np.max(np.abs(uy)) / 0.02:.2f} of the start, status {status}", flush=True)
    return out


def roller(quick):
    """Clamped-roller-free beam with the roller at a0 + s V, fitted to the twelve frequencies measured at the dwells of dropbear8."""
    c = CONFIG["roller"]
    V, measured = np.array(c["V"]), np.array([c["f1"], c["f2"]])

    n, L = 24, 1.0
    l = L / n
    k = np.array([[12, 6 * l, -12, 6 * l], [6 * l, 4 * l**2, -6 * l, 2 * l**2], [-12, -6 * l, 12, -6 * l], [6 * l, 2 * l**2, -6 * l, 4 * l**2]]) / l**3
    m = np.array([[156, 22 * l, 54, -13 * l], [22 * l, 4 * l**2, 13 * l, -3 * l**2], [54, 13 * l, 156, -22 * l], [-13 * l, -3 * l**2, -22 * l, 4 * l**2]])
    m = l / 420 * m
    K, M = np.zeros((2 * n + 2,) * 2), np.zeros((2 * n + 2,) * 2)
    for e in range(n):
        s = slice(2 * e, 2 * e + 4)
        K[s, s] += k
        M[s, s] += m
    K, M = jnp.asarray(K[2:, 2:]), jnp.asarray(M[2:, 2:])
    root = jnp.linalg.inv(jnp.linalg.cholesky(M))

    def frequencies(a):
        """First two, in units of sqrt(EI/rhoA)/L^2; the roller as a stiff spring on the field at a."""
        e = jnp.floor(a / l).astype(int)
        z = a / l - e
        N = jnp.array([1 - 3 * z**2 + 2 * z**3, l * (z - 2 * z**2 + z**3), 3 * z**2 - 2 * z**3, l * (z**3 - z**2)])
        row = jnp.zeros(2 * n + 2).at[2 * e + jnp.arange(4)].set(N)[2:]
        w2 = jnp.linalg.eigvalsh(root @ (K + 1e8 * jnp.outer(row, row)) @ root.T)
        return jnp.sqrt(w2[:2]) / (2 * jnp.pi)

    def residual(p):
        f = jnp.exp(p[0]) * jax.vmap(frequencies)(p[1] + p[2] * jnp.asarray(V))
        return (jnp.log(f).T - jnp.log(jnp.asarray(measured))).reshape(-1)

    p = jnp.array([np.log(44.0), -0.13, 0.124])
    step = jax.jit(lambda p: p - jnp.linalg.lstsq(jax.jacfwd(residual)(p), residual(p))[0])
    for _ in range(12):
        p = step(p)
    rms = float(jnp.sqrt(jnp.mean(residual(p) ** 2)))
    fitted = np.asarray(jnp.exp(p[0]) * jax.vmap(frequencies)(p[1] + p[2] * jnp.asarray(V)))
    print(f"  rms of twelve frequencies {rms:.2%}; roller at {float(p[1]):.3f} + {float(p[2]):.4f} V of the length", flush=True)
    return {"V": V.tolist(), "measured": measured.T.tolist(), "fitted": fitted.tolist(), "rms": rms}


CASES = {f.__name__: f for f in (static_limit, spin_up, telescopic, deployment, three_tubes, slow_extension, planes, roller)}


def claims():
    """Each claim of the results that are there: (text, value, expected, tolerance)."""
    have = {k: json.loads((HERE / "results" / f"{k}.json").read_text()) for k in CASES if (HERE / "results" / f"{k}.json").exists()}

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
            yield claim["text"], value, claim["expected"], claim["tolerance"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[], help="only this variant of the case (linear, cubic, ...); other results are kept")
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
        ok = abs(value - expected) <= tolerance
        failed += not ok
        print(f"{text:78s} {value:12.6g} {expected:12.6g}  {'holds' if ok else 'DOES NOT HOLD'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
