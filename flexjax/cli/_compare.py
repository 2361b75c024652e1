"""Simulate a robot in every formulation that can hold it, and write a report with figures and the 3D page. Example:

flexjax compare two-link --motion shoulder=quintic:0:1:0.5 --end 0.8 --out compare.html
"""

import dataclasses
from typing import Annotated

from tyro import conf

from flexjax.cli import _common


@dataclasses.dataclass
class Args:
    """Compare formulations on one robot."""

    robot: _common.RobotName
    """a robot file, or the name of an example"""
    drive: str = ""
    """a drive file (TOML)"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=SIGNAL:NUMBERS")] = ()
    """motions of joints, e.g. shoulder=quintic:0:1:2 (start, end, duration)"""
    formulations: tuple[str, ...] = ()
    """only these, with options after a colon, e.g. FiniteElement:elements=8; default: all that can hold the robot"""
    end: float = 1.0
    """end of the run [s]"""
    outputs: int = 101
    """number of output times, both ends included"""
    dt: float = 1e-3
    """largest step [s]"""
    out: str = "compare.html"
    """the report"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    _common.check_paths((args.out,), (".html",), "out")
    _common.start()
    from flexjax.robot import describe, load_robot
    from flexjax.simulate import compare
    from flexjax.viz import Report, animate, plot

    ts = _common.output_times(args.end, args.outputs, args.dt)
    robot = load_robot(args.robot)
    drive = _common.make_drive(args.drive, args.motion, robot)
    chosen = dict(_common.make_formulation(text, robot) for text in args.formulations) or None
    with _common.warnings_kept() as doubts:
        tell = lambda name: _common.say(f"{name}: compiling, then two runs of {args.end:g} s")
        result = compare(robot, drive, ts, dt=args.dt, formulations=chosen, progress=tell)
    head = [
        "formulation",
        "unknowns",
        "tip [m]",
        "joints [rad, m]",
        "energy [J]",
        "balance",
        "first [s]",
        "again [s]",
        "frequencies [Hz]",
    ]
    rows = [
        [
            r.name,
            r.unknowns,
            r.tip,
            r.joints,
            r.energy,
            r.balance,
            r.first_seconds,
            r.run_seconds,
            ", ".join(f"{f:.4g}" for f in r.frequencies),
        ]
        for r in result.rows
    ]
    which = (
        "in the formulations that were asked for"
        if chosen
        else "in every formulation that can hold it"
    )
    report = Report(
        f"{robot.name} in {len(rows)} formulation{'s' * (len(rows) != 1)}",
        f"The same robot and drive over {args.end:g} s, {which}.",
    )
    report.heading("Agreement, frequencies, cost").table(head, rows)
    report.text(
        f"Tip, joints and energy: the largest difference from {result.reference}, the flexible one with most unknowns, at any of "
        f"{args.outputs} output times. Balance: how far energy less "
        "work strays, of the largest energy. First: the first run in seconds, compilation included; again: a second one. Frequencies: about "
        "the robot's home, every motor locked."
    )
    for name, why in result.refused.items():
        report.text(f"{name} cannot hold this robot: {'; '.join(why)}")
    for doubt in doubts:
        report.text(f"Warning: {doubt}")
    report.figure(
        plot(result),
        f"Height of the tip; distance of the tips from {result.reference}; natural frequencies; time of a second run.",
    )
    caption = "Drag to turn, scroll to zoom; 'deformation' magnifies bending, 'rigid ghost' shows the same joint angles without it."
    report.heading("Motion").view(animate(result), caption)
    report.figure(plot(result, "tip"), "Path of the tip, and its coordinates.")
    report.figure(
        plot(result, "deflection"),
        "Deflection of each elastic link's tip from the tangent at its base.",
    )
    report.figure(plot(result, "energy"), "Energies, and how far their balance strays.")
    report.heading("The robot").code(str(robot)).code(str(describe(robot)))
    path = report.save(args.out)
    data = {
        "robot": robot.name,
        "reference": result.reference,
        "rows": [
            dict(zip(head[:8], row[:8], strict=True)) | {"frequencies [Hz]": list(r.frequencies)}
            for row, r in zip(rows, result.rows, strict=True)
        ],
        "refused": result.refused,
        "warnings": doubts,
        "report": str(path),
    }
    return f"{result}\nreport: {path.resolve()}", data, 0
