r"""Estimate robot parameters from measured data, with confidence intervals.

A data file is CSV (or other text), MAT, NPZ or netCDF with a time column.

The columns motion.JOINT, effort.JOINT and current.JOINT drive the model.

Every other column is the reading of the sensor with its name.

The options --motion, --effort, --current and --sensor assign columns with other names.

The unit of a column is in its header, e.g. "tip [mm]", or in --unit.

Examples:

  flexjax identify bench-arm --free 'links.*.material.E' --formulation TransferMatrix:segments=16 \
    --dt 1.25e-3 --report out.html
  flexjax identify arm.toml run.csv --free links.link.material.E=5e10:9e10 payloads.tool.mass \
    --validate run2.csv --formulation TransferMatrix:segments=16 --dt 1.25e-3 --save new.toml
  flexjax identify arm.toml other.csv --time t_s --current shoulder=i --sensor shoulder-angle=th \
    --unit i=mA th=deg --free payloads.tool.mass --formulation TransferMatrix:segments=16 \
    --dt 1.25e-3
  flexjax identify li-zhang-single-link-printed --frequencies 6.05 --free links.link.material.E \
    --formulation TransferMatrix --report E.html
"""

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated, Any

from tyro import conf

from flexjax._registry import dataset_names
from flexjax.cli import _check, _common

if TYPE_CHECKING:
    from flexjax.robot import Robot
    from flexjax.study.identify import Identification
    from flexjax.study.identify.records._data import Data


@dataclasses.dataclass
class Args:
    """Estimate robot parameters from measured data."""

    robot: _common.RobotName
    """path of a robot file, name of an example, or name of a shipped data set"""
    data: conf.Positional[Annotated[tuple[str, ...], conf.arg(metavar="DATA")]] = ()
    """paths of data files; a shipped data set includes its own"""
    free: Annotated[tuple[str, ...], conf.arg(metavar="PATH[=LOWER:UPPER]")] = ()
    """free parameters: paths as listed by `flexjax describe ROBOT --paths`, with optional bounds"""
    validate: tuple[str, ...] = ()
    """paths of data files for validation, which are predicted and not fitted"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """columns of recorded joint coordinates, which the model follows exactly"""
    effort: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """columns of recorded joint torques or forces"""
    current: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """columns of recorded motor currents; the motor needs a torque_constant"""
    drive: str = ""
    """path of a drive file (TOML) for joints without a column: motions, controllers, loads"""
    sensor: Annotated[tuple[str, ...], conf.arg(metavar="SENSOR=COLUMN")] = ()
    """columns of recorded sensor readings"""
    unit: Annotated[tuple[str, ...], conf.arg(metavar="COLUMN=UNIT")] = ()
    """units of columns without a unit in their header"""
    time: str = ""
    """name of the time column, if it is not time, t or ts"""
    rate: float = 0.0
    """sampling rate of files without a time column [Hz]"""
    smooth: float = 0.0
    """corner frequency of a zero-phase low-pass filter on the recorded inputs [Hz]"""
    resample: float = 0.0
    """step of a uniform time grid for resampling [s]"""
    frequencies: tuple[float, ...] = ()
    """measured natural frequencies with locked motors, in ascending order [Hz]"""
    band: tuple[float, ...] = ()
    """fit spectra between these two frequencies [Hz] instead of samples"""
    formulation: str = ""
    """name:options, e.g. FiniteElement:elements=8; by default the first that supports the robot"""
    dt: float = 1e-3
    """largest time step [s]"""
    starts: int = 1
    """number of initial points; the best one is refined"""
    checkpoint: str = ""
    """file (.npz) that stores the best estimate so far and from which a search resumes"""
    report: str = ""
    """path of a report with tables and figures (.html)"""
    save: str = ""
    """path of a robot file with the estimates, and their uncertainty as comments (.toml)"""
    progress: bool = sys.stderr.isatty()
    """show phases (tracing, compiling, running) and a progress bar"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    for field, suffix in (("report", ".html"), ("save", ".toml")):
        _check.check_paths(tuple(filter(None, [getattr(args, field)])), (suffix,), field)
    if not args.free:
        raise ValueError(
            "free: none; expected at least one free parameter, e.g. --free 'links.*.material.E'. "
            "`flexjax describe ROBOT --paths` lists the parameters of a robot."
        )
    if args.band and len(args.band) != 2:
        raise ValueError(f"band: {args.band}; expected two frequencies, e.g. --band 0.5 20.")
    free_parameters = _check_names(args)
    _common.start_jax()
    from flexjax.study.free import Free
    from flexjax.study.identify import Experiment, identify

    robot, data, checks = _load(args)
    name, formulation = _common.make_formulation(args.formulation, robot)
    inputs = {
        joint for d in data if isinstance(d, Experiment) for joint in d.full_drive(robot).joints
    }
    free = [j.name for j in robot.tree_joints if j.dofs and j.name not in inputs]
    if free and any(isinstance(d, Experiment) for d in data):
        _common.log(f"joints without a column and without --drive are free: {', '.join(free)}")
    _common.log(
        f"{robot.name} in {name}: tracing, compiling, then estimating {', '.join(args.free)} from "
        f"{len(data)} data set{'s' * (len(data) != 1)}"
    )
    result = identify(
        formulation.bind(robot),
        data,
        [Free(path, bounds=bounds) if bounds else Free(path) for path, bounds in free_parameters],
        validation=checks,
        dt=args.dt,
        starts=args.starts,
        band=(args.band[0], args.band[1]) if args.band else None,
        checkpoint=args.checkpoint or None,
        progress=args.progress,
    )
    lines, written = [str(result)], []
    if args.report:
        from flexjax.viz import identification_report

        written.append(str(identification_report(result).save(args.report)))
    if args.save:
        written.append(str(result.save(args.save)))
    data_out = _result_data(robot.name, name, result) | {"files": written}
    return "\n".join([*lines, *(f"wrote {path}" for path in written)]), data_out, 0


