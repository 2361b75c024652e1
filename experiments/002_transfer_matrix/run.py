"""Paper 002: single link, three-link arm, stability of the variants, accuracy of the sweeps.

    python experiments/002_transfer_matrix/run.py [--quick]

The script writes results/002_<part>.npz and results/002.json, and prints every claim with its
value, expected value and verdict.
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

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
jax.config.update("jax_enable_x64", True)

import equinox as eqx

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.term import Mechanical, State
from tests.transfer_matrix.cases import Seamless, extended_sweep, marcher


@eqx.filter_jit
def _jacobian(model, drive):
    term, t = model.term(drive), jnp.asarray(10.0)
    y = model.initial_state(drive, t, Start())

    def acceleration(q):
        return term.rate(
            t, State(Mechanical(q, jnp.zeros_like(y.mech.v)), y.work, y.dissipated, y.memory), None
        ).v

    return jax.jacfwd(acceleration)(y.mech.q)


def frequencies(model, drive):
    squared = np.linalg.eigvals(-np.asarray(_jacobian(model, drive))).real
    return np.sqrt(np.sort(squared[squared > 1.0])) / (2 * np.pi)


def single(cfg, quick, out, numbers):
    """Section IV-A: tip deflection in the motor's axes, its spectrum, and a gauge at the root."""
    c = cfg["single"]
    count = 1001 if quick else c["samples"]
    ts = jnp.arange(count) * c["dt"]
    motion = Seamless(fx.cycloid(0.0, c["angle"], c["rise"]))
    drive = fx.Drive(joints={"motor": fx.Motion(motion)})
    out["single_t"], out["single_angle"] = np.asarray(ts), np.asarray(motion(ts))
    arms = {
        "69e9": fx.load_robot("li-zhang-single-link"),
        "7e9": fx.load_robot("li-zhang-single-link-printed"),
    }
    for name, arm in arms.items():
        held = fx.Drive(joints={"motor": fx.Motion(fx.constant(0.0))})
        numbers[f"single.frequency.{name}"] = float(
            frequencies(fx.TransferMatrix(segments=c["segments"]).bind(arm), held)[0]
        )
    cases = [("published", "69e9", False, pair) for pair in c["pairs"]]
    if not quick:
        cases += [("half", "69e9", True, c["pairs"][0]), ("printed E", "7e9", False, c["pairs"][0])]
    for label, E, half, (beta, gamma) in cases:
        method = fx.TransferMatrix(
            segments=c["segments"], variant="paper", half_springs=half, beta=beta, gamma=gamma
        )
        traj = fx.simulate(method.bind(arms[E]), drive, ts, substeps=1, stations=2)
        x, y = np.asarray(traj.tip[:, 0]), np.asarray(traj.tip[:, 1])
        d = -np.sin(out["single_angle"]) * x + np.cos(out["single_angle"]) * y
        key = f"{label}.{beta},{gamma}"
        out[f"single_d.{key}"] = d
        # A gauge at the root measures the curvature; in the first mode d = curvature L^2 / 3.516
        # (with a tip force d = curvature L^2 / 3).
        out[f"single_gauge.{key}"] = (
            np.asarray(traj.strain[:, 0, 0, 5]) * float(arms[E].links[0].length) ** 2 / 3.516
        )
        numbers[f"single.peak.{key}"] = float(np.abs(d).max())
        late = out["single_t"] > c["rise"]
        gap = d[late] - out[f"single_gauge.{key}"][late]
        numbers[f"single.gauge_error.{key}"] = float(
            np.sqrt(np.mean(gap**2) / np.mean(d[late] ** 2))
        )
        spectrum = np.abs(np.fft.rfft(d - d.mean()))
        bins = np.fft.rfftfreq(count, c["dt"])
        out[f"single_spectrum.{key}"], out["single_bins"] = spectrum, bins
        if not quick:
            numbers[f"single.bin.{key}"] = float(bins[np.argmax(spectrum)])


