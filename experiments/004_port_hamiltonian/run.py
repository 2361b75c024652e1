"""Paper 004, figures 4-10: computes every case and prints each claim with its verdict.

    python experiments/004_port_hamiltonian/run.py [--quick] [--only steps loop serial manoeuvres]

--quick skips the lumped reading, the manoeuvres and the serial arm. --only runs some parts and
keeps the claims of the others from the last run.
"""

import argparse
import json
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
STATIONS = np.linspace(0.0, 1.0, 21)
QUARTER, HALF, THREE = 5, 10, 15  # stations L/4, L/2, 3L/4
ROBOT = {"density": "macchelli-single-link", "lumped": "macchelli-single-link-lumped"}


def simulate(robot, joints, end, outputs, substeps, elements):
    model = fx.PortHamiltonian(elements=elements).bind(robot)
    ts = jnp.linspace(0.0, end, outputs + 1)
    return fx.simulate(
        model, fx.Drive(joints=joints), ts, substeps=substeps, stations=jnp.asarray(STATIONS)
    )


def save(name, traj, **more):
    RESULTS.mkdir(exist_ok=True)
    energy = {
        k: np.asarray(getattr(traj.energy, k)) for k in ("kinetic", "elastic", "dissipated", "work")
    }
    np.savez(
        RESULTS / f"{name}.npz",
        t=traj.ts,
        q=traj.q,
        frames=traj.frames,
        strain=traj.strain,
        tip=traj.tip,
        **energy,
        **more,
    )


def balance(traj):
    b = np.asarray(traj.energy.balance)
    return float(np.max(np.abs(b - b[0])) / np.max(np.abs(np.asarray(traj.energy.work))))


def damped(robot, tau):
    link = robot.links[0]
    changed = fx.Link(
        link.name, link.length, constants=link.constants, damping=fx.Damping(strain_rate=tau)
    )
    return fx.Robot(robot.name, [changed], robot.joints, gravity=robot.gravity, planar=robot.planar)


def at(traj, times, values):
    """Values at the given times, interpolated linearly (reference times are output times)."""
    t = np.asarray(traj.ts)
    values = np.asarray(values)
    return (
        np.stack([np.interp(times, t, values[..., k]) for k in range(values.shape[-1])], -1)
        if values.ndim > 1
        else np.interp(times, t, values)
    )


class Claims:
    def __init__(self, rows):
        self.rows, self.part = rows, ""

    def begin(self, part):
        self.part = part
        self.rows = [r for r in self.rows if r["part"] != part]

    def add(self, name, value, expected, good):
        self.rows.append(
            {
                "part": self.part,
                "claim": name,
                "value": float(value),
                "expected": str(expected),
                "holds": bool(good),
            }
        )
        print(f"{'ok  ' if good else 'FAIL'} {name}: {value:.6g} (expected {expected})", flush=True)


def steps(config, cases, expected, claims):
    c = config["step"]
    for reading in cases:
        robot = fx.load_robot(ROBOT[reading])
        joints = {"joint": fx.PD(c["kp"], c["damper"], fx.constant(c["reference"]))}
        traj = simulate(
            robot, joints, c["end"][reading], c["outputs"], c["substeps"], config["elements"]
        )
        save(f"step_{reading}", traj)
        ref = expected[f"step_{reading}"]
        inside = np.array(ref["t"]) <= c["end"][reading]
        gap = np.max(
            np.abs(
                at(traj, np.array(ref["t"])[inside], traj.q[:, 0]) - np.array(ref["theta"])[inside]
            )
        )
        limit = 3 * ref["err_space_theta"]
        claims.add(
            f"step, {reading}: joint angle against the paper's element (N = 20)",
            gap,
            f"<= {limit:.2g}",
            gap <= limit,
        )
        claims.add(
            f"step, {reading}: energy balance", balance(traj), "<= 1e-10", balance(traj) <= 1e-10
        )
        first = float(np.diff(np.asarray(traj.tip[:6, 1])).min())
        claims.add(
            f"step, {reading}: first move of the tip against the command (negative: undershoot)",
            first,
            "reported",
            True,
        )


def manoeuvres(config, cases, speeds, expected, claims):
    c = config["manoeuvre"]
    for reading in cases:
        for speed in speeds:
            T = c[speed]
            for kind, signal in (
                ("PP", fx.quintic(0.0, c["angle"], T)),
                ("ST", fx.step_acceleration(0.0, c["angle"], T)),
            ):
                for label, tau in (("", 0.0), ("_damped", c["tau"][reading])):
                    robot = damped(fx.load_robot(ROBOT[reading]), tau)
                    traj = simulate(
                        robot,
                        {"joint": fx.Motion(signal)},
                        c["over"] * T,
                        c["outputs"],
                        c["substeps"],
                        config["elements"],
                    )
                    save(f"{kind}_{reading}_{speed}{label}", traj)
                    name = {"PP": f"PP_{reading}_T5", "ST_damped": f"STkv_{reading}_T5"}.get(
                        kind + label
                    )
                    ref = expected.get(name) if speed == "slow" and name else None
                    if ref is not None:
                        ours = at(traj, np.array(ref["t"]), traj.strain[:, 0, QUARTER, 5])
                        gap = np.max(np.abs(ours - np.array(ref["q_theta_L4"]))) / ref["peak"][0]
                        claims.add(
                            f"{kind}{label} slow, {reading}: q_theta at L/4, share of its peak",
                            gap,
                            "<= 0.1",
                            gap <= 0.1,
                        )
                    if kind == "ST" and label and speed == "slow" and reading == "density":
                        # Closed form of the quasi-static strain:
                        # q = -C_o theta'' int_s^L [J + rho x (x - s)] dx.
                        quarter = float(at(traj, np.array([2.4]), traj.strain[:, 0, QUARTER, 5])[0])
                        over = quarter / (-2.930e-4 * 4 * c["angle"] / T**2)
                        claims.add(
                            "ST damped slow, density: strain at L/4 over the closed form",
                            over,
                            "within 1 %",
                            abs(over - 1) < 0.01,
                        )


