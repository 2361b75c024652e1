"""Simulate a robot.

A drive moves it: `--drive drive.toml`, or `--motion JOINT=SIGNAL:NUMBERS` for each joint. A joint that is not named is free.
Signals: constant, quintic, step_acceleration, bang_bang, piecewise_constant, trapezoid, cosine, cycloid, spin_up, spline, recorded, step, ramp, sine,
polynomial, chirp; with too few numbers each says which it takes. Examples:

  flexjax simulate two-link --motion shoulder=quintic:0:1:0.5 --end 1 --save run.nc arm.html
  flexjax simulate metal-link --formulation ScrewSynthesis:modes=3 --end 0.5 --save tip.png --json
"""

import dataclasses
import sys
from typing import Annotated

from tyro import conf

from flexjax.cli import _common


@dataclasses.dataclass
class Args:
    """Simulate a robot."""

    robot: _common.RobotName
    """a robot file, or the name of an example"""
    drive: str = ""
    """a drive file (TOML): joints.<name>.motion = { quintic = { start, end, duration } } and so on"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=SIGNAL:NUMBERS")] = ()
    """motions of joints, e.g. shoulder=quintic:0:1:2 (start, end, duration)"""
    formulation: str = ""
    """name, and options after a colon, e.g. FiniteElement:elements=8; default: the first that can hold the robot"""
    end: float = 1.0
    """end of the run [s]"""
    outputs: int = 101
    """number of output times, both ends included"""
    dt: float = 1e-3
    """largest step [s]"""
    save: tuple[str, ...] = ()
    """files to write: .nc .zarr (everything), .csv .mat (sensors), .html .gif .mp4 (animation), .png .pdf .svg (figure; tip.png,
    deflection.png, strain.png, spectrum.png, energy.png by name, else joints)"""
    progress: bool = sys.stderr.isatty()
    """show a bar"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    _common.check_paths(args.save)
    _common.start()
    from flexjax.robot import load_robot
    from flexjax.simulate import simulate

    ts = _common.output_times(args.end, args.outputs, args.dt)
    robot = load_robot(args.robot)
    name, formulation = _common.make_formulation(args.formulation, robot)
    drive = _common.make_drive(args.drive, args.motion, robot)
    model = formulation.bind(robot)
    _common.say(
        f"{robot.name} in {name}: compiling, then {args.end:g} s in steps of at most {args.dt:g} s"
    )
    traj = simulate(model, drive, ts, dt=args.dt, progress=args.progress)
    written = _common.save(traj, args.save)
    data = {
        "robot": robot.name,
        "formulation": name,
        "solver": traj.stats.solver,
        "steps": int(traj.stats.steps),
        "status": int(traj.status),
        "time": traj.ts.tolist(),
        "tip": traj.tip.tolist(),
        "q": traj.q.tolist(),
        "energy_balance": (traj.energy.balance - traj.energy.balance[0]).tolist(),
        "files": written,
    }
    text = "\n".join([str(traj), *(f"wrote {path}" for path in written)])
    return text, data, 0
