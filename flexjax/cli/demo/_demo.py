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

# Parts of the tour, in order: each is a module with `show(tour)`.
PARTS = (
    "flexjax.cli.demo._formulations",
    "flexjax.cli.demo._gradients",
    "flexjax.cli.demo._identify",
    "flexjax.cli.demo._move",
)


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
    """State shared by the parts: the arm, the report, and the checks, results and runs so far."""

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
        _common.log(f"  {'passed' if good else 'NOT passed'}: {text}")


def run(args: Args):
    begin = time.perf_counter()
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    _common.log("starting (importing jax takes a few seconds)")
    _common.start_jax(0)
    from flexjax.viz import Report

    about = (
        "This tour simulates one flexible arm in every formulation that supports it. It checks "
        "that the formulations agree, that gradients through the simulation are correct, and that "
        "parameters are recovered from recorded data. It ends with a shaped motion beside the "
        "usual one. A line that begins with 'passed' is a check that this run has made."
    )
    tour = Tour(args.quick, folder, Report("flexjax: a tour", about))
    with _common.report_phases():
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
