"""The table of `python -m benchmarks.first_call --must-show`: what the first answers cost.

Each line has the value before this work, the limit, and what was seen: the least and the largest
number, with the formulation that has it. Every number comes from a process of its own. A process
that exceeds ``PATIENCE`` counts as that.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks import first_call

PATIENCE = 120.0  # seconds
ROOT = Path(__file__).resolve().parent.parent
SEVERAL = ("TransferMatrix", "FiniteElement", "PortHamiltonian")
SPATIAL = {
    "three links in space": ("TransferMatrix", "FiniteElement", "PortHamiltonian"),
    "telescope in space": ("MovingBeam", "FiniteElement"),
    "loop": ("PortHamiltonian",),
}
# Equations traced before this work: all outputs, and the gradient of the tip.
BEFORE = {
    "RigidArm": (2200, 2900),
    "TransferMatrix": (3600, 5100),
    "FiniteElement": (5800, 8300),
    "ScrewSynthesis": (7400, 12000),
    "PortHamiltonian": (9400, 16000),
    "MovingBeam": (19000, 27000),
}
# A user's first simulation, from the start of the interpreter to the path of the tip.
FIRST = """
import sys
import flexjax as fx
name, formulation, folder = sys.argv[1:]
if folder:
    fx.configure(cache=folder)
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from benchmarks.first_call import robot_of
model = getattr(fx, formulation)().bind(robot_of(name))
traj = fx.simulate(model, None, np.linspace(0.0, 0.2, 21), dt=1e-3)
assert np.isfinite(traj.tip).all()
"""
# Seconds of later runs of 1000 steps: with the threads that jax chooses, or those of configure().
LATER = """
import os, sys, time
formulation, core, configured = sys.argv[1:]
if core:
    os.sched_setaffinity(0, {int(core)})
import flexjax as fx
if configured:
    fx.configure(cache=False)
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
model = getattr(fx, formulation)().bind(fx.load_robot("metal-link"))
times = []
for _ in range(12):
    begin = time.perf_counter()
    jax.block_until_ready(fx.simulate(model, None, np.linspace(0.0, 1.0, 11), dt=1e-3).final)
    times.append(time.perf_counter() - begin)
