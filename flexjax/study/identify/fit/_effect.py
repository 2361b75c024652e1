"""Find free parameters that no prediction depends on, in the traced program.

A derivative that happens to vanish (a joint at rest, a stop that is not reached) does not count.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from flexjax.simulate import RANGE_CHECK
from flexjax.study.identify.fit._problem import Problem


def refuse_without_effect(problem: Problem, suspects: Sequence[int] | np.ndarray) -> None:
    """Raise for parameters among ``suspects`` (indices) that no prediction depends on.

    It traces the model once more; call it only where a derivative is zero.
    """
    reached = takes_part(problem)
    idle = [problem.parameters.names[k] for k in suspects if not reached[k]]
    if idle:
        formulation = type(problem.model.formulation).__name__
        raise ValueError(
            f"free: {', '.join(idle)}: without effect on the data in {formulation}; expected "
            "parameters that the predicted readings depend on. Leave them out, measure something "
            "that depends on them, or choose another formulation."
        )


def takes_part(problem: Problem) -> list[bool]:
    """For every parameter: whether a prediction depends on it, for some values of all of them."""
    par = problem.parameters

    def predict(*values):
        robot = problem.model.robot
        model = problem.model.rebind(par.place(robot, "robot", values))
        runs = [problem.readings_of(model, values, group) for group in problem.groups]
        return runs, [data.predict(model) for data in problem.others]

    jaxpr = jax.make_jaxpr(predict)(*par.start).jaxpr
    each = ([i == k for i in range(par.size)] for k in range(par.size))
    return [any(_reached(jaxpr, one)) for one in each]


def _reached(jaxpr: Any, inputs: list[bool]) -> list[bool]:
    """Which outputs of a program depend on the marked inputs."""
    marked = {v for v, on in zip(jaxpr.invars, inputs, strict=True) if on}

    def on(variables) -> list[bool]:
        return [not hasattr(v, "val") and v in marked for v in variables]

    for equation in jaxpr.eqns:
        given = on(equation.invars)
        if any(given):
            out = _passed_on(equation, given)
            marked |= {v for v, yes in zip(equation.outvars, out, strict=True) if yes}
    return on(jaxpr.outvars)


def _passed_on(equation: Any, given: list[bool]) -> list[bool]:
    p, kind = equation.params, equation.primitive.name
    if kind == "name" and p["name"] == RANGE_CHECK:
        return [False]
    if kind == "scan":
        consts, carry = p["num_consts"], p["num_carry"]
        return _looped(p["jaxpr"].jaxpr, given[:consts], given[consts:], carry)
    if kind == "while":
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        state = _looped(p["body_jaxpr"].jaxpr, given[first:second], given[second:], None)
        # The condition sets the number of rounds, on which every result depends.
        if any(_reached(p["cond_jaxpr"].jaxpr, given[:first] + state)):
            return [True] * len(state)
        return state
    if kind == "cond":
        if given[0]:
            return [True] * len(equation.outvars)
        branches = [_reached(b.jaxpr, given[1:]) for b in p["branches"]]
        return [any(column) for column in zip(*branches, strict=True)]
    inner = next((p[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in p), None)
    inner = getattr(inner, "jaxpr", inner)
    if inner is not None and len(inner.invars) == len(given):
        return _reached(inner, given)
    return [True] * len(equation.outvars)


def _looped(body: Any, consts: list[bool], rest: list[bool], carry: int | None) -> list[bool]:
    """Outputs of a loop: the carry may affect the results of the next round."""
    carry = len(rest) if carry is None else carry
    state, others = rest[:carry], rest[carry:]
    while True:
        out = _reached(body, consts + state + others)
        new = [a or b for a, b in zip(state, out[:carry], strict=True)]
        if new == state:
            return state + out[carry:]
        state = new
