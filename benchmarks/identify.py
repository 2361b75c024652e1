"""Identification: cost of gradients, and fx.identify against scipy with finite differences.

    python -m benchmarks.identify [--problem joints|elastic] [--formulation TransferMatrix]
                                  [--samples 2000] [--arms 3] [--repeats 7] [--few]

Five parameters of an arm are estimated from a recording of 2000 samples with 2 % noise, for several
arms whose true parameters are random within 30 % of the start. Ratios are comparable between
machines, seconds are not. The baseline is scipy.optimize.least_squares (MINPACK's
Levenberg-Marquardt) on the same compiled residuals, with its own finite differences and default
tolerances, from the same start. Times exclude compilation, which both need; ratios are of CPU time.
Runs of the simulation and its gradients are interleaved. Gradients are timed with respect to one,
five and more parameters. ``--arms 0`` measures only costs; ``--few`` only gradients with respect to
five parameters, which compiles in half the time.
"""

import argparse
import time

from benchmarks import _harness

STEP = 2e-3


def joints(formulation):
    """Two rigid links on flexible joints with motor torques, always in the rigid formulation."""
    import flexjax as fx

    body = fx.Body(1.0, (0.2, 0, 0), (0.001, 0.02, 0.02, 0, 0, 0))
    links = [fx.Link(name, 0.4, rigid=True, body=body) for name in ("upper", "fore")]
    made = [
        fx.Joint(
            "shoulder",
            "revolute",
            "ground",
            "upper",
            stiffness=80.0,
            damping=0.05,
            motor=fx.Motor(rotor=0.05),
        ),
        fx.Joint(
            "elbow",
            "revolute",
            "upper",
            "fore",
            stiffness=40.0,
            damping=0.03,
            motor=fx.Motor(rotor=0.03),
        ),
    ]
    sensors = [
        fx.Sensor(f"{j}-{k}", kind, j)
        for j in ("shoulder", "elbow")
        for k, kind in (("link", "encoder"), ("motor", "motor_encoder"))
    ]
    robot = fx.Robot(
        "two joints",
        links,
        made,
        (fx.Payload("load", "fore", 0.3),),
        sensors,
        planar=True,
        gravity=(0, 0, 0),
    )
    free = [
        "joints.shoulder.stiffness",
        "joints.elbow.stiffness",
        "joints.shoulder.damping",
        "joints.elbow.damping",
        "payloads.load.mass",
    ]
    more = [f"links.{name}.body.mass" for name in ("upper", "fore")] + [
        f"joints.{name}.motor.rotor" for name in ("shoulder", "elbow")
    ]
    more += [f"sensors.{s.name}.gain" for s in sensors]

    def drive(tones):
        return {
            "efforts": {
                "shoulder": tones(0.5, (0.5, 1.3, 2.9, 4.7)),
                "elbow": tones(0.5, (0.8, 1.9, 3.7, 5.9)),
            }
        }

    return fx.RigidArm().bind(robot), free, more, drive


# As few unknowns as the first bending mode needs for an error of one per cent.
COARSE = {
    "TransferMatrix": dict(segments=3),
    "FiniteElement": dict(elements=2),
    "ScrewSynthesis": dict(modes=2),
    "PortHamiltonian": dict(elements=4),
    "MovingBeam": dict(elements=2),
}


