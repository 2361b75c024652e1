"""Draw figures of saved trajectories, one file per figure.

Figures: joints, tip, deflection, strain, spectrum, energy, difference (of several runs).

Example:

  flexjax plot run.nc tip joints --out figs
"""

import dataclasses
from pathlib import Path
from typing import Annotated

from tyro import conf

from flexjax._files import check_trajectory_file
from flexjax.cli import _check, _common


@dataclasses.dataclass
class Args:
    """Draw figures of saved trajectories."""

    words: conf.Positional[Annotated[tuple[str, ...], conf.arg(metavar="RUN|FIGURE")]]
    """paths of trajectories (.nc .zarr), then names of figures; by default joints and tip"""
    out: str = "."
    """folder of the figures; it is created if it does not exist"""
    format: str = "png"
    """format of the files: png, pdf or svg"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    paths = [word for word in args.words if Path(word).suffix]
    figures = [word for word in args.words if word not in paths] or ["joints", "tip"]
    _check_words(args, paths, figures)
    _common.start_jax(0)
    from flexjax._files import write_whole
    from flexjax.io import load_trajectory
    from flexjax.viz import plot

    runs = {str(Path(path).with_suffix("")): load_trajectory(path) for path in paths}
    out = Path(args.out)
    drawn = {name: plot(runs, name) for name in figures}
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in drawn.items():
        path = out / f"{name}.{args.format}"
        write_whole(path, lambda part, figure=figure: figure.savefig(part, format=args.format))
        written.append(str(path))
    text = "\n".join(f"wrote {path}" for path in written)
    return text, {"runs": paths, "files": written}, 0


def _check_words(args: Args, paths: list[str], figures: list[str]) -> None:
    """Refuse before jax is imported what can be refused."""
    if not paths:
        given = " ".join(args.words)
        raise ValueError(f"runs: {given!r}; expected a trajectory, e.g. flexjax plot run.nc tip.")
    for path in paths:
        check_trajectory_file(path)
    for name in figures:
        if name not in _check.RUN_FIGURES:
            listed = ", ".join(_check.RUN_FIGURES)
            raise ValueError(f"figure: {name!r}; expected one of {listed}.")
    if "difference" in figures and len(set(paths)) < 2:
        raise ValueError("figure: 'difference'; expected at least two trajectories.")
    if f".{args.format}" not in _check.FIGURES:
        raise ValueError(f"format: {args.format!r}; expected one of png, pdf, svg.")
    if Path(args.out).exists() and not Path(args.out).is_dir():
        raise ValueError(f"out: {args.out!r} is a file; expected a folder.")
