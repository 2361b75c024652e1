"""Where the equations of a traced program come from.

An equation counts for every function of flexjax on the stack when jax traced it, so a function's
number includes those that it calls. What jax traces once and uses again counts once.
"""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.first_call import DT, END, OUTPUTS, parts_of, robot_of

PACKAGE = str(Path(__file__).resolve().parent.parent / "flexjax") + "/"
TASKS = ("simulate", "value_and_grad")


def functions_of(equation: Any) -> list[str]:
    """Functions of flexjax on the stack of an equation, the innermost first."""
    traceback = equation.source_info.traceback
    frames = () if traceback is None else traceback.frames
    return [
        f"{frame.file_name.removeprefix(PACKAGE)}:{frame.function_name}"
        for frame in frames
        if frame.file_name.startswith(PACKAGE)
    ]


def count(jaxpr: Any) -> tuple[int, Counter, Counter]:
    """Equations of a program with all its parts; by function with those that it calls; by the
    innermost function alone."""
    total, inclusive, own, seen = 0, Counter(), Counter(), set()
    open_ = [jaxpr]
    while open_:
        part = open_.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for equation in part.eqns:
            total += 1
            names = functions_of(equation)
            inclusive.update(set(names))
            own.update(names[:1])
        open_ += [inner for _, inner in parts_of(part)]
    return total, inclusive, own


def case(formulation: str, robot_name: str, task: str, top: int) -> dict[str, Any]:
    """One program: its equations, CPU seconds of its phases, and the functions with most
    equations. ``simulate`` returns all outputs; the gradient is that of the tip."""
    import flexjax as fx

    name = f"{formulation}/{robot_name}/{task}"
    method, robot = getattr(fx, formulation)(), robot_of(robot_name)
    try:
        model = jax.block_until_ready(method.bind(robot))
    except ValueError as error:
        return {"name": name, "error": str(error).splitlines()[0]}
    ts = jnp.linspace(0.0, END, OUTPUTS)

    def simulate(model):
        return fx.simulate(model, None, ts, dt=DT, throw=False)

    def tip(robot):
        return simulate(method.bind(robot)).tip[-1, 1]

    choices = {
        "simulate": (fx.jit(simulate), model),
        "value_and_grad": (fx.value_and_grad(tip), robot),
    }
    fn, argument = choices[task]
    jax.clear_caches()  # a helper that another case traced would not be traced again
    times = [time.process_time()]
    traced = fn.trace(argument)
    times.append(time.process_time())
    lowered = traced.lower()
    times.append(time.process_time())
    lowered.compile()
    times.append(time.process_time())
    total, inclusive, own = count(traced.jaxpr.jaxpr)
    seconds = [b - a for a, b in zip(times, times[1:], strict=False)]
    return {
        "name": name,
        "equations": total,
        **dict(zip(("trace", "lower", "compile"), seconds, strict=True)),
        "stablehlo": len(lowered.as_text()),
        "inclusive": dict(inclusive.most_common(top)),
        "own": dict(own.most_common(top)),
    }


def show(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'':52}{'equations':>10}{'trace s':>9}{'lower s':>9}{'compile s':>10}{'HLO kB':>8}"]
    for row in rows:
        if "error" in row:
            lines.append(f"{row['name']:52} {row['error']}")
            continue
        seconds = f"{row['trace']:9.2f}{row['lower']:9.2f}{row['compile']:10.2f}"
        size = row["stablehlo"] // 1000
        lines.append(f"{row['name']:52}{row['equations']:10}{seconds}{size:8}")
    for row in rows:
        for kind in ("inclusive", "own"):
            if row.get(kind):
                lines += ["", f"{row['name']}, {kind}"]
                lines += [f"{number:8} {name}" for name, number in row[kind].items()]
    return "\n".join(lines)
