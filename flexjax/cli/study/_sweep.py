"""Simulate a robot for many values of its parameters, as a file describes.

The file (TOML) names the robot, what varies and what is kept:

    robot = "two-link"
    formulation = "TransferMatrix:segments=4"
    drive = "move.toml"                    # optional
    end = 1.0                              # seconds
    outputs = ["tip[::10]", "residual_vibration:after=0.5"]
    store = "results.zarr"

    [design]
    kind = "latin_hypercube"               # or grid, sobol, saltelli, table
    runs = 1000

    [design.parameters]
    "links.*.material.E" = [6e10, 8e10]    # bounds; the values of a grid
    "payloads.tool.mass" = [0.0, 0.5]

Optional: times (number of output times, 101), dt (0.001), stations (2), sensitivities, chunk,
cluster ("local" or the address of a dask scheduler), design.seed; design.file for a table (CSV).

Examples:

  flexjax sweep sweep.toml --dry-run
  flexjax sweep sweep.toml
  flexjax sweep sweep.toml --resume
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

from flexjax._files import read_toml
from flexjax.cli import _check, _common

if TYPE_CHECKING:
    from flexjax.study.sweep._execute import Work

KINDS = ("grid", "latin_hypercube", "sobol", "saltelli", "table")
FIELDS = (
    "robot formulation drive end times dt outputs stations sensitivities chunk store cluster design"
)
DESIGN_FIELDS = "kind runs seed file parameters"


@dataclasses.dataclass
class Args:
    """Simulate a robot for many values of its parameters."""

    file: conf.Positional[Annotated[str, conf.arg(metavar="SWEEP.TOML")]]
    """path of the file that describes the sweep"""
    resume: bool = False
    """continue the sweep of an existing store"""
    dry_run: bool = False
    """check everything, measure one chunk, and print runs, memory and time"""
    progress: bool = sys.stderr.isatty()
    """show rate, failed runs and remaining time"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    given = _read(args.file)
    folder = Path(args.file).parent
    _check_names(given, folder, args)
    if "jax" not in sys.modules and not given.get("cluster"):
        from flexjax._configure import configure

        configure(
            devices=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        )
    _common.start_jax()
    from flexjax.robot import load_robot

    robot = load_robot(_near(folder, given["robot"]))
    drive, start = _common.make_drive(_near(folder, given.get("drive", "")), (), robot)
    name, formulation = _common.make_formulation(given.get("formulation", ""), robot, drive)
    model, table = formulation.bind(robot), _design(given["design"], folder)
    options = {k: given[k] for k in ("outputs", "dt", "stations", "sensitivities") if k in given}
    options |= {"ts": _times(given), "drive": drive, "start": start}
    if args.dry_run:
        from flexjax.study.sweep._design import read_design
        from flexjax.study.sweep._sweep import make_work

        table = read_design(table)
        return _estimate(f"{robot.name} in {name}", make_work(model, table, **options), given)
    from flexjax.study.sweep import sweep

    _common.log(f"{robot.name} in {name}: tracing, compiling, then {len(table)} parameters vary")
    result = sweep(
        model,
        table,
        **options,
        chunk=given.get("chunk", "auto"),
        store=folder / given["store"],
        cluster=given.get("cluster"),
        progress=args.progress,
    )
    failed = result.failed
    lines = [str(result), f"wrote {folder / given['store']}"]
    lines += [
        f"  run {int(row.run)}: {str(row.reason.values)} at t = {float(row.t_fail):.4g} s"
        for row in (failed.isel(run=k) for k in range(min(10, failed.sizes["run"])))
    ]
    data = {"runs": result.data.sizes["run"], "reasons": result.reasons()}
    data |= {"store": str(folder / given["store"]), "failed": failed["run"].values.tolist()}
    return "\n".join(lines), data, 0


def _estimate(what: str, work: "Work", given: dict[str, Any]):
    """Runs, memory and time of a sweep, from a measured chunk."""
    import jax

    from flexjax.study.sweep._execute import bytes_per_run, choose_sizes, measure

    devices = jax.devices()
    sizes = choose_sizes(given.get("chunk", "auto"), work, devices)
    first, seconds = measure(work, devices, sizes.chunk)
    total = seconds * work.runs / sizes.chunk
    memory = bytes_per_run(work.tasks[0]) * sizes.chunk
    stored = work.columns(0, 1, sizes.chunk, devices)
    disk = work.runs * sum(x.nbytes for x in stored.values())
    text = (
        f"{what}: {work.runs} runs with {len(work.tasks)} program(s), in chunks of {sizes.chunk} "
        f"on {len(devices)} device(s)\n"
        f"  one chunk {seconds:.3g} s ({1e3 * seconds / sizes.chunk:.3g} ms per run), first call "
        f"{first:.3g} s, all {total:.4g} s\n"
        f"  memory of a chunk about {memory / 1e6:.3g} MB, store at most {disk / 1e6:.4g} MB"
    )
    data = {"runs": work.runs, "chunk": sizes.chunk, "seconds": total, "bytes": disk}
    return text, data, 0


def _near(folder: Path, name: str) -> str:
    """A path relative to the sweep's file, or the name of an example."""
    return str(folder / name) if name and (folder / name).exists() else name


def _times(given: dict[str, Any]):
    import numpy as np

    return np.linspace(0.0, given["end"], given.get("times", 101))


def _design(given: dict[str, Any], folder: Path) -> Any:
    from flexjax.study import sweep

    kind = given["kind"]
    if kind == "table":
        return folder / given["file"]
    if kind == "grid":
        return sweep.grid(given["parameters"])
    box = {path: tuple(bounds) for path, bounds in given["parameters"].items()}
    return getattr(sweep, kind)(box, given["runs"], seed=given.get("seed", 0))


def _read(file: str) -> dict[str, Any]:
    """The sweep's file; unknown and missing fields are refused."""
    given = read_toml(file, "sweep file")
    _refuse_fields("", given, FIELDS.split(), ("robot", "end", "store", "design"))
    design = given["design"]
    if not isinstance(design, dict):
        raise ValueError(f"design: {design!r}; expected a table [design] with kind = ...")
    if design.get("kind") not in KINDS:
        raise ValueError(
            f"design.kind: {design.get('kind')!r}; expected one of {', '.join(KINDS)}."
        )
    needed = {"table": ("file",), "grid": ("parameters",)}.get(
        design["kind"], ("parameters", "runs")
    )
    _refuse_fields("design.", design, DESIGN_FIELDS.split(), needed)
    return given


def _refuse_fields(where: str, given: dict, known: Sequence[str], needed: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{where}{name}: unknown; expected some of {', '.join(known)}.")
    for name in needed:
        if name not in given:
            raise ValueError(f"{where}{name}: missing; expected it in the sweep's file.")


def _check_names(given: dict[str, Any], folder: Path, args: Args) -> None:
    """Check what needs no jax."""
    robot = _near(folder, given["robot"])
    names = _check.check_robot(robot)
    _check.check_drive(_near(folder, given.get("drive", "")), (), names)
    _check.check_times(given["end"], given.get("times", 101), given.get("dt", 1e-3))
    _check.check_supported(robot, given.get("formulation", ""))
    for path in given["design"].get("parameters", {}):
        _check.read_free(path, names, "design.parameters")
    store = folder / given["store"]
    if store.exists() and not args.resume and not args.dry_run:
        raise ValueError(
            f"store: {str(store)!r} exists; continue it with --resume, or give another name."
        )