def _load(args: Args) -> "tuple[Robot, list[Data], list[Data]]":
    """The robot, the data to fit and those for validation."""
    from flexjax.robot import load_robot
    from flexjax.study.identify import Modal, datasets, load_dataset

    options = _read_options(args)
    data: list[Data] = [_read(p, args, options) for p in args.data]
    checks: list[Data] = [_read(p, args, options) for p in args.validate]
    if args.robot in datasets():
        shipped = load_dataset(args.robot)
        robot = shipped.robot
        data, checks = data or [shipped.training], checks or [shipped.validation]
    else:
        robot = load_robot(args.robot)
    if args.frequencies:
        data.append(Modal(list(args.frequencies)))
    return robot, data, checks


def _result_data(robot: str, formulation: str, result: "Identification") -> dict[str, Any]:
    columns = (
        result.names,
        result.units,
        result.start,
        result.values,
        result.standard_errors,
        result.intervals(),
    )
    estimates = {
        name: {
            "unit": unit,
            "start": float(start),
            "estimate": float(value),
            "standard_error": float(error),
            "interval": [float(low), float(high)],
        }
        for name, unit, start, value, error, (low, high) in zip(*columns, strict=True)
    }
    return {
        "robot": robot,
        "formulation": formulation,
        "status": result.status,
        "estimates": estimates,
        "correlation": result.correlation.tolist(),
        "not_determined": result.unseen,
        "residuals_white": result.white,
        "fit": {c.data.name: c.fits for c in result.training},
        "validation": {c.data.name: c.fits for c in result.validation},
    }


def _check_names(args: Args) -> list[tuple[str, tuple[float | None, float | None] | None]]:
    """Check what needs no jax; returns path and bounds of each free parameter."""
    _check.check_step(args.dt)
    _check.check_numbers("frequencies", args.frequencies, "positive numbers in Hz")
    _check.check_numbers("band", args.band, "positive numbers in Hz")
    _check.check_numbers("starts", (args.starts,), "at least 1 initial point")
    for field, expected in (("rate", "Hz"), ("smooth", "Hz"), ("resample", "s")):
        value = getattr(args, field)
        _check.check_numbers(field, (value,) if value else (), f"a positive number in {expected}")
    names = _check.check_robot(args.robot)
    if not (args.data or args.frequencies or args.robot in dataset_names()):
        raise ValueError(
            "data: none; expected data files or --frequencies "
            f"(shipped data sets: {', '.join(dataset_names())})."
        )
    _check.check_data((*args.data, *args.validate))
    inputs = {"motions": args.motion, "efforts": args.effort, "currents": args.current}
    _check.check_columns(inputs, args.sensor, names)
    _check.read_pairs("unit", args.unit)
    _check.check_drive(args.drive, (), names)
    _check.check_supported(args.robot, args.formulation)
    return [_check.read_free(text, names) for text in args.free]


def _read_options(args: Args) -> dict:
    options: dict = {"units": _check.read_pairs("unit", args.unit)}
    for field, texts in (
        ("motions", args.motion),
        ("efforts", args.effort),
        ("currents", args.current),
        ("sensors", args.sensor),
    ):
        if texts:
            options[field] = _check.read_pairs(field, texts)
    if args.drive:
        from flexjax.io import load_run

        options["drive"], start = load_run(args.drive)
        if start is not None:
            options["start"] = start
    if args.time:
        options["time"] = args.time
    if args.rate:
        options["rate"] = args.rate
    return options


def _read(path: str, args: Args, options: dict):
    from flexjax.study.identify import Experiment

    found = Experiment.read(path, **options)
    if args.resample:
        found = found.resample(args.resample)
    return found.smooth(args.smooth) if args.smooth else found