def elastic(formulation):
    """One elastic link on a flexible joint whose motor follows a recorded motion.

    MovingBeam supports no flexible joint: there the joint follows the motion, and gain and offset
    of the tip sensor replace the joint's stiffness and damping as free parameters.
    """
    import flexjax as fx

    method = getattr(fx, formulation)(**COARSE[formulation])
    link = fx.Link(
        "link",
        0.6,
        section=fx.Rectangle(0.02, 0.003),
        material=fx.Material(E=70e9, nu=0.33, rho=2700.0),
        damping=fx.Damping(strain_rate=1e-3),
    )
    sensors = (
        fx.Sensor("angle", "encoder", "pin"),
        fx.Sensor("tip", "tip", "link", direction=(0.0, 1.0, 0.0)),
    )

    def robot(sensors, **soft):
        joint = fx.Joint("pin", "revolute", "ground", "link", hub=fx.Hub(0.1, 1e-3), **soft)
        return fx.Robot(
            "elastic link",
            (link,),
            (joint,),
            (fx.Payload("load", "link", 0.2),),
            sensors,
            planar=True,
            gravity=(0, 0, 0),
        )

    made, last, size = (
        robot(sensors, stiffness=60.0, damping=0.05),
        ["joints.pin.stiffness", "joints.pin.damping"],
        0.05,
    )
    if method.refusals(made):
        # A quarter of the motion: the full one deflects the link by 0.9 of its length, where a
        # step of MovingBeam takes eleven iterations and gradients look cheap in comparison.
        made, last, size = robot(sensors[1:]), ["sensors.tip.gain", "sensors.tip.offset"], 0.0125
    free = ["links.link.material.E", "links.link.damping.strain_rate", "payloads.load.mass", *last]
    more = [
        "links.link.material.rho",
        "links.link.length",
        "joints.pin.hub.mass",
        "joints.pin.hub.inertia",
    ]
    return (
        method.bind(made),
        free,
        more,
        lambda tones: {"motions": {"pin": tones(size, (1.1, 2.3, 4.1, 6.7))}},
    )


PROBLEMS = {"joints": joints, "elastic": elastic}


def timed(runs: dict, repeats) -> dict:
    """Median (wall, cpu) times by name, from interleaved runs."""
    import statistics

    import jax

    for run in runs.values():
        jax.block_until_ready(run())
    times = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: tuple(statistics.median(t[k] for t in taken) for k in (0, 1))
        for name, taken in times.items()
    }


def costs(problems, record, repeats) -> dict:
    """Times of a simulation, of loss and gradient for each problem, and of the first Jacobian.

    The problems differ in their number of free parameters; the first one is solved.
    """
    import jax.numpy as jnp

    from flexjax.study.identify.fit import _fit
    from flexjax.study.identify.fit._problem import measure_data, residuals_and_jacobian

    asked = [
        (problem, measure_data(problem, [record])[0], jnp.zeros(len(problem.parameters.start)))
        for problem in problems
    ]
    problem, measured, z = asked[0]
    runs = {
        "simulation": lambda: problem.predict(z),
        "jacobian": lambda: residuals_and_jacobian(z, problem, measured, jnp.ones(()))[:2],
    }
    runs |= {
        f"gradient by {len(z)}": lambda p=p, m=m, z=z: _fit.value_and_gradient(z, p, m)
        for p, m, z in asked
    }
    found = timed(runs, repeats)
    one = found["simulation"][1]
    print(f"one simulation: {1e3 * found['simulation'][0]:.1f} ms (cpu {1e3 * one:.1f})")
    for name, taken in found.items():
        if name != "simulation":
            print(
                f"{name.replace(' by ', ' w.r.t. ')}: {1e3 * taken[0]:.1f} ms = "
                f"{taken[1] / one:.2f} simulations (cpu)"
                + ("; limit 2.5" if "gradient" in name else ""),
                flush=True,
            )
    found["gradient"] = found[f"gradient by {len(z)}"]
    return found