print(sorted(times[2:])[2])
"""


def _clean() -> dict[str, str]:
    """The environment without caches of compiled programs."""
    return {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}


def timed(command: list[str], env: dict[str, str] | None = None) -> tuple[float, str]:
    """(seconds of a process, its output); NaN if it fails, the limit if it exceeds it."""
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env=env or _clean(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return PATIENCE, ""
    seconds = time.perf_counter() - begin
    if done.returncode:
        print(f"  failed: {' '.join(command)[-120:]}\n{done.stderr[-500:]}", file=sys.stderr)
        return float("nan"), ""
    return seconds, done.stdout


class Table:
    """Lines of the table, each printed when it is known."""

    def __init__(self):
        self.rows: list[dict] = []

    def add(
        self, what: str, before: str, wanted: str, seen: dict[str, float], limit, unit: str = "s"
    ) -> None:
        """``limit``: the largest number allowed, for all or by name."""
        limits = limit if isinstance(limit, dict) else dict.fromkeys(seen, limit)
        good = all(x <= limits[name] for name, x in seen.items())
        row = {"what": what, "before": before, "wanted": wanted, "seen": seen, "good": good}
        self.rows.append(row)
        each = ", ".join(f"{name} {_number(x)}" for name, x in seen.items())
        row["text"] = f"{_span(seen.values())} {unit}".strip()
        print(f"{what}: {each} {unit} (wanted {wanted})", file=sys.stderr, flush=True)

    def __str__(self) -> str:
        lines = ["| | before | wanted | seen | |", "|---|---|---|---|---|"]
        for row in self.rows:
            cells = (row["what"], row["before"], row["wanted"], row["text"])
            lines.append(f"| {' | '.join(cells)} | {'yes' if row['good'] else 'no'} |")
        lines += ["", "Each:", ""]
        for row in self.rows:
            each = ", ".join(f"{name} {_number(x)}" for name, x in row["seen"].items())
            lines.append(f"- {row['what']}: {each}")
        return "\n".join(lines)


def _number(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.2f}" if x < 10 else f"{x:.1f}"


def _span(values: Iterable[float]) -> str:
    low, high = min(values), max(values)
    return _number(low) if len({low, high}) == 1 else f"{_number(low)}-{_number(high)}"


def first_simulations(table: Table, formulations: list[str]) -> None:
    """One link, cold and with a warm cache; two and three links in the plane, cold."""
    cold, warm = {}, {}
    for name in formulations:
        cold[name] = timed(["-c", FIRST, "one link", name, ""])[0]
        with tempfile.TemporaryDirectory() as folder:
            timed(["-c", FIRST, "one link", name, folder])
            warm[name] = timed(["-c", FIRST, "one link", name, folder])[0]
    limit = {name: 6.0 if name == "MovingBeam" else 4.0 for name in formulations}
    what = "one link, cold process to first simulation"
    table.add(what, "3.5-13 s", "<= 4 s, MovingBeam 6 s", cold, limit)
    table.add("the same, warm cache", "3-8 s", "<= 2 s", warm, 2.0)
    several = {
        f"{robot} {name}": timed(["-c", FIRST, robot, name, ""])[0]
        for robot in ("two links", "three links in the plane")
        for name in formulations
        if name in SEVERAL
    }
    if several:
        what = "two or three links in the plane: first simulation"
        table.add(what, "5-14 s", "<= 6 s", several, 6.0)


def _gradient(name: str, robot: str) -> tuple[float, int]:
    """(seconds of trace, lowering, compilation and first run of a gradient; its equations)."""
    found = first_call.fresh_process([name, robot, "value_and_grad", "0"], "", PATIENCE)
    if "error" in found or "unsupported" in found:
        print(f"  {robot}, {name}: {found}", file=sys.stderr)
        return found.get("total", float("nan")), 0
    phases = ("trace", "lower", "compile", "first run")
    return sum(found[phase] for phase in phases), found["equations"]


def gradients(table: Table, formulations: list[str]) -> None:
    """First gradients, and the equations of one link."""
    one, equations, limits = {}, {}, {}
    for name in formulations:
        one[name], gradient = _gradient(name, "one link")
        value = first_call.fresh_process([name, "one link", "value", "0"], "", PATIENCE)
        before = BEFORE.get(name)
        if before and gradient and "equations" in value:
            equations[f"{name} value"] = value["equations"] / before[0]
            equations[f"{name} gradient"] = gradient / before[1]
        limits[name] = 10.0 if name == "MovingBeam" else 6.0
    table.add("one link, first value_and_grad", "4-31 s", "<= 6 s, MovingBeam 10 s", one, limits)
    plane = {
        f"{robot} {name}": _gradient(name, robot)[0]
        for robot in ("two links", "three links in the plane")
        for name in formulations
        if name in SEVERAL
    }
    if plane:
        what = "two or three links in the plane: first value_and_grad"
        table.add(what, "13-33 s", "<= 12 s", plane, 12.0)
    space = {
        f"{robot} {name}": _gradient(name, robot)[0]
        for robot, names in SPATIAL.items()
        for name in names
        if name in formulations
    }
    if space:
        what = "three links in space, telescope in space, closed loop: first value_and_grad"
        table.add(what, "up to 5 min", "<= 25 s", space, 25.0)
    what = "equations traced for the tip of one link, of those before"
    table.add(what, "1", "<= 0.5", equations, 0.5, unit="")


def commands(table: Table) -> None:
    """Identification, the demo and refusals as commands, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        env = _clean() | {"XDG_CACHE_HOME": folder}
        fit = ["identify", "bench-arm", "--free", "links.*.material.E", "payloads.tool.mass"]
        fit += ["joints.*.friction.coulomb", "joints.*.friction.bristle", "--dt", "1.25e-3"]
        fit += ["--formulation", "TransferMatrix:segments=16", "--report", f"{folder}/fit.html"]
        seconds = timed(["-m", "flexjax", *fit], env)[0]
        what = "identify of the shipped bench arm, command to report, cold"
        table.add(what, "76 s (loaded)", "<= 12 s", {"bench-arm": seconds}, 12.0)
    with tempfile.TemporaryDirectory() as folder:
        env = _clean() | {"XDG_CACHE_HOME": folder}
        seconds = timed(["-m", "flexjax", "demo", "--out", f"{folder}/demo"], env)[0]
        table.add("make demo without installation", "71 s", "<= 30 s", {"demo": seconds}, 30.0)
    refused = first_call.refusals()
    table.add("refusal on the command line", "up to 40 s", "<= 1 s", refused, 1.0)


def cores(table: Table, formulations: list[str]) -> None:
    """Runs on all cores over runs on one."""
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        print("cores: needs two cores (and Linux); left out", file=sys.stderr)
        return
    one = str(max(os.sched_getaffinity(0)))
    plain, configured = {}, {}
    for name in formulations:
        seen = {
            key: statistics.median(
                float(timed(["-c", LATER, name, *key])[1] or "nan") for _ in range(2)
            )
            for key in ((one, ""), ("", ""), ("", "1"))
        }
        plain[name] = seen["", ""] / seen[one, ""]
        configured[name] = seen["", "1"] / seen[one, ""]
    what = "single run on two cores / pinned"
    table.add(f"{what}, after fx.configure()", "1.2-2.1", "<= 1.1", configured, 1.1, unit="")
    table.add(f"{what}, without", "1.2-2.1", "<= 1.1", plain, 1.1, unit="")


def must_show(formulations: list[str]) -> Table:
    """The table, measured."""
    table = Table()
    commands(table)
    cores(table, formulations)
    first_simulations(table, formulations)
    gradients(table, formulations)
    return table