def three(cfg, quick, out, numbers):
    """Section IV-B: end-point error and deflections, with rigid and with flexible joints."""
    c = cfg["three"]
    ts = jnp.linspace(0.0, c["end"], round(c["end"] / (5 * c["dt"])) + 1)
    drive = fx.Drive(
        joints={
            f"joint{i}": fx.Motion(Seamless(fx.cosine(c["amplitude"], c["period"])))
            for i in (1, 2, 3)
        }
    )
    held = fx.Drive(
        joints={f"joint{i}": fx.Motion(fx.constant(2 * c["amplitude"])) for i in (1, 2, 3)}
    )
    out["three_t"] = np.asarray(ts)
    for kind, robot in (
        ("flexible", "li-zhang-three-link"),
        ("rigid", "li-zhang-three-link-rigid-joints"),
    ):
        arm = fx.load_robot(robot)
        method = fx.TransferMatrix(
            segments=c["segments"],
            variant="paper",
            half_springs=True,
            beta=c["pair"][0],
            gamma=c["pair"][1],
        )
        traj = fx.simulate(method.bind(arm), drive, ts, dt=c["dt"], stations=2)
        angles = np.cumsum(np.asarray(traj.motor), axis=1)
        length = float(arm.links[0].length)
        ideal = length * np.stack([np.cos(angles).sum(1), np.sin(angles).sum(1)], 1)
        out[f"three_error.{kind}"] = np.asarray(traj.tip[:, :2]) - ideal
        out[f"three_links.{kind}"] = np.asarray(traj.deflection[:, :, -1, 1])
        out[f"three_joints.{kind}"] = np.asarray(traj.q - traj.motor)
        numbers[f"three.error.{kind}"] = float(
            np.linalg.norm(out[f"three_error.{kind}"], axis=1).max()
        )
        numbers[f"three.frequency.{kind}"] = float(
            frequencies(fx.TransferMatrix(segments=c["segments"]).bind(arm), held)[0]
        )
        if kind == "flexible":
            at = int(np.argmin(np.abs(out["three_t"] - 0.2)))
            numbers["three.tip.x.0.2"], numbers["three.tip.y.0.2"] = (
                float(v) for v in traj.tip[at, :2]
            )


def stability(cfg, quick, out, numbers):
    """Ratio of final to initial energy of the three-link arm long after the motors stopped."""
    c = cfg["stability"]
    end = 2.0 if quick else c["end"]
    arm = fx.load_robot("li-zhang-three-link")
    drive = fx.Drive(
        joints={
            f"joint{i}": fx.Motion(
                Seamless(fx.cosine(cfg["three"]["amplitude"], cfg["three"]["period"]))
            )
            for i in (1, 2, 3)
        }
    )
    ts = jnp.linspace(0.0, end, 201)
    out["stability_t"] = np.asarray(ts)
    cases = {"acceleration (1/4, 1/2)": fx.TransferMatrix(segments=c["segments"])}
    if not quick:
        cases |= {
            "acceleration, one pass": fx.TransferMatrix(segments=c["segments"], passes=1),
            "acceleration, extrapolated": fx.TransferMatrix(
                segments=c["segments"], linearisation="extrapolated"
            ),
            "position (1/4, 1/2)": fx.TransferMatrix(
                segments=c["segments"], variant="paper", half_springs=True
            ),
            "position (0.3, 1/2)": fx.TransferMatrix(
                segments=c["segments"], variant="paper", half_springs=True, beta=0.3
            ),
            "position, frozen (0.3, 1/2)": fx.TransferMatrix(
                segments=c["segments"],
                variant="paper",
                half_springs=True,
                beta=0.3,
                linearisation="frozen",
            ),
        }
    for name, method in cases.items():
        traj = fx.simulate(method.bind(arm), drive, ts, dt=1e-3, stations=2, throw=False)
        energy = np.asarray(traj.energy.kinetic + traj.energy.elastic)
        out[f"stability.{name}"] = energy
        late = (out["stability_t"] > 0.5) & (out["stability_t"] < 0.7)
        ratio = energy[-1] / energy[late].mean()
        numbers[f"stability.ratio.{name}"] = float(ratio) if np.isfinite(ratio) else float("inf")


