"""Simulate a robot; save the trajectory, figures or a 3D page.

The options --drive and --motion drive the joints; the other joints are free.

Signals of --motion: constant, quintic, step_acceleration, bang_bang, piecewise_constant,
trapezoid, cosine, cycloid, spin_up, spline, bspline, recorded, step, ramp, sine, polynomial,
chirp.

An error message lists the arguments of a signal.

Formats of --save: .nc .zarr (trajectory), .csv .mat (sensor readings), .html .gif .mp4
(animation), .png .pdf .svg (figure).

A figure shows the joints, or the quantity in its name: tip, deflection, strain, spectrum, energy.

Examples:

  flexjax simulate two-link --motion shoulder=quintic:0:1:0.5 --end 1 --save run.nc arm.html
  flexjax simulate metal-link --formulation ScrewSynthesis:modes=3 --end 0.5 --save tip.png --json
"""

import dataclasses
import sys
from typing import Annotated

from tyro import conf

from flexjax.cli import _check, _common


@dataclasses.dataclass
class Args:
    """Simulate a robot."""

    robot: _common.RobotName
    """path of a robot file, or name of an example"""
    drive: str = ""
    """path of a drive file (TOML): motions, efforts and controllers of joints, loads, start"""
    motion: Annotated[tuple[str, ...], conf.arg(metavar="JOINT=SIGNAL:NUMBERS")] = ()
    """prescribed joint motions, e.g. shoulder=quintic:0:1:2 (start, end, duration)"""
    formulation: str = ""
    """name:options, e.g. FiniteElement:elements=8; by default the first that supports the robot"""
    end: float = 1.0
    """end time [s]"""
    outputs: int = 101
    """number of output times, including start and end"""
    dt: float = 1e-3
    """largest time step [s]"""
    save: tuple[str, ...] = ()
    """paths of files to write; the suffix selects the format"""
    progress: bool = sys.stderr.isatty()
    """show phases (tracing, compiling, running) and a progress bar"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    _check.check_paths(args.save)
    _check.check_times(args.end, args.outputs, args.dt)
    _check.check_drive(args.drive, args.motion, _check.check_robot(args.robot))
    _check.check_supported(args.robot, args.formulation)
    _common.start_jax(args.end / args.dt)
    import jax.numpy as jnp

    from flexjax.robot import load_robot
    from flexjax.simulate import simulate

    ts = jnp.linspace(0.0, args.end, args.outputs)
    robot = load_robot(args.robot)
    drive, start = _common.make_drive(args.drive, args.motion, robot)
    name, formulation = _common.make_formulation(args.formulation, robot, drive)
    model = formulation.bind(robot)
    _common.log(
        f"{robot.name} in {name}: tracing, compiling, then {args.end:g} s in steps of at most "
        f"{args.dt:g} s"
    )
    traj = simulate(model, drive, ts, dt=args.dt, start=start, progress=args.progress)
    written = _common.save(traj, args.save, drive)
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
