"""Run the experiments of a paper: compute, check its claims and draw its figures.

The experiments are part of a clone of the repository.

Examples:

  flexjax reproduce
  flexjax reproduce 002 --quick
  flexjax reproduce all --quick
"""

import dataclasses
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

from tyro import conf

# A line that reports a claim that is not confirmed.
DIFFERS = r"^.*(?:\bDIFFERS\b|DOES NOT HOLD|^NOT |^FAIL\b).*$"


@dataclasses.dataclass
class Args:
    """Run the experiments of one paper, or of all papers."""

    paper: conf.Positional[Annotated[str, conf.arg(metavar="PAPER")]] = ""
    """number or name of an experiment, or "all"; by default the experiments are listed"""
    quick: bool = False
    """shorter and coarser runs, where the experiment has them"""
    folder: str = ""
    """folder of the experiments; by default ./experiments, or the folder beside the package"""
    index: str = ""
    """path of the page that "all" writes; by default index.html in the folder"""
    json: bool = False
    """print the result as JSON"""


@dataclasses.dataclass
class Outcome:
    """Result of one experiment: exit code of each script, printed text, figures, time."""

    name: str
    title: str
    codes: dict[str, int]
    printed: str
    figures: list[Path]
    seconds: float

    @property
    def failed(self) -> str:
        return next((script for script, code in self.codes.items() if code), "")

    @property
    def verdicts(self) -> tuple[int, int]:
        """Number of confirmed and unconfirmed claims; an experiment prints one line per claim."""
        bad = re.findall(DIFFERS, self.printed, re.M)
        good = re.findall(r"^(?:ok\b.*|.*\bagrees\b.*|.*  holds)$", self.printed, re.M)
        return len(good), len(bad)


def run(args: Args):
    folder = _folder(args.folder)
    known = sorted(path.parent.name for path in folder.glob("*/run.py"))
    if not args.paper:
        lines = [f"{name}  {_title(folder / name)}" for name in known]
        return "\n".join(lines) or "no experiments", {"experiments": known}, 0
    if args.paper == "all":
        return _all(folder, known, args)
    found = [
        name
        for name in known
        if name == args.paper or name.split("_")[0] == args.paper or args.paper in name
    ]
    if len(found) != 1:
        raise ValueError(
            f"paper: {args.paper!r}; expected one of {', '.join(known) or 'none'}, or all."
        )
    outcome = _run(folder / found[0], args)
    place = folder / found[0] / "results"
    text = (
        f"{found[0]}: {outcome.failed} failed"
        if outcome.failed
        else f"{found[0]}: results in {place}"
    )
    return text, {"experiment": found[0], "codes": outcome.codes}, 1 if outcome.failed else 0


def _run(here: Path, args: Args) -> Outcome:
    began, codes, printed = time.time(), {}, []
    for script in ("run.py", "plot.py"):
        if not (here / script).exists():
            continue
        command = [
            sys.executable,
            "-u",
            str(here / script),
            *(["--quick"] if args.quick and script == "run.py" else []),
        ]
        with subprocess.Popen(
            command,
            cwd=here.parent.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None  # it is a pipe
            for line in process.stdout:
                printed.append(line)
                # With --json, stdout is for the result.
                print(line, end="", file=sys.stderr if args.json else sys.stdout, flush=True)
        codes[script] = process.returncode
        # A run with an unconfirmed claim also exits with 1; its results can still be plotted.
        if codes[script] and not any((here / "results").glob("*")):
            break
    figures = sorted(p for p in (here / "results").glob("*.png") if p.stat().st_mtime >= began - 1)
    return Outcome(here.name, _title(here), codes, "".join(printed), figures, time.time() - began)


def _all(folder: Path, known: list[str], args: Args):
    path, outcomes = Path(args.index) if args.index else folder / "index.html", []
    for i, name in enumerate(known):
        print(f"== {name} ({i + 1} of {len(known)})", file=sys.stderr, flush=True)
        outcomes.append(_run(folder / name, args))
        # Saved after each experiment, so that an interrupted run leaves a page.
        _index(folder, outcomes, known[i + 1 :], args.quick).save(path)
    failed = [o.name for o in outcomes if o.failed]
    lines = [
        f"{o.name}: {o.verdicts[0]} claims confirmed, {o.verdicts[1]} not, {o.seconds:.0f} s"
        + (f", {o.failed} FAILED" if o.failed else "")
        for o in outcomes
    ]
    data = {
        "experiments": [
            {
                "name": o.name,
                "holds": o.verdicts[0],
                "differs": o.verdicts[1],
                "codes": o.codes,
                "seconds": o.seconds,
            }
            for o in outcomes
        ],
        "index": str(path),
    }
    return "\n".join([*lines, f"index: {path.resolve()}"]), data, 1 if failed else 0


def _index(folder: Path, outcomes: list[Outcome], waiting: list[str], quick: bool):
    """The page of the experiments that have run so far."""
    from flexjax.viz import Report

    form = "quick form" if quick else "full form"
    report = Report(
        "flexjax: experiments of the papers",
        f"Every experiment in its {form}: claims and figures of this run, and their discussion.",
    )
    head = ["experiment", "confirmed claims", "unconfirmed claims", "scripts", "time [s]"]
    rows = [
        [
            o.title or o.name,
            *o.verdicts,
            f"{o.failed} exited with code {o.codes[o.failed]}" if o.failed else "finished",
            round(o.seconds),
        ]
        for o in outcomes
    ]
    report.heading("Summary").table(head, rows)
    if waiting:
        report.text(f"Not run yet: {', '.join(waiting)}.")
    report.contents()
    for outcome in outcomes:
        good, bad = outcome.verdicts
        report.heading(outcome.title or outcome.name)
        text = f"{outcome.name}: {good} claims confirmed, {bad} not"
        if outcome.failed:
            text += f"; {outcome.failed} exited with code {outcome.codes[outcome.failed]}"
        report.verdict(not bad and not outcome.failed, text)
        if bad:
            report.code("\n".join(re.findall(DIFFERS, outcome.printed, re.M)))
        report.folded("Output of the scripts", outcome.printed.strip() or "no output")
        for path in outcome.figures:
            report.image(path.read_bytes(), f"{outcome.name}/results/{path.name}")
        readme = folder / outcome.name / "README.md"
        if readme.exists():
            # Its title is the heading above.
            report.markdown(readme.read_text(encoding="utf-8").partition("\n")[2])
    return report


def _folder(given: str) -> Path:
    places = (
        [Path(given)]
        if given
        else [Path("experiments"), Path(__file__).resolve().parents[3] / "experiments"]
    )
    for place in places:
        if place.is_dir():
            return place.resolve()
    raise ValueError(
        f"folder: {str(places[-1])!r}; expected an existing folder. "
        "The experiments are part of a clone of the repository."
    )


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    return (
        readme.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") if readme.exists() else ""
    )