ORDERS = {
    "acceleration": fx.TransferMatrix(segments=4),
    "acceleration, one pass": fx.TransferMatrix(segments=4, passes=1),
    "acceleration (0.7, 0.8)": fx.TransferMatrix(segments=4, beta=0.7, gamma=0.8),
    "position, newton": fx.TransferMatrix(segments=4, variant="paper", beta=0.3),
    "position, extrapolated": fx.TransferMatrix(
        segments=4, variant="paper", beta=0.3, linearisation="extrapolated"
    ),
    "position, frozen": fx.TransferMatrix(
        segments=4, variant="paper", beta=0.3, linearisation="frozen"
    ),
}


def orders(cfg, quick, out, numbers):
    """Change of the tip when the step is halved, and the order from two such changes.

    The quick form uses all steps too: coarse steps do not resolve the segments and give 1.8
    (README), and most of the time is compilation, once for all steps.
    """
    steps = np.array([100 * 2**k for k in range(7)])
    drive = fx.Drive(joints={"motor": fx.Motion(fx.quintic(0.0, 1.0, 0.3))})
    out["orders_dt"] = 0.2 / steps[:-1]
    for name, method in ORDERS.items():
        run = marcher(method, fx.load_robot("li-zhang-single-link"), drive, 0.2)
        tips = np.array([np.asarray(run(int(n))[0]) for n in steps])
        change = np.linalg.norm(np.diff(tips, axis=0), axis=1)
        out[f"orders.{name}"] = change
        numbers[f"orders.{name}"] = float(np.log2(change[-2] / change[-1]))


def digits(cfg, quick, out, numbers):
    """Relative error of product, Riccati and parallel position sweeps to extended precision."""
    from flexjax.formulation.transfer_matrix.sweep import SWEEPS
    from tests.transfer_matrix.test_sweep import _position_elements

    c = cfg["digits"]
    sizes, steps = (c["segments"][:2], c["steps"][::2]) if quick else (c["segments"], c["steps"])
    kinds = ("product", "riccati", "parallel")
    solve = {kind: jax.jit(SWEEPS[kind]) for kind in kinds}
    table = np.zeros((3, len(sizes), len(steps)))
    for i, n in enumerate(sizes):
        model = fx.TransferMatrix(segments=n, rotary=False).bind(
            fx.load_robot("li-zhang-single-link")
        )
        for j, dt in enumerate(steps):
            el, root = _position_elements(model, jnp.asarray(dt))
            exact, _ = extended_sweep(el, root)
            for k, kind in enumerate(kinds):
                e = np.asarray(solve[kind](el, root).e)
                error = np.abs(e[:, :2] - exact[:, :2]).max() / np.abs(exact[:, :2]).max()
                # The last system of the product may be singular to rounding, which gives NaN.
                table[k, i, j] = error if np.isfinite(error) else np.inf
    out["digits"], out["digits_sizes"], out["digits_steps"] = (
        table,
        np.array(sizes),
        np.array(steps),
    )
    numbers["digits.riccati.worst"], numbers["digits.product.worst"] = (
        float(table[1].max()),
        float(table[0].max()),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only",
        nargs="*",
        default=None,
        choices=["single", "three", "stability", "orders", "digits"],
    )
    args = parser.parse_args()
    cfg = tomllib.loads((HERE / "config.toml").read_text())
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    out, numbers = {}, {}
    for part in (single, three, stability, orders, digits):
        if args.only and part.__name__ not in args.only:
            continue
        start = time.perf_counter()
        part(cfg, args.quick, out, numbers)
        print(f"{part.__name__}: {time.perf_counter() - start:.1f} s", flush=True)
        np.savez(
            results / f"002_{part.__name__}.npz",
            **{k: v for k, v in out.items() if k.startswith(part.__name__)},
        )
    expected = json.loads((HERE / "expected.json").read_text())
    print(f"\n{'claim':44}{'value':>16}{'expected':>16}  verdict")
    for name, value in numbers.items():
        target = expected.get(name)
        shown, verdict = "", "-"
        if target is not None:
            shown = format(target[0], ".9g")
            verdict = "agrees" if abs(value - target[0]) <= target[1] else "DIFFERS"
        print(f"{name:44}{value:16.9g}{shown:>16}  {verdict}")
    kept = results / "002.json"
    if args.only and kept.exists():  # parts that did not run keep their values
        numbers = json.loads(kept.read_text()) | numbers
    kept.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
