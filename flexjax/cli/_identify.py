"""Numbers of a robot from measured data, with their uncertainty.

A data file is CSV (or other text), MAT, NPZ or netCDF with a time column. Columns called motion.JOINT, effort.JOINT, current.JOINT drive the model, every
other one is the sensor of its name; --motion, --effort, --current and --sensor map other names. Units stand in the header ("tip [mm]") or in --unit.

  flexjax identify bench-arm --free 'joints.*.stiffness' joints.shoulder.damping payloads.tool.mass --dt 2.5e-3 --report out.html
  flexjax identify arm.toml run.csv --free joints.shoulder.stiffness=20:80 payloads.tool.mass --validate run2.csv --dt 2.5e-3 --save calibrated.toml
  flexjax identify arm.toml other.csv --time t_s --current shoulder=i --sensor link-angle=th --unit i=mA th=deg --free payloads.tool.mass --dt 2.5e-3
  flexjax identify li-zhang-single-link-printed --frequencies 6.05 --free links.link.material.E --formulation TransferMatrix --report E.html
"""

import dataclasses
import sys
from typing import Annotated

from tyro import conf

from flexjax.cli import _common


@dataclasses.dataclass
class Args:
    """Identify numbers of a robot from data."""

    robot: _common.RobotName
    """a robot file, the name of an example, or of a shipped data set"""
    data: conf.Positional[Annotated[tuple[str, ...], conf.arg(metavar="DATA")]] = ()
    """data files; a shipped data set brings its own"""
    free: Annotated[tuple[str, ...], conf.arg(metavar="PATH[=LOWER:UPPER]")] = ()
    """what is sought: paths as `flexjax describe ROBOT --paths` lists them, with bounds after an equals sign"""
    validate: tuple[str, ...] = ()
    """data files that are only predicted"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """recorded coordinates that joints follow"""
    effort: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """recorded torques or forces"""
    current: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=COLUMN")] = ()
    """recorded motor currents; the joint needs a torque_constant"""
    drive: str = ""
    """a drive file (TOML) for what no column drives: held joints, controllers, loads; other joints are free"""
    sensor: Annotated[tuple[str, ...], conf.arg(metavar="SENSOR=COLUMN")] = ()
    """recorded readings"""
    unit: Annotated[tuple[str, ...], conf.arg(metavar="COLUMN=UNIT")] = ()
    """units of columns whose header has none"""
    time: str = ""
    """the time column, if not called time, t or ts"""
    rate: float = 0.0
    """sampling rate [Hz] of files without a time column"""
    smooth: float = 0.0
    """low-pass of the recorded inputs, forwards and backwards [Hz]"""
    resample: float = 0.0
    """step of an even time grid [s]"""
    frequencies: tuple[float, ...] = ()
    """measured natural frequencies [Hz], the lowest first, motors locked"""
    band: tuple[float, ...] = ()
    """compare spectra between these two frequencies [Hz] instead of samples"""
    formulation: str = ""
    """name, and options after a colon, e.g. FiniteElement:elements=8; default: the first that can hold the robot"""
    dt: float = 1e-3
    """largest step [s]"""
    starts: int = 1
    """searches from that many points; the best goes on"""
    checkpoint: str = ""
    """keep the best so far in this file (.npz), and go on from it"""
    report: str = ""
    """a page with tables and figures (.html)"""
    save: str = ""
    """a robot file with the estimates (.toml)"""
    progress: bool = sys.stderr.isatty()
    """show a bar"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    for field, suffix in (("report", ".html"), ("save", ".toml")):
        _common.check_paths(tuple(filter(None, [getattr(args, field)])), (suffix,), field)
    if not args.free:
        raise ValueError(
            "free: nothing is sought; expected e.g. --free 'links.*.material.E'. `flexjax describe ROBOT --paths` lists the numbers of a robot."
        )
    if args.band and len(args.band) != 2:
        raise ValueError(f"band: {args.band}; expected two frequencies, e.g. --band 0.5 20.")
    _common.start()
    from flexjax.robot import load_robot, save_robot
    from flexjax.study.identify import Experiment, Modal, datasets, identify, load_dataset

    options = _read_options(args)
    data, checks = (
        [_read(p, args, options) for p in args.data],
        [_read(p, args, options) for p in args.validate],
    )
    if args.robot in datasets():
        shipped = load_dataset(args.robot)
        robot = shipped.robot
        data, checks = data or [shipped.training], checks or [shipped.validation]
    else:
        robot = load_robot(args.robot)
    if args.frequencies:
        data.append(Modal(list(args.frequencies)))
    if not data:
        raise ValueError(
            f"data: none; expected data files or --frequencies (shipped data sets: {', '.join(datasets())})."
        )
    name, formulation = _common.make_formulation(args.formulation, robot)
    inputs = {
        joint for d in data if isinstance(d, Experiment) for joint in d.full_drive(robot).joints
    }
    free = [j.name for j in robot.tree_joints if j.dofs and j.name not in inputs]
    if free and any(isinstance(d, Experiment) for d in data):
        _common.say(f"no column and no --drive moves or holds {', '.join(free)}: free in the model")
    _common.say(
        f"{robot.name} in {name}: seeking {', '.join(args.free)} in {len(data)} set{'s' * (len(data) != 1)} of data (compiling first)"
    )
    result = identify(
        formulation.bind(robot), data, [_free(text) for text in args.free], validation=checks, dt=args.dt, starts=args.starts,
        band=tuple(args.band) or None, checkpoint=args.checkpoint or None, progress=args.progress,
    )  # fmt: skip
    lines, written = [str(result)], []
    if args.report:
        from flexjax.viz import identification_report

        written.append(str(identification_report(result).save(args.report)))
    if args.save:
        written.append(str(save_robot(result.robot, args.save)))
    low_high = result.intervals()
    numbers = {
        n: {
            "unit": u,
            "start": float(a),
            "estimate": float(v),
            "standard_error": float(se),
            "interval": [float(lo), float(hi)],
        }
        for n, u, a, v, se, (lo, hi) in zip(
            result.names,
            result.units,
            result.start,
            result.values,
            result.standard_errors,
            low_high,
            strict=True,
        )
    }
    data_out = {
        "robot": robot.name,
        "formulation": name,
        "status": result.status,
        "estimates": numbers,
        "correlation": result.correlation.tolist(),
        "not_determined": result.unseen,
        "residuals_white": result.white,
        "fit": {c.data.name: c.fits for c in result.training},
        "validation": {c.data.name: c.fits for c in result.validation},
        "files": written,
    }
    return "\n".join([*lines, *(f"wrote {path}" for path in written)]), data_out, 0


def _pairs(field: str, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{field}: {text!r}; expected NAME=COLUMN.")
        found[name] = value
    return found


def _free(text: str):
    from flexjax.study.free import Free

    path, equals, bounds = text.partition("=")
    if not equals:
        return Free(path)
    low, colon, high = bounds.partition(":")
    try:
        return Free(path, bounds=(float(low) if low else None, float(high) if high else None))
    except ValueError:
        raise ValueError(
            f"free: {text!r}; expected PATH=LOWER:UPPER, e.g. links.link.material.E=50e9:90e9."
        ) from None


def _read_options(args: Args) -> dict:
    options: dict = {"units": _pairs("unit", args.unit)}
    for field, texts in (
        ("motions", args.motion),
        ("efforts", args.effort),
        ("currents", args.current),
        ("sensors", args.sensor),
    ):
        if texts:
            options[field] = _pairs(field, texts)
    if args.drive:
        from flexjax.io import load_drive

        options["drive"] = load_drive(args.drive)
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
