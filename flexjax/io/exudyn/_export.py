"""``to_exudyn``: a robot under a drive in Exudyn, and runs of it."""

import dataclasses
import math
import warnings
from typing import Any

import jax.tree_util as jtu
import numpy as np

from flexjax._types import NumbersLike, is_traced
from flexjax.drive import Drive
from flexjax.formulation import Start
from flexjax.io.exudyn._pose import start_frames
from flexjax.io.exudyn._refusals import refusals
from flexjax.robot import Robot
from flexjax.simulate._start import read_drive


@dataclasses.dataclass(frozen=True)
class ExudynRun:
    """Times (T,), positions of the last link's tip (T, 3), joint coordinates (T, D)."""

    ts: np.ndarray
    tip: np.ndarray
    q: np.ndarray


@dataclasses.dataclass(frozen=True)
class ExudynModel:
    """A robot under a drive in Exudyn: ``container`` and ``mbs``, assembled, at time ``t0``."""

    robot: Robot
    drive: Drive
    container: Any
    mbs: Any
    t0: float
    _tables: Any
    _tip: int
    _joints: dict[str, int]
    _stiffest: float

    def run(
        self,
        ts: NumbersLike,
        dt: float = 1e-3,
        *,
        spectral_radius: float = 0.9,
        tolerance: float | None = None,
    ) -> ExudynRun:
        """Integrate by the generalised-alpha method with constraints on positions.

        Arguments:
            ts: increasing output times [s]; the first is ``t0``.
            dt: longest time step [s]. Outputs between steps are interpolated by cubic splines.
            spectral_radius: of the method at high frequencies; 1 has no numerical damping, and
                constraints make it unstable.
            tolerance: of Newton's iteration, in newtons; by default 1e-14 of the axial stiffness
                of the stiffest beam. Steps fail below the round-off of the forces there.

        Returns:
            The tip and the joint coordinates at the times.
        """
        ts = np.asarray(ts, float)
        if (
            ts.ndim != 1
            or len(ts) < 2
            or not np.all(np.diff(ts) > 0)
            or abs(ts[0] - self.t0) > 1e-9
        ):
            raise ValueError(
                f"ts: {np.array2string(ts, threshold=6)}; expected increasing times that begin at "
                f"t0 = {self.t0:g}. Give to_exudyn another t0, or shift the times."
            )
        steps = max(1, math.ceil((ts[-1] - ts[0]) / dt * (1 - 1e-6)))
        self._tables.fill(np.linspace(ts[0], ts[-1], steps + 1))
        tolerance = max(1e-8, 1e-14 * self._stiffest) if tolerance is None else tolerance
        _integrate(self.mbs, ts[0], ts[-1], steps, spectral_radius, tolerance)
        return ExudynRun(ts, self._stored(self._tip, ts), self._coordinates(ts))

    def _stored(self, sensor: int, ts: np.ndarray) -> np.ndarray:
        from scipy.interpolate import CubicSpline

        rows = np.asarray(self.mbs.GetSensorStoredData(sensor))
        _, once = np.unique(np.round(rows[:, 0], 12), return_index=True)
        return CubicSpline(rows[once, 0], rows[once, 1:])(np.clip(ts, rows[0, 0], rows[-1, 0]))

    def _coordinates(self, ts: np.ndarray) -> np.ndarray:
        columns = []
        for joint in self.robot.tree_joints:
            if joint.name in self._joints:
                columns.append(self._stored(self._joints[joint.name], ts)[:, 0])
            elif joint.dofs:
                columns.append(self.drive.joints[joint.name].signals()[0](ts))
        return (
            np.stack([np.ravel(c) for c in columns], axis=1) if columns else np.zeros((len(ts), 0))
        )