def race(model, record, free, problem, gradient) -> dict:
    """Times and results of fx.identify and scipy on one recording."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np
    from scipy.optimize import least_squares

    import flexjax as fx
    from flexjax.study.identify.fit._problem import measure_data, residuals

    measured, _ = measure_data(problem, [record])
    plain = eqx.filter_jit(lambda z, problem, measured: residuals(z, problem, measured)[0])
    jax.block_until_ready(plain(jnp.zeros(len(free)), problem, measured))
    wall, cpu = time.perf_counter(), time.process_time()
    result = fx.identify(model, record, free, dt=STEP, reweight=0)
    ours = time.perf_counter() - wall, time.process_time() - cpu
    calls = []

    def fun(x):
        calls.append(1)
        return np.asarray(plain(jnp.asarray(x), problem, measured))

    wall, cpu = time.perf_counter(), time.process_time()
    baseline = least_squares(fun, np.zeros(len(free)), method="lm", x_scale="jac")
    theirs = time.perf_counter() - wall, time.process_time() - cpu
    found = np.asarray(problem.parameters.values(jnp.asarray(baseline.x)))
    apart = float(np.max(np.abs(found - result.values) / result.standard_errors))
    wall_ratio, cpu_ratio = (b / a for a, b in zip(ours, theirs, strict=True))
    in_gradients = ours[1] / gradient[1]
    print(
        f"identify {ours[0]:.2f} s, {result.evaluations:.2f} evaluations = {in_gradients:.1f} "
        f"value-and-gradients (cpu; limit 20), {result.status}; "
        f"scipy {theirs[0]:.2f} s, {len(calls)} simulations; "
        f"ratio {cpu_ratio:.2f} (cpu), {wall_ratio:.2f} (wall), target 5; "
        f"{apart:.1e} standard errors apart; losses {result.loss:.6g}, {baseline.cost:.6g}",
        flush=True,
    )
    return dict(
        ours=ours,
        evaluations=result.evaluations,
        in_gradients=in_gradients,
        scipy=theirs,
        simulations=len(calls),
        ratio=cpu_ratio,
        ratio_wall=wall_ratio,
        apart=apart,
        losses=(result.loss, float(baseline.cost)),
        status=result.status,
    )


def main(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", choices=PROBLEMS, default="joints")
    parser.add_argument(
        "--formulation", choices=COARSE, default="TransferMatrix", help="of the elastic link"
    )
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--arms", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--few", action="store_true", help="only gradients w.r.t. five parameters")
    args = parser.parse_args(argv)

    import jax
    import jax.numpy as jnp
    import numpy as np

    import flexjax as fx
    from flexjax.study.identify.fit._problem import build

    jax.config.update("jax_enable_x64", True)
    _harness.show_environment()
    ts = STEP * np.arange(args.samples)
    rng = np.random.default_rng(0)

    def tones(size, frequencies):
        phases = rng.uniform(0, 6, len(frequencies))
        return (
            size
            * sum(np.sin(2 * np.pi * f * ts + p) for f, p in zip(frequencies, phases, strict=True))
            * np.clip(ts / 0.5, 0, 1)
        )

    model, free, more, drive = PROBLEMS[args.problem](args.formulation)
    inputs = drive(tones)
    names = [s.name for s in model.robot.sensors]
    blank = fx.Experiment(ts, {s: 0 * ts for s in names}, **inputs)
    problem, *others = (
        build(model, [blank], names, dt=STEP)
        for names in ([free] if args.few else [free, free[:1], [*free, *more]])
    )

    def recorded(factors):
        truth = np.asarray(problem.parameters.start) * factors
        (run,), _ = problem.predict(problem.parameters.inverse(jnp.asarray(truth)))
        y = np.asarray(run[0])
        return fx.Experiment(
            ts,
            {
                s: y[:, i] + 0.02 * y[:, i].std() * rng.normal(size=len(y))
                for i, s in enumerate(names)
            },
            **inputs,
        )

    arms = [
        recorded(factors)
        for factors in np.random.default_rng(1).uniform(0.7, 1.3, (max(args.arms, 1), len(free)))
    ]
    cost = costs((problem, *others), arms[0], args.repeats)
    rows = [
        _harness.row(
            "cost", **cost, gradient_over_simulation=cost["gradient"][1] / cost["simulation"][1]
        )
    ]
    if args.arms:
        fx.identify(model, arms[0], free, dt=STEP, reweight=0)  # compiles
        rows += [
            _harness.row(f"arm {k + 1}", **race(model, record, free, problem, cost["gradient"]))
            for k, record in enumerate(arms)
        ]
        least = min(r["ratio"] for r in rows[1:])
        most = max(r["in_gradients"] for r in rows[1:])
        print(f"smallest ratio {least:.2f}, most value-and-gradients {most:.1f}")
    formulation = model.formulation.__class__.__name__
    options = dict(samples=args.samples, formulation=formulation)
    print(f"written to {_harness.save(f'identify_{args.problem}', rows, **options)}")


if __name__ == "__main__":
    main()
