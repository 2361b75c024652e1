"""Identification: cost of gradients, and Levenberg-Marquardt with exact Jacobians against scipy with finite differences.

    python -m benchmarks.identify [--samples 2000] [--formulation RigidArm] [--repeats 5]

Five numbers of a two-joint arm from a record of 2000 samples. Everything runs in one process, one after the other: ratios travel, seconds do not.
The baseline is scipy.optimize.least_squares on the same compiled residuals with its own finite differences, from the same start to the same tolerance.
"""

import argparse
import time

from benchmarks import _harness


def arm():
    import flexjax as fx

    body = fx.Body(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02, 0, 0, 0))
    links = [fx.Link(name, 0.4, rigid=True, body=body) for name in ("upper", "fore")]
    joints = [
        fx.Joint("shoulder", "revolute", "ground", "upper", stiffness=80.0, damping=0.05, motor=fx.Motor(rotor=0.05)),
        fx.Joint("elbow", "revolute", "upper", "fore", stiffness=40.0, damping=0.03, motor=fx.Motor(rotor=0.03)),
    ]
    sensors = [fx.Sensor(f"{j}-{k}", kind, j) for j in ("shoulder", "elbow") for k, kind in (("link", "encoder"), ("motor", "motor_encoder"))]
    return fx.Robot("two joints", links, joints, (fx.Payload("load", "fore", 0.3),), sensors, planar=True, gravity=(0, 0, 0))


FREE = ["joints.shoulder.stiffness", "joints.elbow.stiffness", "joints.shoulder.damping", "joints.elbow.damping", "payloads.load.mass"]


def timed(run, repeats):
    import statistics

    import jax

    jax.block_until_ready(run())
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)

    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np
    from scipy.optimize import least_squares

    import flexjax as fx
    from flexjax.identify import _fit
    from flexjax.identify._problem import build, measure_data, residuals, residuals_and_jacobian

    jax.config.update("jax_enable_x64", True)
    _harness.fresh_compilations()
    _harness.show_environment()
    step = 2e-3
    ts = step * np.arange(args.samples)
    rng = np.random.default_rng(0)

    def tones(frequencies):
        return 0.5 * sum(np.sin(2 * np.pi * f * ts + p) for f, p in zip(frequencies, rng.uniform(0, 6, 4), strict=True)) * np.clip(ts / 0.5, 0, 1)

    robot = arm()
    model = fx.RigidArm().bind(robot)
    zeros = {s.name: 0 * ts for s in robot.sensors}
    record = fx.Experiment(ts, zeros, efforts={"shoulder": tones((0.5, 1.3, 2.9, 4.7)), "elbow": tones((0.8, 1.9, 3.7, 5.9))})
    problem = build(model, [record], FREE, dt=step)
    truth = np.asarray(problem.parameters.start) * np.array([1.2, 0.8, 1.25, 0.75, 1.3])
    (run,), _ = problem.predict(problem.parameters.inverse(jnp.asarray(truth)))
    y = np.asarray(run[0])
    noisy = {s.name: y[:, k] + 0.02 * y[:, k].std() * rng.normal(size=len(y)) for k, s in enumerate(robot.sensors)}
    record = fx.Experiment(ts, noisy, efforts=record.efforts)
    problem = build(model, [record], FREE, dt=step)
    measured, _ = measure_data(problem, [record])
    z = jnp.zeros(len(FREE))

    simulation = timed(lambda: problem.predict(z), args.repeats)
    gradient = timed(lambda: _fit.value_and_gradient(z, problem, measured), args.repeats)
    jacobian = timed(lambda: residuals_and_jacobian(z, problem, measured)[:2], args.repeats)
    print(f"one simulation, {args.samples} samples: {1e3 * simulation[0]:.1f} ms (cpu {1e3 * simulation[1]:.1f})")
    print(f"loss and gradient, reverse mode:  {1e3 * gradient[0]:.1f} ms = {gradient[1] / simulation[1]:.2f} simulations (cpu); limit 2.5")
    print(f"residuals and Jacobian by {len(FREE)}, forward mode: {1e3 * jacobian[0]:.1f} ms = {jacobian[1] / simulation[1]:.2f} simulations (cpu)")

    options = dict(dt=step, reweight=0)
    fx.identify(model, record, FREE, **options)  # compiles
    wall, cpu = time.perf_counter(), time.process_time()
    result = fx.identify(model, record, FREE, **options)
    ours = time.perf_counter() - wall, time.process_time() - cpu
    print(result)

    plain = eqx.filter_jit(lambda z, problem, measured: residuals(z, problem, measured)[0])
    jax.block_until_ready(plain(z, problem, measured))
    calls = []

    def fun(x):
        calls.append(1)
        return np.asarray(plain(jnp.asarray(x), problem, measured))

    wall, cpu = time.perf_counter(), time.process_time()
    baseline = least_squares(fun, np.zeros(len(FREE)), method="lm", x_scale="jac")
    theirs = time.perf_counter() - wall, time.process_time() - cpu
    found = np.asarray(problem.parameters.values(jnp.asarray(baseline.x)))
    gap = float(np.max(np.abs(found / result.values - 1)))
    print(f"identify: {ours[0]:.2f} s, {result.evaluations} evaluations = {ours[1] / gradient[1]:.1f} value-and-gradient evaluations (cpu); limit 20")
    print(f"scipy least_squares with finite differences: {theirs[0]:.2f} s, {len(calls)} simulations; estimates differ by {gap:.1e}")
    print(f"ratio {theirs[1] / ours[1]:.2f} (cpu), {theirs[0] / ours[0]:.2f} (wall); wanted at least 5")
    rows = [
        _harness.row("cost", simulation=simulation, gradient=gradient, jacobian=jacobian, gradient_over_simulation=gradient[1] / simulation[1]),
        _harness.row("identify", seconds=ours, evaluations=result.evaluations, in_gradients=ours[1] / gradient[1]),
        _harness.row("scipy", seconds=theirs, simulations=len(calls), ratio=theirs[1] / ours[1], gap=gap),
    ]
    print(f"written to {_harness.save('identify', rows, samples=args.samples)}")


if __name__ == "__main__":
    main()
