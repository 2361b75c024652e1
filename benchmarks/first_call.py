"""What a first call costs: import, bind, trace, lower, compile, first and second run.

    python -m benchmarks.first_call [--formulations TransferMatrix ...] [--robots "one link" ...]
        [--tasks simulate ...] [--warm] [--refusals] [--threads 1] [--page docs/first_call.md]
    python -m benchmarks.first_call --must-show [--formulations ...]

Every case runs in a process of its own, without programs on disk. ``--warm`` adds two processes
with a cache folder, of which the second finds compiled programs and, where flexjax can keep them,
traced ones. A case that a formulation does not support is reported with its refusal.
``--refusals`` adds the time of refusals on the command line. ``--page`` includes both. Results are
in ``benchmarks/results/first_call.json``. ``--must-show`` prints another table instead, with what
is wanted beside what was seen (`_must_show.py`; about ten minutes on two free cores).
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROBOTS = ("one link", "three links in the plane", "three links in space", "telescope", "loop")
TASKS = ("simulate", "value_and_grad", "batch of 64", "identify")
PHASES = ("import", "bind", "trace", "lower", "compile", "first run", "second run")
END, OUTPUTS, DT = 0.1, 11, 1e-3


def robot_of(name: str):
    """The robot of a case, with an encoder on its first joint for identification."""
    import dataclasses

    import numpy as np

    import flexjax as fx

    if name.startswith("three"):
        links = [
            fx.Link(
                f"link{i}",
                0.25,
                section=fx.Rectangle(0.005, 0.005),
                material=fx.Material(E=71e9, nu=0.33, rho=2710.0),
            )
            for i in (1, 2, 3)
        ]
        axes = ((0, 0, 1), (0, 1, 0), (0, 1, 0)) if name.endswith("space") else ((0, 0, 1),) * 3
        parents = ("ground", "link1", "link2")
        joints = [
            fx.Joint(f"joint{i + 1}", "revolute", parents[i], f"link{i + 1}", axis=axes[i])
            for i in range(3)
        ]
        robot = fx.Robot(name, links, joints, planar=name.endswith("plane"))
    else:
        examples = {
            "one link": "metal-link",
            "two links": "two-link",
            "telescope": "soeffker-telescopic",
            "telescope in space": "soeffker-telescopic",
            "loop": "macchelli-parallelogram",
        }
        robot = fx.load_robot(examples[name])
        if name.endswith("in space"):
            robot = robot.replace("gravity", np.array([0.0, -1.0, -0.5]))
    encoder = fx.Sensor("first angle", "encoder", robot.tree_joints[0].name)
    return dataclasses.replace(robot, sensors=(encoder,))


def count(jaxpr, seen: set) -> int:
    """Equations of a program and of its parts; what jax traced once counts once."""
    if id(jaxpr) in seen:
        return 0
    seen.add(id(jaxpr))
    return len(jaxpr.eqns) + sum(count(part, seen) for _, part in parts_of(jaxpr))


def parts_of(jaxpr):
    """The sub-programs of an equation's parameters, with the name of the equation."""
    import jax

    closed, plain = jax.extend.core.ClosedJaxpr, jax.extend.core.Jaxpr
    for equation in jaxpr.eqns:
        name = str(equation.params.get("name", equation.primitive.name))
        for leaf in jax.tree_util.tree_leaves(
            list(equation.params.values()), is_leaf=lambda x: isinstance(x, closed | plain)
        ):
            if isinstance(leaf, closed | plain):
                yield name, leaf.jaxpr if isinstance(leaf, closed) else leaf


def largest(jaxpr, top: int = 5) -> list:
    """The sub-programs with the most equations: name and equations, parts included."""
    found: dict[int, tuple[str, int]] = {}

    def visit(jaxpr):
        for name, part in parts_of(jaxpr):
            if id(part) not in found:
                found[id(part)] = (name, count(part, set()))
                visit(part)

    visit(jaxpr)
    return [list(x) for x in sorted(found.values(), key=lambda x: -x[1])[:top]]


