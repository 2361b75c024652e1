"""Show saved trajectories side by side in a 3D page.

Examples:

  flexjax view run.nc --out arm.html --open
  flexjax view run.nc --drive drive.toml
"""

import dataclasses
from pathlib import Path
from typing import Annotated

from tyro import conf

from flexjax._files import check_trajectory_file, read_toml
from flexjax.cli import _check, _common


@dataclasses.dataclass
class Args:
    """Show saved trajectories in a 3D page."""

    runs: conf.Positional[Annotated[tuple[str, ...], conf.arg(metavar="RUN")]]
    """paths of trajectories that `flexjax simulate --save` or fx.save_trajectory wrote"""
    out: str = "view.html"
    """path of the page (.html) or of a film (.gif .mp4)"""
    drive: str = ""
    """path of the drive file (TOML) of the runs; the page shows its loads as arrows"""
    open: bool = False
    """open the page in the browser"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    if not args.runs:
        raise ValueError("runs: none; expected at least one file, e.g. flexjax view run.nc.")
    _check.check_paths((args.out,), (".html", *_check.FILMS), "out")
    for path in args.runs:
        check_trajectory_file(path)
    if args.drive:
        read_toml(args.drive, "drive file")
    _common.start_jax(0)
    from flexjax.io import load_drive, load_trajectory
    from flexjax.viz import animate

    runs = {}
    for path in args.runs:
        name = Path(path).stem
        runs[name if name not in runs else str(path)] = load_trajectory(path)
    animate(runs, args.out, drive=load_drive(args.drive) if args.drive else None)
    if args.open:
        import webbrowser

        webbrowser.open(Path(args.out).resolve().as_uri())
    return f"wrote {args.out}", {"page": args.out, "runs": list(runs)}, 0
