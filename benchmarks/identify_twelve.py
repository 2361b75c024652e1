"""Twelve parameters of a flexible link from two recordings of 10 s at 100 Hz, in a cold process.

    python -m benchmarks.identify_twelve [--formulation TransferMatrix] [--dt 5e-3]

Prints the seconds from the first import to the result (limit 20 s with two cores), and the time of
a Jacobian with respect to the twelve parameters as a multiple of a simulation (limit 3): forward
mode, with all tangents side by side. The readings are simulated in the same process, before the
clock starts again; nothing is read from a cache on disk.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

FREE = [
    "links.link.material.E",
    "links.link.material.rho",
    "links.link.damping.strain_rate",
    "payloads.load.mass",
    "joints.pin.stiffness",
    "joints.pin.damping",
    "joints.pin.friction.coulomb",
    "joints.pin.hub.inertia",
    "sensors.gauge.gain",
    "sensors.gauge.offset",
    "sensors.angle.delay",
    "sensors.angle.offset",
]
SIZE = {"TransferMatrix": {"segments": 8}, "FiniteElement": {"elements": 2}}
LIMIT, RATIO, CHILD = 20.0, 3.0, "FLEXJAX_BENCH_CHILD"


def robot():
    import flexjax as fx

    link = fx.Link(
        "link",
        0.5,
        section=fx.Rectangle(width=0.03, height=0.003),
        material=fx.Material(E=70e9, nu=0.33, rho=2700.0),
        damping=fx.Damping(strain_rate=3e-3),
    )
    joint = fx.Joint(
        "pin",
        "revolute",
        "ground",
        "link",
        stiffness=60.0,
        damping=0.05,
        friction=fx.Friction(0.15, v_eps=0.2),
        hub=fx.Hub(0.0, inertia=0.01),
        motor=fx.Motor(rotor=0.02),
    )
    sensors = (
        fx.Sensor("motor", "motor_encoder", "pin"),
        fx.Sensor("angle", "encoder", "pin", delay=0.012),
        fx.Sensor("gauge", "strain_gauge", "link", s=0.05, position=(0.0015, 0.0)),
    )
    load = fx.Payload("load", "link", 0.25)
    return fx.Robot(
        "arm", (link,), (joint,), (load,), sensors, planar=True, gravity=(0.0, 0.0, 0.0)
    )


def records(formulation, dt: float):
    """Two recordings with 2 % noise of an arm whose parameters differ by 10 %."""
    import numpy as np

    import flexjax as fx

    ts, found = 0.01 * np.arange(1001), []
    arm = robot()
    for path in FREE[:8]:
        arm = arm.replace(path, 1.1 * float(fx.paths(arm)[path].value))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        tones = zip((0.7, 1.9, 3.1, 5.3), rng.uniform(0, 6, 4), strict=True)
        effort = (
            0.4 * np.clip(ts / 0.5, 0, 1) * sum(np.sin(2 * np.pi * f * ts + p) for f, p in tones)
        )
        record = fx.Experiment(
            ts, {s.name: 0 * ts for s in arm.sensors}, efforts={"pin": effort}, name=f"run {seed}"
        )
        traj = fx.simulate(formulation.bind(arm), record.full_drive(arm), ts, dt=dt)
        clean = {k: np.asarray(v) for k, v in fx.measure(traj).items()}
        noisy = {k: v + 0.02 * v.std() * rng.normal(size=len(v)) for k, v in clean.items()}
        found.append(fx.Experiment(ts, noisy, efforts={"pin": effort}, name=f"run {seed}"))
    return found


def cold(path: str, formulation: str, dt: float) -> None:
    """In a fresh process: the fit of stored recordings, and the cost of its Jacobian."""
    begin = time.perf_counter()
    import jax

    jax.config.update("jax_enable_x64", True)
    import flexjax as fx

    names = {"sensors": ["motor", "angle", "gauge"]}
    read = {k: {n: n for n in v} for k, v in names.items()}
    data = [
        fx.Experiment.read(f"{path}/{k}.npz", efforts={"pin": "effort"}, **read) for k in range(2)
    ]
    model = getattr(fx, formulation)(**SIZE[formulation]).bind(robot())
    result = fx.identify(model, data, FREE, dt=dt)
    seconds = time.perf_counter() - begin
    print(result)
    print(f"cold, from the first import: {seconds:.1f} s (limit {LIMIT:g} s)")

    import jax.numpy as jnp

    from benchmarks.identify import timed
    from flexjax.study.identify.fit._problem import residuals_and_jacobian

    problem, measured, z = result.problem, result.measured, jnp.asarray(result.z)
    runs = {
        "simulation": lambda: problem.predict(z),
        "jacobian": lambda: residuals_and_jacobian(z, problem, measured, jnp.ones(()))[:2],
    }
    found = timed(runs, 7)
    ratio = [found["jacobian"][k] / found["simulation"][k] for k in (0, 1)]
    print(
        f"Jacobian w.r.t. {len(FREE)} parameters: {1e3 * found['jacobian'][0]:.0f} ms = "
        f"{ratio[0]:.2f} simulations of both recordings (cpu {ratio[1]:.2f}; limit {RATIO:g})"
    )


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--formulation", choices=SIZE, default="TransferMatrix")
    parser.add_argument("--dt", type=float, default=5e-3)
    args = parser.parse_args(argv)
    if folder := os.environ.get(CHILD):
        return cold(folder, args.formulation, args.dt)
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    import flexjax as fx

    formulation = getattr(fx, args.formulation)(**SIZE[args.formulation])
    with tempfile.TemporaryDirectory() as folder:
        for k, record in enumerate(records(formulation, args.dt)):
            columns = {"time": record.ts, "effort": record.efforts["pin"], **record.sensors}
            np.savez(f"{folder}/{k}.npz", **columns)
        env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
        env |= {CHILD: folder, "XDG_CACHE_HOME": folder}
        options = ["--formulation", args.formulation, "--dt", str(args.dt)]
        subprocess.run(
            [sys.executable, "-m", "benchmarks.identify_twelve", *options], env=env, check=True
        )


if __name__ == "__main__":
    main()
