"""Take a tour: one arm in every formulation, checks of agreement and gradients, and a report.

Example:

  flexjax demo --out out/demo
"""

import dataclasses
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from flexjax.cli import _common
from flexjax.cli.demo import _formulations, _share

# Parts of the tour after the formulations, in order: modules with `show(tour)`, and titles.
PARTS = {
    "flexjax.cli.demo._gradients": "gradients: compiling and checking",
    "flexjax.cli.demo._identify": "identification: a flexible link with a sticking gear",
    "flexjax.cli.demo._move": "move: the same motion, shaped",
}
# The flexible formulation that compiles fastest.
QUICKEST = "TransferMatrix"


@dataclasses.dataclass
class Args:
    """Take a tour and write a report."""

    out: str = "out/demo"
    """folder of the report"""
    quick: bool = False
    """two formulations and a shorter motion"""
    json: bool = False
    """print the result as JSON"""


@dataclasses.dataclass
class Tour:
    """What a part needs, and what it adds: to the report, checks and results."""

    quick: bool
    folder: Path
    report: Any
    robot: Any = None
    drive: Any = None
    ts: Any = None
    checks: list[tuple[bool, str]] = dataclasses.field(default_factory=list)
    data: dict[str, Any] = dataclasses.field(default_factory=dict)

    def check(self, good: bool, text: str) -> None:
        self.checks.append((bool(good), text))
        self.report.verdict(good, text)

    @property
    def duration(self) -> float:
        """Of the motion [s]."""
        return 0.15 if self.quick else 0.45


def begin(quick: bool, folder: str) -> Tour:
    """The tour with an empty report."""
    import numpy as np

    from flexjax.drive import Drive, Motion
    from flexjax.drive.signal import quintic
    from flexjax.robot import load_robot
    from flexjax.viz import Report

    about = (
        "This tour simulates one flexible arm in every formulation that supports it. It checks "
        "that the formulations agree, that gradients through the simulation are correct, and that "
        "parameters are recovered from recorded data. It ends with a shaped motion beside the "
        "usual one. A line that begins with 'passed' is a check that this run has made."
    )
    robot = load_robot(_formulations.ROBOT)
    tour = Tour(quick, Path(folder), Report("flexjax: a tour", about), robot)
    joint = robot.tree_joints[0].name
    tour.drive = Drive(joints={joint: Motion(quintic(0.0, 1.2, tour.duration))})
    tour.ts = np.linspace(0.0, tour.duration * 4 / 3, 41 if quick else 121)
    return tour


def quickest(robot: Any) -> tuple[str, Any]:
    """Name and formulation of the parts that compile other programs."""
    from flexjax.formulation import formulations_for

    supported, _ = formulations_for(robot)
    name = QUICKEST if QUICKEST in supported else next(iter(supported))
    return name, supported[name]


def part(module: str, quick: bool, folder: str) -> Tour:
    """A part of the tour, without what cannot leave its process."""
    tour = begin(quick, folder)
    import_module(module).show(tour)
    return dataclasses.replace(tour, robot=None, drive=None, ts=None)


def run(args: Args):
    begun = time.perf_counter()
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    _common.log("starting (importing jax takes a few seconds)")
    names = _formulations.names(args.quick)
    given = (args.quick, args.out)
    jobs = [
        _share.Job(f"{name}: compiling and simulating", _formulations.simulated, (name, *given))
        for name in names
    ]
    jobs += [_share.Job(title, part, (module, *given)) for module, title in PARTS.items()]
    found = _share.results(jobs)
    tour = begin(*given)
    _formulations.show(tour, dict(zip(names, found, strict=False)))
    for other in found[len(names) :]:
        tour.report.parts += other.report.parts
        tour.checks += other.checks
        tour.data |= other.data
    for good, text in tour.checks:
        _common.log(f"  {'passed' if good else 'NOT passed'}: {text}")
    seconds = time.perf_counter() - begun
    tour.report.text(f"The tour took {seconds:.0f} s, compilation included.")
    path = tour.report.save(folder / "report.html")
    failed = [text for good, text in tour.checks if not good]
    lines = [
        f"{len(tour.checks) - len(failed)} of {len(tour.checks)} checks passed in {seconds:.0f} s"
    ]
    lines += [f"NOT passed: {text}" for text in failed]
    lines.append(f"report: {path.resolve()}")
    checks = [{"passed": good, "check": text} for good, text in tour.checks]
    return (
        "\n".join(lines),
        {"report": str(path), "seconds": seconds, "checks": checks, **tour.data},
        1 if failed else 0,
    )
