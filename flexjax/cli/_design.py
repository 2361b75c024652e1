r"""Propose a motion or an effort whose recording says much about free parameters, inside limits.

The proposal starts and ends at rest. It is the best of random candidates, improved by its gradient.

Its table has a column motion.JOINT or effort.JOINT. Repeat it on the rig, add the readings as
columns with the names of the sensors, and give the file to `flexjax identify`.

Examples:

  flexjax design bench-arm --joint shoulder --kind effort --size 1 --duration 2 \
    --free links.link.material.E payloads.tool.mass --noise shoulder-angle=2e-3 gauge=3e-6 \
    --within shoulder-angle=1 gauge=5e-4 --formulation TransferMatrix:segments=6 --dt 5e-3 \
    --csv rig.csv
"""

import dataclasses
from typing import Annotated, Any

from tyro import conf

from flexjax.cli import _check, _common

KINDS = ("motion", "effort")


@dataclasses.dataclass
class Args:
    """Propose an experiment."""

    robot: _common.RobotName
    """path of a robot file, name of an example, or name of a shipped data set"""
    joint: str = ""
    """joint that moves; the others follow their home"""
    kind: str = "motion"
    """motion or effort of the joint"""
    size: float = 0.0
    """typical size of the candidates [rad or m, N m or N]"""
    duration: float = 2.0
    """duration of the experiment [s]"""
    free: Annotated[tuple[str, ...], conf.arg(metavar="PATH")] = ()
    """free parameters: paths as listed by `flexjax describe ROBOT --paths`"""
    noise: Annotated[tuple[str, ...], conf.arg(metavar="SENSOR=NUMBER")] = ()
    """sensors that will be recorded, with the standard deviation of their noise (SI units)"""
    within: Annotated[tuple[str, ...], conf.arg(metavar="SENSOR=NUMBER")] = ()
    """largest sizes of readings (SI units): of encoders, torque sensors, strain gauges"""
    knots: int = 10
    """free control values of the joint"""
    candidates: int = 3
    """number of random candidates"""
    tuning: int = 8
    """iterations that improve the best candidate"""
    seed: int = 0
    """seed of the candidates"""
    formulation: str = ""
    """name:options, e.g. FiniteElement:elements=8; by default the first that supports the robot"""
    dt: float = 1e-3
    """largest time step [s]"""
    csv: str = ""
    """path of a table for a motor controller (.csv)"""
    rate: float = 1000.0
    """sampling rate of the table [Hz]"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    noise, limits = _checked(args)
    _common.start_jax()
    import numpy as np

    from flexjax.robot import load_robot
    from flexjax.study.identify import datasets, design, load_dataset

    robot = load_dataset(args.robot).robot if args.robot in datasets() else load_robot(args.robot)
    name, formulation = _common.make_formulation(args.formulation, robot)
    _common.log(f"{robot.name} in {name}: tracing, compiling, then {args.candidates} candidates")
    inner = range(1, args.knots + 1)
    tune = [f"joints.{args.joint}.signal.values.{k}" for k in inner] if args.tuning else None
    found = design(
        formulation.bind(robot),
        list(args.free),
        _candidates(args),
        np.linspace(0.0, args.duration, max(2, round(100 * args.duration) + 1)),
        noise=noise,
        limits=limits,
        tune=tune,
        dt=args.dt,
        steps=args.tuning,
    )
    written = [str(found.to_csv(args.csv, args.rate))] if args.csv else []
    data = {
        "robot": robot.name,
        "formulation": name,
        "candidates": {
            c.name: {"score": c.score, "use": c.use, "errors": list(map(float, c.errors))}
            for c in found.candidates
        },
        "files": written,
    }
    inside = found.best.use <= 1 + 1e-6
    lines = [str(found), *(f"wrote {path}" for path in written)]
    if not inside:
        lines.append("no candidate is inside the limits: take a smaller --size")
    return "\n".join(lines), data, 0 if inside else 1


def _candidates(args: Args) -> dict[str, Any]:
    """Random splines from rest at zero to rest at zero."""
    import numpy as np

    from flexjax.drive import Drive, Effort, Motion
    from flexjax.drive.signal import bspline

    act, rng, found = (
        Motion if args.kind == "motion" else Effort,
        np.random.default_rng(args.seed),
        {},
    )
    for k in range(args.candidates):
        values = np.concatenate([[0.0], args.size * rng.normal(size=args.knots), [0.0]])
        found[f"candidate {k + 1}"] = Drive({args.joint: act(bspline(values, args.duration))})
    return found


def _checked(args: Args) -> tuple[dict[str, float], dict[str, float]]:
    """Check what needs no jax; returns noise and limits by sensor."""
    _check.check_paths(tuple(filter(None, [args.csv])), (".csv",), "csv")
    names = _check.check_robot(args.robot)
    if args.joint not in names.joints:
        raise ValueError(f"joint: {args.joint!r}; expected one of {', '.join(names.joints)}.")
    if args.kind not in KINDS:
        raise ValueError(f"kind: {args.kind!r}; expected {' or '.join(KINDS)}.")
    if not args.free:
        raise ValueError(
            "free: none; expected at least one free parameter, e.g. --free 'links.*.material.E'."
        )
    for path in args.free:
        _check.read_free(path, names)
    _check.check_step(args.dt)
    for field in ("size", "duration", "rate", "knots", "candidates"):
        _check.check_numbers(field, (getattr(args, field),), "a positive number")
    _check.read_formulation(args.formulation)
    found = []
    for field in ("noise", "within"):
        pairs = _check.read_pairs(field, getattr(args, field))
        _check.check_columns({}, getattr(args, field), names)
        try:
            found.append({name: float(text) for name, text in pairs.items()})
        except ValueError:
            raise ValueError(f"{field}: {pairs}; expected SENSOR=NUMBER.") from None
        _check.check_numbers(field, tuple(found[-1].values()), "positive numbers in SI units")
    if not found[0]:
        raise ValueError(
            "noise: none; expected the sensors that will be recorded, e.g. gauge=1e-6."
        )
    return found[0], found[1]
