"""Many moves at once, a link designed together with its move, gradients, and the first answer."""

import dataclasses
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx


def many(count=64, alone=6):
    """Time of a move: in one program with others, and one by one; both without compiling."""
    model = fx.TransferMatrix(segments=4).bind(fx.load_robot("li-zhang-single-link"))
    period = 1 / float(fx.modes(model, n=1).frequencies[0])
    goals = [{"motor": a} for a in np.linspace(0.3, 1.5, count)]
    options = dict(duration=1.5 * period, steps=60, knots=8, limits={"velocity": 30.0})
    options |= dict(tolerance=1e-5)
    found = {}
    fx.optimise_many(model, goals=goals, **options)
    begin = time.perf_counter()
    moves = fx.optimise_many(model, goals=goals, **options)
    found["together [s]"] = (time.perf_counter() - begin) / count
    for method in (None, "slsqp"):
        one = options | ({} if method is None else dict(method=method, tolerance=1e-12))
        fx.optimise(model, goal=goals[0], **one)
        begin = time.perf_counter()
        for goal in goals[:: count // alone]:
            fx.optimise(model, goal=goal, **one)
        taken = len(goals[:: count // alone])
        label = f"one by one, {method or 'gauss-newton'} [s]"
        found[label] = (time.perf_counter() - begin) / taken
    found["converged"] = sum(status == "converged" for status in moves.status)
    print(f"many: {moves}; {found}", flush=True)
    return found


def design():
    """Residual energy of a link whose taper is found with its move, and of the uniform link of the
    same mass with its own best move; both for payloads of +-10 %, in one period of the latter."""
    robot = fx.load_robot("metal-link")
    uniform = robot.links[0]
    # The same section at both ends, so that both heights are parameters.
    link = dataclasses.replace(uniform, section_end=uniform.section)
    tool = fx.Payload("tool", "link", 0.1)
    robot = dataclasses.replace(robot, links=(link,), payloads=(tool,))
    model = fx.TransferMatrix(segments=6).bind(robot)
    period = 1 / float(fx.modes(model, at={"pin": 1.0}, n=1).frequencies[0])
    options = dict(goal={"pin": 1.0}, duration=period, steps=60, knots=8)
    options |= dict(limits={"velocity": 20.0, "acceleration": 400.0}, samples=3)
    options |= dict(spread={"payloads.tool.mass": 0.1})
    plain = fx.optimise(model, **options)
    print(f"uniform link: {plain}", flush=True)
    mass = float(np.prod([uniform.length, uniform.section.width, uniform.section.height]))
    options["limits"]["mass"] = mass * float(uniform.material.rho)
    free = {f"links.link.{end}.height": (0.004, 0.03) for end in ("section", "section_end")}
    tapered = fx.optimise(model, free=free, **options)
    heights = dict(zip(tapered.names[-2:], map(float, tapered.values[-2:]), strict=True))
    row = {
        "uniform [J]": plain.costs["residual_energy"][1],
        "tapered [J]": tapered.costs["residual_energy"][1],
        "status": [plain.status, tapered.status],
        "violation": tapered.violation,
        **heights,
    }
    print(f"design: {tapered}\n{row}", flush=True)
    return row


def gradient():
    """Time and digits of the gradient of the residual energy, against finite differences."""
    model = fx.TransferMatrix(segments=4).bind(fx.load_robot("two-link"))
    n = 20
    ts = jnp.linspace(0.0, 0.4, 81)

    def residual(x):
        joints = {}
        for k, (name, goal) in enumerate((("shoulder", 0.6), ("elbow", 0.3))):
            values = jnp.concatenate([jnp.zeros(1), x[10 * k : 10 * k + 10], jnp.full(1, goal)])
            joints[name] = fx.Motion(fx.bspline(values, 0.4))
        run = fx.simulate(model, fx.Drive(joints=joints), ts, substeps=1, stations=2, throw=False)
        return jnp.sum((run.tip[-1] - run.tip[-2]) ** 2) * 1e4

    x = jnp.concatenate([jnp.linspace(0, 0.6, 10), jnp.linspace(0, 0.3, 10)])
    programs = {"simulation": fx.jit(residual), "reverse": fx.grad(residual)}
    programs["forward"] = fx.jit(jax.jacfwd(residual))
    seconds, values = {}, {}
    for name, program in programs.items():
        values[name] = jax.block_until_ready(program(x))
        begin = time.perf_counter()
        for _ in range(3):
            jax.block_until_ready(program(x))
        seconds[name] = (time.perf_counter() - begin) / 3
    h, unit = 1e-5, jnp.eye(n)
    run = programs["simulation"]
    central = np.array([float(run(x + h * e) - run(x - h * e)) / (2 * h) for e in unit])
    size = np.max(np.abs(central))
    row = {f"{name} [simulations]": t / seconds["simulation"] for name, t in seconds.items()}
    row["finite differences [simulations]"] = 2 * n
    for name in ("reverse", "forward"):
        row[f"{name} - finite differences"] = float(
            np.max(np.abs(np.asarray(values[name]) - central)) / size
        )
    print(f"gradient of {n} numbers: {row}", flush=True)
    return row


def first_answer():
    """Time from the command to the report, without kept programs."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "arm.toml").write_text(_arm_file())
        argv = [sys.executable, "-m", "flexjax", "optimise", "arm.toml"]
        argv += ["--to", "shoulder=1", "elbow=0.5", "--duration", "0.4"]
        argv += ["--robust", "payloads.tool.mass=10%", "--report", "move.html"]
        env = dict(os.environ, XDG_CACHE_HOME=folder, JAX_COMPILATION_CACHE_DIR=folder)
        env["PYTHONPATH"] = str(Path(fx.__file__).parents[1])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        before, begin = used.ru_utime + used.ru_stime, time.perf_counter()
        done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before
    print(f"first answer: {seconds:.1f} s, {cpu:.1f} s of CPU\n{done.stdout}", flush=True)
    print(done.stderr[-500:], flush=True)
    row = {"command to report [s]": seconds, "CPU [s]": cpu, "cores": os.cpu_count()}
    return row | {"exit code": done.returncode}


def _arm_file():
    """The two-link arm with its payload under the name of the command above."""
    file = Path(fx.__file__).parent / "robot" / "examples" / "two-link.toml"
    return file.read_text().replace('"gripper"', '"tool"')


def second_goal():
    """Seconds of a robust move of the two-link arm to another goal, in the same process."""
    model = fx.TransferMatrix(segments=4).bind(fx.load_robot("two-link"))
    path = f"payloads.{model.robot.payloads[0].name}.mass"
    options = dict(duration=0.45, steps=80, spread={path: 0.1}, tolerance=1e-4)
    fx.optimise(model, goal={"shoulder": 0.6, "elbow": 0.3}, **options)
    begin = time.perf_counter()
    res = fx.optimise(model, goal={"shoulder": 0.5, "elbow": 0.4}, **options)
    seconds = time.perf_counter() - begin
    print(f"second goal: {seconds:.1f} s; {res}", flush=True)
    return {"second goal [s]": seconds, "status": res.status}


def curvature():
    """Gauss-Newton steps against those with exact second derivatives of the simulation: cost of an
    evaluation in simulations, and iterations. A robust move, whose residual energy is not zero."""
    from flexjax.study.optimise._build import build_problem
    from flexjax.study.optimise.search._sqp import advance, begin, propose
    from flexjax.study.optimise.search._values import values_at

    model = fx.TransferMatrix(segments=3).bind(fx.load_robot("li-zhang-single-link"))
    period = 1 / float(fx.modes(model, n=1).frequencies[0])
    problem = build_problem(
        model,
        None,
        goal={"motor": 1.0},
        start=None,
        duration=1.5 * period,
        minimise="residual_energy",
        limits={"velocity": 30.0},
        spread={"links.link.material.E": 0.1},
        samples=3,
        free=None,
        knots=5,
        dt=1e-3,
        steps=60,
        hold=None,
    )
    ends, zero = problem.ends(), jnp.zeros(problem.parameters.size + 1)
    low, high = (
        jnp.append(jnp.full(zero.size - 1, -jnp.inf), 0.0),
        jnp.append(zero[:-1] + jnp.inf, 0),
    )
    levels = lambda x: problem.outcome(x, ends).costs[:, 0]

    def exact(x):
        at = values_at(problem, ends, "worst", True, x)
        H = jax.jacfwd(jax.jacfwd(levels))(x)
        sizes, axes = jnp.linalg.eigh(0.5 * (H + jnp.swapaxes(H, 1, 2)))
        H = jnp.einsum("smk,sk,snk->smn", axes, jnp.maximum(sizes, 0.0), axes)
        return dataclasses.replace(at, curvature=H)

    programs = {
        "simulation": jax.jit(lambda x: levels(x)),
        "gauss-newton": jax.jit(lambda x: values_at(problem, ends, "worst", True, x)),
        "exact": jax.jit(exact),
    }
    seconds, row = {}, {}
    for name, program in programs.items():
        jax.block_until_ready(program(zero))
        times = []
        for _ in range(7):
            begin_time = time.process_time()
            jax.block_until_ready(program(zero))
            times.append(time.process_time() - begin_time)
        seconds[name] = min(times)
    step, follow = jax.jit(lambda it: propose(it, low, high)), jax.jit(advance)
    for name in ("gauss-newton", "exact"):
        it = begin(zero, programs[name](zero))
        while not it.done and it.count < 60:
            d = step(it)
            it = follow(it, d, programs[name](it.x + d.d), 1e-6)
        cost = seconds[name] / seconds["simulation"]
        row[name] = {
            "evaluation [simulations]": cost,
            "iterations": int(it.count),
            "search [simulations]": cost * (int(it.count) + 1),
            "worst energy [J]": float(jnp.max(it.at.levels)),
        }
    print(f"second derivatives: {row}", flush=True)
    return row


def receding():
    """Model-predictive control of a flexible link with another payload than the model's."""
    robot = fx.load_robot("metal-link")
    tool = fx.Payload("tool", "link", 0.1)
    robot = dataclasses.replace(robot, payloads=(tool,), gravity=jnp.zeros(3))
    model = fx.ScrewSynthesis(modes=1, stiffening=True).bind(robot)
    plant = model.rebind(robot.replace("payloads.tool.mass", 0.12))
    run = fx.mpc(
        model,
        goal={"pin": 1.0},
        duration=1.5,
        sample=0.02,
        horizon=20,
        effort=20.0,
        dt=0.01,
        plant=plant,
        weights={"velocity": 1e-2},
    )
    print(f"mpc: {run}", flush=True)
    return {
        "sample [s]": run.sample,
        "median [s]": float(np.median(run.seconds[1:])),
        "slowest [s]": float(np.max(run.seconds[1:])),
        "first, with compiling [s]": float(run.seconds[0]),
        "distance at the end [m]": float(run.distance[-1]),
        "largest effort [N m]": float(np.max(np.abs(run.effort))),
    }


PARTS = {
    "mpc": receding,
    "curvature": curvature,
    "many": many,
    "design": design,
    "gradient": gradient,
    "second": second_goal,
    "first": first_answer,
}


def claims_of(name, row):
    """Numbers to be compared with their bounds."""
    if name == "many":
        alone = row["one by one, gauss-newton [s]"], row["one by one, slsqp [s]"]
        return {
            "64 moves: one by one / together": alone[0] / row["together [s]"],
            "64 moves: one by one by slsqp / together": alone[1] / row["together [s]"],
            "64 moves: converged": row["converged"],
        }
    if name == "design":
        return {
            "design: residual energy, uniform / tapered": row["uniform [J]"] / row["tapered [J]"],
            "design: violation of limits": row["violation"],
        }
    if name == "gradient":
        parts = ("reverse", "forward")
        return {
            f"gradient: {p} - finite differences": row[f"{p} - finite differences"] for p in parts
        }
    if name == "mpc":
        return {
            "mpc: computing time / sample time, median": row["median [s]"] / row["sample [s]"],
            "mpc: distance of the tip at the end [m]": row["distance at the end [m]"],
        }
    if name == "curvature":
        # Above one, exact second derivatives do not pay.
        ratio = row["exact"]["search [simulations]"] / row["gauss-newton"]["search [simulations]"]
        return {"second derivatives: cost of a search, exact / Gauss-Newton": ratio}
    if name == "second":
        return {"second goal, warm [s]": row["second goal [s]"]}
    return {"first robust move, command to report, cold [s]": row["command to report [s]"]}


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