def spectrum(d, duration):
    """Spectrum of q_theta at L/2 after a manoeuvre: frequencies, and amplitudes up to scale."""
    t, q = d["t"], d["strain"][:, 0, HALF, 5]
    late = t > duration
    size = np.abs(np.fft.rfft((q[late] - q[late].mean()) * np.hanning(late.sum())))
    return np.fft.rfftfreq(late.sum(), t[1] - t[0]), size / size.max()


def spectra(reading, duration, claims):
    """The two strongest lines after ST and PP without damping, which the paper calls alike."""
    lines, third = {}, {}
    for kind in ("PP", "ST"):
        f, size = spectrum(np.load(RESULTS / f"{kind}_{reading}_slow.npz"), duration)
        peaks = 1 + np.flatnonzero((size[1:-1] > size[:-2]) & (size[1:-1] > size[2:]))
        peaks = peaks[np.argsort(-size[peaks])]
        lines[kind] = np.sort(f[peaks[:2]])
        above = peaks[f[peaks] > 1.5 * lines[kind][1]]
        third[kind] = size[above].max()
    print(f"     strongest lines [Hz], {reading}: PP {lines['PP']}, ST {lines['ST']}")
    bins = np.max(np.abs(lines["ST"] - lines["PP"])) / f[1]
    claims.add(
        f"two strongest lines after ST and after PP, {reading}: distance in bins of {f[1]:.2g} Hz",
        bins,
        "<= 1",
        bins <= 1.001,
    )
    claims.add(
        f"strongest line above them, ST over PP, {reading}",
        third["ST"] / third["PP"],
        "reported",
        True,
    )


def serial(config, expected, claims):
    c = config["serial"]
    joints = {
        f"joint{i + 1}": fx.PD(c["kp"], c["damper"], fx.constant(r))
        for i, r in enumerate(c["reference"])
    }
    traj = simulate(
        fx.load_robot("macchelli-serial"),
        joints,
        c["end"],
        c["outputs"],
        c["substeps"],
        config["elements"],
    )
    save("serial", traj)
    fx.animate(traj, RESULTS / "fig09_serial.html")
    ref = expected["serial_density_R0.75"]
    gap = np.max(
        np.abs(at(traj, np.array(ref["t"]), traj.frames[:, 1, -1, :2]) - np.array(ref["tip2"]))
    )
    claims.add(
        "serial arm: tip against the paper's element (N = 20) [m]", gap, "<= 4e-3", gap <= 4e-3
    )
    claims.add("serial arm: energy balance", balance(traj), "<= 1e-10", balance(traj) <= 1e-10)


def loop(config, expected, claims):
    c = config["loop"]
    joints = {
        n: fx.PD(c["kp"], c["damper"], fx.constant(r))
        for n, r in zip(("base-A", "base-B"), c["reference"], strict=True)
    }
    traj = simulate(
        fx.load_robot("macchelli-parallelogram"),
        joints,
        c["end"],
        c["outputs"],
        c["substeps"],
        config["elements"],
    )
    save("loop", traj)
    fx.animate(traj, RESULTS / "fig10_loop.html")
    ref = expected["loop_density_BB_R11.25"]
    corner = traj.frames[:, 2, -1, :2]
    gap = np.max(np.abs(at(traj, np.array(ref["t"]), corner) - np.array(ref["corner"])))
    claims.add(
        "closed chain: corner against the paper's element (N = 20) [m]", gap, "<= 6e-3", gap <= 6e-3
    )
    opening = float(
        np.max(np.abs(np.asarray(traj.frames[:, 2, -1, :3] - traj.frames[:, 3, -1, :3])))
    )
    claims.add("closed chain: opening of the loop [m]", opening, "<= 1e-12", opening <= 1e-12)
    claims.add("closed chain: energy balance", balance(traj), "<= 1e-10", balance(traj) <= 1e-10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parts = ("steps", "loop", "serial", "manoeuvres")
    parser.add_argument("--only", nargs="+", choices=parts)
    args = parser.parse_args()
    quick = args.quick
    jax.config.update("jax_enable_x64", True)
    config = tomllib.loads((HERE / "config.toml").read_text())
    expected = json.loads((HERE / "expected.json").read_text())["cases"]
    readings = ("density",) if quick else ("density", "lumped")
    stored = RESULTS / "claims.json"
    claims = Claims(json.loads(stored.read_text()) if args.only and stored.exists() else [])
    for part in args.only or (("steps", "loop") if quick else parts):
        claims.begin(part)
        if part == "steps":
            steps(config, readings, expected, claims)
        elif part == "loop":
            loop(config, expected, claims)
        elif part == "serial":
            serial(config, expected, claims)
        else:
            manoeuvres(config, readings, ("slow", "fast"), expected, claims)
            for reading in readings:
                spectra(reading, config["manoeuvre"]["slow"], claims)
    stored.write_text(json.dumps(claims.rows, indent=1) + "\n")
    failed = sum(not r["holds"] for r in claims.rows)
    print(f"{len(claims.rows) - failed} of {len(claims.rows)} claims confirmed")


if __name__ == "__main__":
    main()