def to_exudyn(
    robot: Robot,
    drive: Drive | None = None,
    *,
    start: Start | dict | None = None,
    elements: int | dict[str, int] = 16,
    shear: bool = True,
    t0: float = 0.0,
) -> ExudynModel:
    """Build a robot under a drive in Exudyn, an independent multibody code.

    Elastic links become geometrically exact beams, rigid links and payloads rigid bodies. Joints
    may be revolute, prismatic along a fixed axis, or fixed, with damping, friction, stops, hub and,
    under a Motion, a spring. What has no counterpart is refused before anything is built; damping
    of links is, because Exudyn's spatial beam ignores it.

    Needs exudyn: ``pip install 'flexjax[outside]'``.

    Arguments:
        robot: the robot.
        drive: motions, efforts, PD controllers, loads and base; None for none.
        start: joint coordinates and rates, a :class:`Start` or a dict ``{joint: coordinate}``.
        elements: beams of every elastic link, or a dict from link name to number. The error falls
            with their square.
        shear: whether links shear as their sections say. FiniteElement, ScrewSynthesis, MovingBeam
            and TransferMatrix leave shear out; ``shear=False`` is comparable with them.
        t0: time of the start [s].

    Returns:
        An object with the Exudyn system as ``container`` and ``mbs``; its
        ``run(ts, dt=1e-3)`` returns the times, the tip and the joint coordinates as numpy arrays.

    Raises:
        ValueError: if Exudyn has no counterpart of a part of the robot, its drive or its start.
        ImportError: if Exudyn is not installed.

    >>> import flexjax as fx, numpy as np
    >>> found = fx.to_exudyn(fx.load_robot("metal-link"), elements=8).run(np.linspace(0, 0.01, 3))
    >>> found.tip.shape
    (3, 3)
    """
    exudyn = _exudyn()
    if not isinstance(robot, Robot):
        raise ValueError(
            f"robot: {type(robot).__name__}; expected fx.Robot, e.g. fx.load_robot('two-link')."
        )
    drive = read_drive(drive, robot)
    start = Start(joints=start) if isinstance(start, dict) else start or Start()
    if not isinstance(start, Start):
        raise ValueError(f"start: {type(start).__name__}; expected fx.Start or a dict.")
    start.check(robot)
    if any(is_traced(x) for x in jtu.tree_leaves((robot, drive, start))):
        raise ValueError(
            "to_exudyn: traced parameters; expected numbers. Call it outside jit, vmap and grad."
        )
    faults = refusals(robot, drive, start)
    if faults:
        listed = "\n".join(f"  - {fault}" for fault in faults)
        raise ValueError(f"to_exudyn does not support the robot {robot.name!r}:\n{listed}")
    counts = _counts(robot, elements)
    from flexjax.io.exudyn._build import Builder

    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    frames, _ = start_frames(robot, drive, start, t0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Exudyn's own, about how its items are read
        builder = Builder(mbs, robot, drive, frames, counts, shear)
        builder.build()
        tip = _sensor(mbs, "SensorMarker", markerNumber=builder.marker(robot.links[-1].name, 1.0))
        joints = {
            name: _sensor(mbs, "SensorObject", objectNumber=number)
            for name, number in builder.springs.items()
        }
        mbs.Assemble()
    stiffest = builder.stiffest
    return ExudynModel(
        robot, drive, container, mbs, float(t0), builder.tables, tip, joints, stiffest
    )


def _exudyn() -> Any:
    try:
        import exudyn
    except ImportError as error:
        raise ImportError(
            "to_exudyn needs exudyn; install it with: pip install 'flexjax[outside]'"
        ) from error
    return exudyn


def _counts(robot: Robot, elements: int | dict[str, int]) -> dict[str, int]:
    elastic = [link.name for link in robot.links if link.elastic]
    given = elements if isinstance(elements, dict) else dict.fromkeys(elastic, elements)
    for name, count in given.items():
        if name not in elastic:
            known = ", ".join(elastic) or "no link"
            raise ValueError(f"elements.{name}: no such elastic link; expected {known}.")
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(
                f"elements: {count}; expected a whole number of at least 1, e.g. 16, or a dict "
                "from link name to one."
            )
    return dict.fromkeys(elastic, 16) | given


def _sensor(mbs: Any, kind: str, **of: int) -> int:
    import exudyn
    import exudyn.itemInterface as eii

    variable = exudyn.OutputVariableType
    spring = kind == "SensorObject"
    return mbs.AddSensor(
        getattr(eii, kind)(
            **of,
            storeInternal=True,
            writeToFile=False,
            outputVariableType=_measured(mbs, of["objectNumber"]) if spring else variable.Position,
        )
    )


def _measured(mbs: Any, spring: int) -> Any:
    import exudyn

    linear = mbs.GetObject(spring)["objectType"] == "ConnectorLinearSpringDamper"
    # "Displacement" would be a vector in the axes of the world.
    variable = exudyn.OutputVariableType
    return variable.DisplacementLocal if linear else variable.Rotation


def _integrate(
    mbs: Any, t0: float, end: float, steps: int, spectral_radius: float, tolerance: float
) -> None:
    import exudyn

    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    integration = settings.timeIntegration
    integration.verboseMode = 0
    integration.startTime, integration.endTime = t0, end
    integration.numberOfSteps = steps
    # Where a sudden effort accelerates a light section, the first steps must be short.
    integration.adaptiveStep = True
    integration.minimumStepSize = (end - t0) / steps / 2**16
    integration.newton.absoluteTolerance = tolerance
    integration.newton.relativeTolerance = 1e-9
    # Without them the method starts at rest, an error of first order in the step.
    integration.generalizedAlpha.computeInitialAccelerations = True
    # The trapezoidal rule is unstable with constraints on positions.
    integration.generalizedAlpha.useNewmark = False
    integration.generalizedAlpha.useIndex2Constraints = False
    integration.generalizedAlpha.spectralRadius = spectral_radius
    settings.solution.sensors.writePeriod = (end - t0) / steps
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    try:
        done, why = bool(mbs.SolveDynamic(settings)), ""
    except exudyn.SolverError as error:
        done, why = False, f" ({error})"
    if not done:
        raise RuntimeError(
            f"Exudyn did not finish {steps} steps of {(end - t0) / steps:.3g} s{why}; expected "
            "efforts that begin smoothly (a sudden one accelerates light sections too far), a "
            "shorter dt, or a larger tolerance."
        )
