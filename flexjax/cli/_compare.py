"""Simulate a robot in every formulation that supports it, and write a report with a 3D page.

Example:

  flexjax compare two-link --motion shoulder=quintic:0:1:0.5 --end 0.8 --report compare.html
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

from flexjax.cli import _check, _common

if TYPE_CHECKING:
    from flexjax.robot import Robot
    from flexjax.simulate.analysis._compare import Comparison, Row
    from flexjax.viz import Report

# Headings of the numbers in table and data, and the fields of a row that give them.
COLUMNS = {
    "formulation": "name",
    "unknowns": "unknowns",
    "tip [m]": "tip",
    "joints [rad, m]": "joints",
    "energy [J]": "energy",
    "balance": "balance",
    "first run [s]": "first_seconds",
    "second run [s]": "run_seconds",
}


@dataclasses.dataclass
class Args:
    """Compare formulations on one robot."""

    robot: _common.RobotName
    """path of a robot file, or name of an example"""
    drive: str = ""
    """path of a drive file (TOML)"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=SIGNAL:NUMBERS")] = ()
    """prescribed joint motions, e.g. shoulder=quintic:0:1:2 (start, end, duration)"""
    formulation: Annotated[tuple[str, ...], conf.arg(aliases=["--formulations"])] = ()
    """name:options, e.g. FiniteElement:elements=8; by default all that support the robot"""
    end: float = 1.0
    """end time [s]"""
    outputs: int = 101
    """number of output times, including start and end"""
    dt: float = 1e-3
    """largest time step [s]"""
    report: Annotated[str, conf.arg(aliases=["--out"])] = "compare.html"
    """path of a report with tables, figures and the moving arm (.html)"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    _check.check_paths((args.report,), (".html",), "report")
    _check.check_times(args.end, args.outputs, args.dt)
    _check.check_drive(args.drive, args.motion, _check.check_robot(args.robot))
    for text in args.formulation:
        _check.read_formulation(text)
    _check.check_supported(args.robot, "")
    _common.start_jax(args.end / args.dt)
    import jax.numpy as jnp

    from flexjax.robot import load_robot
    from flexjax.simulate import compare

    ts = jnp.linspace(0.0, args.end, args.outputs)
    robot = load_robot(args.robot)
    drive, start = _common.make_drive(args.drive, args.motion, robot)
    chosen = dict(_common.make_formulation(text, robot) for text in args.formulation) or None
    with _common.collect_warnings() as caught, _common.report_phases():
        runs = f"tracing, compiling, then two runs of {args.end:g} s"
        announce = lambda name: _common.log(f"{name}: {runs}")
        result = compare(
            robot, drive, ts, dt=args.dt, formulations=chosen, progress=announce, start=start
        )
    path = _report(args, robot, result, caught, bool(chosen)).save(args.report)
    return f"{result}\nreport: {path.resolve()}", _data(robot, result, caught, path), 0


def _report(
    args: Args, robot: "Robot", result: "Comparison", caught: list[str], chosen: bool
) -> "Report":
    from flexjax.mechanism import describe
    from flexjax.viz import Report, animate, plot

    rows = [
        [*_cells(r), ", ".join(f"{f:.4g}" for f in r.frequencies), r.status] for r in result.rows
    ]
    which = "the chosen formulations" if chosen else "every formulation that supports it"
    report = Report(
        f"{robot.name} in {len(rows)} formulation{'s' * (len(rows) != 1)}",
        f"The same robot and drive over {args.end:g} s, in {which}.",
    )
    head = [*COLUMNS, "frequencies [Hz]", "status"]
    report.heading("Agreement, frequencies, cost").table(head, rows)
    report.text(
        "Tip, joints and energy: largest difference from the reference over "
        f"{args.outputs} output times. The reference is {result.reference}, the formulation with "
        "elastic links that has the most unknowns. Balance: largest error of the energy balance, "
        "relative to the largest energy. First run: includes compilation. Frequencies: at the "
        "robot's home, with all motors locked."
    )
    for name, why in result.refused.items():
        report.text(f"{name} does not support this robot: {'; '.join(why)}")
    for r in result.rows:
        if r.reason:
            report.text(f"{r.name}: {r.status}: {r.reason}")
    for warning in caught:
        report.text(f"Warning: {warning}")
    report.figure(
        plot(result),
        f"Height of the tip; distance of the tip from that of {result.reference}; natural "
        "frequencies; time of the second run.",
    )
    caption = (
        "Drag to rotate, scroll to zoom. 'deformation' scales the deflection; 'rigid ghost' shows "
        "the robot with the same joint coordinates and no deflection."
    )
    report.heading("Motion").view(animate(result), caption)
    report.figure(plot(result, "tip"), "Path and coordinates of the tip.")
    report.figure(
        plot(result, "deflection"),
        "Deflection of each elastic link's tip from the tangent at its base.",
    )
    report.figure(plot(result, "energy"), "Energies, and the error of their balance.")
    report.heading("Robot").code(str(robot)).code(str(describe(robot)))
    return report


def _cells(row: "Row") -> list[Any]:
    return [getattr(row, field) for field in COLUMNS.values()]


def _data(robot: "Robot", result: "Comparison", caught: list[str], path: Path) -> dict[str, Any]:
    rows = [
        dict(zip(COLUMNS, _cells(r), strict=True))
        | {"frequencies [Hz]": list(r.frequencies), "status": r.status, "reason": r.reason}
        for r in result.rows
    ]
    return {
        "robot": robot.name,
        "reference": result.reference,
        "rows": rows,
        "refused": result.refused,
        "warnings": caught,
        "report": str(path),
    }
