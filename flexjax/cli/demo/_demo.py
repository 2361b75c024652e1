"""A tour: one arm in every formulation that can hold it, whether they agree, whether the gradients are right, and a report to open. Example:

flexjax demo --out out/demo
"""

import dataclasses
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from flexjax.cli import _common

# Parts of the tour, in order: a module with `show(tour)`. A part joins by one line.
PARTS = (
    "flexjax.cli.demo._formulations",
    "flexjax.cli.demo._gradients",
    "flexjax.cli.demo._identify",
)


@dataclasses.dataclass
class Args:
    """A tour that ends with a report."""

    out: str = "out/demo"
    """folder for the report"""
    quick: bool = False
    """only two formulations and a shorter motion"""
    json: bool = False
    """print the result as JSON"""


@dataclasses.dataclass
class Tour:
    """What the parts share: they read the arm, add to the report, and leave checks, numbers and runs behind."""

    quick: bool
    folder: Path
    report: Any
    robot: Any = None
    drive: Any = None
    runs: dict[str, Any] = dataclasses.field(default_factory=dict)
    checks: list[tuple[bool, str]] = dataclasses.field(default_factory=list)
    data: dict[str, Any] = dataclasses.field(default_factory=dict)

    def check(self, good: bool, text: str) -> None:
        self.checks.append((bool(good), text))
        self.report.verdict(good, text)
        _common.say(f"  {'passed' if good else 'NOT passed'}: {text}")


def run(args: Args):
    begin = time.perf_counter()
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    _common.say("starting (importing jax takes a few seconds)")
    _common.start()
    from flexjax.viz import Report

    about = (
        "One flexible arm in every formulation that can hold it: whether they agree, whether gradients through the simulation are right, and "
        "whether numbers of an arm "
        "are found again from a record. A line that begins with 'passed' is a check that this run has made."
    )
    tour = Tour(args.quick, folder, Report("flexjax: a tour", about))
    for part in PARTS:
        import_module(part).show(tour)
    seconds = time.perf_counter() - begin
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