def case(
    formulation: str, robot_name: str, task: str, threads: int | None, cache: str = ""
) -> dict:
    """One case in this process; ``cache``: the folder of programs on disk, if any."""
    times, begin = {}, time.perf_counter()

    def lap(phase: str) -> None:
        nonlocal begin
        times[phase] = time.perf_counter() - begin
        begin = time.perf_counter()

    import flexjax as fx

    fx.configure(threads=threads, cache=cache or False)
    import jax
    import jax.extend
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    method = getattr(fx, formulation)()
    robot = robot_of(robot_name)
    lap("import")
    try:
        model = jax.block_until_ready(method.bind(robot))
    except ValueError as error:
        return {"unsupported": str(error).splitlines()[1].strip(" -")}
    lap("bind")
    ts = jnp.linspace(0.0, END, OUTPUTS)

    def simulate(model):
        return fx.simulate(model, None, ts, dt=DT, throw=False)

    if task == "identify":
        return identify(fx, model, simulate(model), times)
    if task == "simulate" and cache:  # a direct call: inside another program it would be traced
        return times | phases_of(lambda: jax.block_until_ready(simulate(model)))

    def tip(robot):
        return simulate(method.bind(robot)).tip[-1, 1]

    def batch(factors):
        run = lambda factor: tip(robot.replace("gravity", factor * robot.gravity))
        return jax.vmap(run)(factors)

    fn, argument = {
        "simulate": (fx.jit(simulate), model),
        "value": (fx.jit(tip), robot),
        "value_and_grad": (fx.value_and_grad(tip), robot),
        "batch of 64": (fx.jit(batch), jnp.linspace(0.5, 1.0, 64)),
    }[task]
    begin = time.perf_counter()
    traced = fn.trace(argument)
    lap("trace")
    lowered = traced.lower()
    lap("lower")
    compiled = lowered.compile()
    lap("compile")
    jax.block_until_ready(compiled(argument))
    lap("first run")
    jax.block_until_ready(compiled(argument))
    lap("second run")
    memory = compiled.memory_analysis()
    return {
        **times,
        "equations": count(traced.jaxpr.jaxpr, set()),
        "largest": largest(traced.jaxpr.jaxpr),
        "stablehlo": len(lowered.as_text()),
        "temporary": memory.temp_size_in_bytes if memory else None,
    }


def phases_of(call) -> dict:
    """Seconds of the phases of a first and a second call, from jax's own reports."""
    import jax

    spent = {"lower": 0.0, "compile": 0.0}
    names = {
        "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
        "/jax/core/compile/backend_compile_duration": "compile",
    }

    def listen(event: str, seconds: float, **_) -> None:
        if event in names:
            spent[names[event]] += seconds

    def seconds() -> float:
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    jax.monitoring.register_event_duration_secs_listener(listen)
    first, found = seconds(), dict(spent)
    later = seconds()
    jax.monitoring.unregister_event_duration_listener(listen)
    found["trace"] = max(0.0, first - later - found["lower"] - found["compile"])
    return found | {"first run": later, "second run": later}


def identify(fx, model, traj, times: dict) -> dict:
    """Estimate gravity from the encoder of a simulated run."""
    import numpy as np

    readings = np.asarray(fx.measure(traj)["first angle"])
    noise = 1e-6 * np.sin(37.0 * np.arange(len(readings)))
    data = fx.Experiment(np.asarray(traj.ts), sensors={"first angle": readings + noise})
    free = [fx.Free("gravity.1", start=-9.0)]
    return times | phases_of(lambda: fx.identify(model, data, free, dt=DT))


# A bad argument, a missing file, an unknown joint, a bad option, a robot that is not supported.
REFUSALS = {
    "help": ["--help"],
    "unknown formulation": ["simulate", "two-link", "--formulation", "Nonesuch"],
    "missing file": ["simulate", "nothing.toml"],
    "unknown joint": ["simulate", "two-link", "--motion", "wrist=quintic:0:1:1"],
    "option value": ["simulate", "two-link", "--formulation", "PortHamiltonian:elements=0"],
    "free field": ["identify", "bench-arm", "--free", "payloads.tool.mas"],
    "unsupported robot": ["simulate", "macchelli-parallelogram", "--formulation", "FiniteElement"],
}


def refusals() -> dict[str, float]:
    """Seconds of a process that refuses, the shorter of two."""
    found = {}
    for name, argv in REFUSALS.items():
        times = []
        for _ in range(2):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-m", "flexjax", *argv], capture_output=True)
            times.append(time.perf_counter() - begin)
        found[name] = min(times)
    return found


