r"""Find a move from rest to rest that leaves no vibration, robust over uncertain parameters.

Joints that --to does not name stay at home.

Examples:

  flexjax optimise li-zhang-single-link --to motor=1 --duration 0.25 --limit velocity=12 \
    --robust links.link.material.E=10% --formulation TransferMatrix:segments=3 \
    --knots 6 --steps 50 --report move.html --csv move.csv --rate 500
"""

import dataclasses
import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

from flexjax.cli import _check, _common

if TYPE_CHECKING:
    from flexjax.study.optimise import Optimisation

COSTS = ("residual_energy", "residual_tip", "deflection", "effort", "energy", "jerk", "time")
PREFERRED = "TransferMatrix"  # compiles and runs in the least time
METHODS = ("gauss-newton", "sqp", "slsqp", "interior-point", "nlopt")
LIMITS = (
    "velocity",
    "acceleration",
    "jerk",
    "effort",
    "power",
    "strain",
    "stress",
    "mass",
    "tip_speed",
    "residual_energy",
    "stability",
)


@dataclasses.dataclass
class Args:
    """Find a move from rest to rest that leaves no vibration."""

    robot: _common.RobotName
    """path of a robot file, or name of an example"""
    to: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=NUMBER")] = ()
    """joint coordinates at the end [rad or m]"""
    start: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=NUMBER")] = ()
    """joint coordinates at the start; by default the robot's home"""
    duration: Annotated[str, conf.arg(metavar="SECONDS[:LONGEST]")] = ""
    """duration of the move [s]; SHORTEST:LONGEST makes it free"""
    robust: Annotated[tuple[str, ...], conf.arg(metavar="PATH=SHARE%|LOW:HIGH")] = ()
    """uncertain parameters: paths as listed by `flexjax describe ROBOT --paths`"""
    limit: Annotated[tuple[str, ...], conf.arg(metavar="LIMIT[.NAME]=NUMBER")] = ()
    """limits for all joints (or links), or for one: velocity, acceleration, jerk, effort, power,
    strain, stress, mass, tip_speed, residual_energy, stability"""
    minimise: str = "residual_energy"
    """cost: residual_energy, residual_tip, deflection, effort, energy, jerk or time"""
    formulation: str = ""
    """name:options, e.g. TransferMatrix:segments=8; by default TransferMatrix, or the first that
    supports the robot"""
    method: str = ""
    """gauss-newton, sqp, slsqp, interior-point or nlopt; by default that which suits the cost"""
    checkpoint: str = ""
    """file that keeps the best move so far; an existing one is continued (.npz)"""
    knots: int = 8
    """free control values of each joint"""
    steps: int = 80
    """time steps of the move"""
    report: str = ""
    """path of a report with figures and the moving arm (.html)"""
    csv: str = ""
    """path of a table for a motor controller (.csv)"""
    rate: float = 1000.0
    """sampling rate of the table [Hz]"""
    progress: bool = sys.stderr.isatty()
    """show phases (tracing, compiling) and cost and violation of every iteration"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    options = _check_names(args)
    _common.start_jax()
    from flexjax.robot import load_robot
    from flexjax.study.optimise import optimise

    robot = load_robot(args.robot)
    name, formulation = _common.make_formulation(args.formulation, robot, prefer=PREFERRED)
    free = args.knots * len(robot.tree_joints)
    _common.log(
        f"{robot.name} in {name}: tracing, compiling, then a search over {free} free parameters"
    )
    show = _common.log if args.progress else False
    result = optimise(formulation.bind(robot), **options, progress=show)
    written = []
    if args.report:
        from flexjax.viz import move_report

        written.append(str(move_report(result).save(args.report)))
    if args.csv:
        written.append(str(result.to_csv(args.csv, args.rate)))
    text = "\n".join([str(result), *(f"wrote {path}" for path in written)])
    data = _result_data(robot.name, name, result) | {"files": written}
    return text, data, 0 if result.ok else 1


def _result_data(robot: str, formulation: str, result: "Optimisation") -> dict[str, Any]:
    return {
        "robot": robot,
        "formulation": formulation,
        "status": result.status,
        "message": result.message,
        "duration": result.duration,
        "costs": {name: {"nominal": a, "worst": b} for name, (a, b) in result.costs.items()},
        "violation": result.violation,
        "kkt": result.kkt,
        "values": dict(zip(result.names, map(float, result.values), strict=True)),
        "active": [dataclasses.asdict(a) for a in result.active],
    }


def _check_names(args: Args) -> dict[str, Any]:
    """Check what needs no jax; returns the options of ``fx.optimise``."""
    for field, suffix in (("report", ".html"), ("csv", ".csv"), ("checkpoint", ".npz")):
        _check.check_paths(tuple(filter(None, [getattr(args, field)])), (suffix,), field)
    names = _check.check_robot(args.robot)
    if not args.to:
        raise ValueError("to: none; expected the goal, e.g. --to shoulder=1 elbow=0.5.")
    _check.check_numbers("rate", (args.rate,), "a positive number in Hz")
    _check.check_numbers("knots", (args.knots,), "at least 1 control value")
    _check.check_numbers("steps", (args.steps,), "at least 2 steps", 1)
    if args.minimise not in COSTS:
        raise ValueError(f"minimise: {args.minimise!r}; expected one of {', '.join(COSTS)}.")
    if args.method not in ("", *METHODS):
        raise ValueError(f"method: {args.method!r}; expected one of {', '.join(METHODS)}.")
    _check.check_supported(args.robot, args.formulation)
    return {
        "goal": _check.read_coordinates(args.to, names, "to"),
        "start": _check.read_coordinates(args.start, names, "start"),
        "duration": _read_duration(args.duration),
        "minimise": args.minimise,
        "limits": _read_limits(args.limit, names),
        "spread": dict(_read_spread(text, names) for text in args.robust),
        "knots": args.knots,
        "steps": args.steps,
        "method": args.method or None,
        "checkpoint": args.checkpoint or None,
    }


def _read_duration(text: str) -> float | tuple[float, float]:
    try:
        found = [float(part) for part in text.split(":")]
    except ValueError:
        found = []
    rising = all(a < b for a, b in zip([0.0, *found], [*found, math.inf], strict=True))
    if len(found) not in (1, 2) or not rising:
        raise ValueError(
            f"duration: {text!r}; expected a time in seconds, e.g. --duration 0.4, or "
            "SHORTEST:LONGEST."
        )
    return found[0] if len(found) == 1 else (found[0], found[1])


def _read_spread(text: str, names: _check.Names) -> tuple[str, float | tuple[float, float]]:
    """Path and share or interval of ``payloads.tool.mass=10%`` or ``...=0.2:0.3``."""
    path, _, value = text.partition("=")
    _check.read_free(path, names, "robust")
    try:
        if value.endswith("%"):
            share = float(value[:-1]) / 100
            if not 0 < share < 1:
                raise ValueError
            return path, share
        low, high = (float(part) for part in value.split(":"))
        return path, (low, high)
    except ValueError:
        raise ValueError(
            f"robust: {text!r}; expected PATH=SHARE% with a share between 0 and 100, e.g. "
            "payloads.tool.mass=10%, or PATH=LOW:HIGH."
        ) from None


def _read_limits(texts: tuple[str, ...], names: _check.Names) -> dict[str, Any]:
    """Limits of ``effort=5`` (everywhere) and ``velocity.shoulder=3``."""
    found: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        limit, _, where = key.partition(".")
        if limit not in LIMITS:
            raise ValueError(f"limit: {text!r}; expected one of {', '.join(LIMITS)}.")
        try:
            bound = float(value)
        except ValueError:
            bound = 0.0
        if not 0 < bound < float("inf"):
            raise ValueError(f"limit: {text!r}; expected LIMIT=NUMBER above zero, e.g. effort=5.")
        known = names.links if limit in ("strain", "stress", "mass") else names.joints
        if limit in ("tip_speed", "residual_energy", "stability"):
            known = []
        if where and where not in known:
            listed = f"expected one of {', '.join(known)}." if known else "it has no parts."
            raise ValueError(f"limit: {text!r}; {limit} of {where!r}; {listed}")
        if limit in found and (not where or not isinstance(found[limit], dict)):
            raise ValueError(f"limit: {text!r}; {limit} is given twice; expected it once.")
        if where:
            found.setdefault(limit, {})[where] = bound
        else:
            found[limit] = bound
    return found
