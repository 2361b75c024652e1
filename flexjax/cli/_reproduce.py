"""Run the experiments of a paper: compute, print the table of its claims, draw the figures. Needs a clone of the repository. Examples:

flexjax reproduce
flexjax reproduce 002 --quick
"""

import dataclasses
import subprocess
import sys
from pathlib import Path

from tyro import conf


@dataclasses.dataclass
class Args:
    """Run the experiments of one of the papers."""

    paper: conf.Positional[str] = ""
    """number or name of the experiment; without it they are listed"""
    quick: bool = False
    """less than a minute, coarser"""
    folder: str = ""
    """where the experiments are; default: ./experiments, else beside the package"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    folder = _folder(args.folder)
    known = sorted(path.parent.name for path in folder.glob("*/run.py"))
    if not args.paper:
        lines = [f"{name}  {_title(folder / name)}" for name in known]
        return "\n".join(lines) or "no experiments", {"experiments": known}, 0
    found = [name for name in known if name == args.paper or name.split("_")[0] == args.paper or args.paper in name]
    if len(found) != 1:
        raise ValueError(f"paper: {args.paper!r}; expected one of {', '.join(known) or 'none'}.")
    here = folder / found[0]
    codes = {}
    for script in ("run.py", "plot.py"):
        if (here / script).exists():
            command = [sys.executable, str(here / script), *(["--quick"] if args.quick and script == "run.py" else [])]
            # With --json, stdout is for the result alone.
            codes[script] = subprocess.run(
                command, cwd=folder.parent, stdout=sys.stderr if args.json else None, check=False
            ).returncode
            if codes[script]:
                break
    failed = [script for script, code in codes.items() if code]
    text = f"{found[0]}: {failed[0]} failed" if failed else f"{found[0]}: results in {here / 'results'}"
    return text, {"experiment": found[0], "codes": codes}, 1 if failed else 0


def _folder(given: str) -> Path:
    places = [Path(given)] if given else [Path("experiments"), Path(__file__).resolve().parents[2] / "experiments"]
    for place in places:
        if place.is_dir():
            return place.resolve()
    raise ValueError(
        f"folder: {str(places[-1])!r} does not exist; the experiments come with a clone of the repository."
    )


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    return readme.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") if readme.exists() else ""