def fresh_process(arguments: list[str], cache: str, patience: float | None = None) -> dict:
    """The result of a case in a new process, with its total time and peak memory."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.first_call", "--case", *arguments, cache],
            env=env,
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {patience} s", "total": patience}
    total = time.perf_counter() - begin
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(done.stdout.splitlines()[-1]) | {"total": total}


def table(rows: list[dict]) -> str:
    """The results as a Markdown table, seconds."""
    heads = ["formulation", "robot", "task", *PHASES, "total", "warm total"]
    heads += ["equations", "HLO [kB]", "RSS [MB]"]
    lines = [" | ".join(heads), "|".join("---" for _ in heads)]
    for row in rows:
        cells = row["name"].split("/")
        if "unsupported" in row or "error" in row:
            cells.append(row.get("error") or "not supported")
            cells += [""] * (len(heads) - len(cells))
        else:
            cells += [f"{row[key]:.2f}" for key in (*PHASES, "total")]
            warm, size = row.get("warm", {}), row.get("stablehlo")
            cells.append(f"{warm['total']:.2f}" if "total" in warm else warm.get("error", ""))
            cells += [str(row.get("equations", "")), f"{size / 1e3:.0f}" if size else ""]
            cells.append(f"{row['memory'] / 1e6:.0f}")
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def refusal_table(refused: dict[str, float]) -> str:
    """The times of refusals as a Markdown table."""
    lines = ["| command | seconds |", "|---|---|"]
    for name, seconds in refused.items():
        lines.append(f"| {name}: `flexjax {' '.join(REFUSALS[name])}` | {seconds:.2f} |")
    return "\n".join(lines)


def page(stored: dict) -> str:
    """The results as a page of the documentation."""
    versions = stored["versions"]
    return f"""# First call

What the first call of a simulation costs, in seconds, and its size. Every case runs in a process of
its own: {END:g} s in steps of {DT:g} s, nothing cached. *Total* is the whole process. *Warm total*
is that of a later process, which finds programs in the cache folder of `fx.configure()`.
*Equations* are those that jax traces, *HLO* is the program that XLA compiles, *RSS* the peak memory
of the process. The second run shows what later calls cost.
`python -m benchmarks.first_call --page docs/first_call.md` writes this page; its JSON also names
the largest parts of each program.

{table(stored["rows"])}

The command line refuses most mistakes before it imports jax. Seconds of the whole process:

{refusal_table(stored["refusals"])}

Measured {stored["date"][:10]}: {stored["cpus"]} cores, load {stored["load"]:.1f}, threads
{stored["threads"] or "jax's choice"}, jax {versions["jax"]}, jaxlib {versions["jaxlib"]}. Ratios
carry over to other machines; seconds do not.
"""


def main(argv=None) -> int:
    from flexjax._registry import REGISTRY

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formulations", nargs="+", choices=REGISTRY, default=list(REGISTRY))
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--threads", type=int, default=None, help="as in fx.configure")
    parser.add_argument(
        "--warm", action="store_true", help="add a second process with a warm cache"
    )
    parser.add_argument("--refusals", action="store_true", help="time refusals, too")
    parser.add_argument("--page", help="path of a Markdown page to write")
    parser.add_argument("--must-show", action="store_true", help="the table of limits")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.case:
        *which, threads, cache = args.case
        found = case(*which, threads=int(threads) or None, cache=cache)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found["memory"] = peak * (1 if sys.platform == "darwin" else 1024)
        print(json.dumps(found))
        return 0
    from benchmarks import _harness, _must_show

    if args.must_show:
        found = _must_show.must_show(args.formulations)
        print(found)
        print(f"written to {_harness.save('first_call_must_show', found.rows)}")
        return 0
    refused = refusals() if args.refusals or args.page else {}
    rows = []
    for formulation in args.formulations:
        for robot in args.robots:
            for task in args.tasks:
                arguments = [formulation, robot, task, str(args.threads or 0)]
                found = fresh_process(arguments, "")
                measured = "total" in found and "unsupported" not in found
                if (args.warm or args.page) and measured:
                    with tempfile.TemporaryDirectory() as folder:
                        fresh_process(arguments, folder)
                        found["warm"] = fresh_process(arguments, folder)
                rows.append(_harness.row(f"{formulation}/{robot}/{task}", **found))
                print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
                # After every case, so that an interrupted run leaves its results.
                path = _harness.save("first_call", rows, threads=args.threads, refusals=refused)
                if "unsupported" in found:
                    break
    print(table(rows))
    if refused:
        print(refusal_table(refused))
    if args.page:
        Path(args.page).write_text(page(json.loads(path.read_text())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
