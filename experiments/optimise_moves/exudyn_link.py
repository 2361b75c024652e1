"""A single link that follows a prescribed angle, in Exudyn: geometrically exact beams.

The clamp is a node whose position and angle are prescribed. The payload is a point mass at the tip.
"""

import warnings

import exudyn
import exudyn.itemInterface as eii
import numpy as np
from scipy.interpolate import CubicSpline

from flexjax.study.optimise._result import baseline

ELEMENTS = 24
STEPS = 400  # of the move


def vibration(res, move="optimised"):
    """Peak tip vibration [m] after a move of ``res``, from where the tip rests at the goal."""
    drive = res.drive if move == "optimised" else baseline(res, move)
    (motion,) = drive.joints.values()
    end = 2 * res.duration
    times = np.linspace(0.0, end, 2 * STEPS + 1)
    angles = np.array([float(motion.signal(t)) for t in times])
    tips = _run(res.model.robot, times, angles)
    # Held at the goal from the start, the arm does not move.
    held = _run(res.model.robot, times[:3], np.full(3, angles[-1]))[-1]
    return float(np.max(np.linalg.norm(tips[times >= res.duration - 1e-12] - held, axis=1)))


def _run(robot, times, angles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Exudyn's own, about how its items are read
        return _simulate(robot, times, angles)


def _simulate(robot, times, angles):
    link, mass = robot.links[0], float(robot.payloads[0].mass)
    b, h = float(link.section.width), float(link.section.height)
    length = float(link.length) / ELEMENTS
    E, nu, rho = (float(getattr(link.material, name)) for name in ("E", "nu", "rho"))
    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    along = np.array([np.cos(angles[0]), np.sin(angles[0])])
    nodes = [
        mbs.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[*(i * length * along), angles[0]]))
        for i in range(ELEMENTS + 1)
    ]
    gravity = [float(g) for g in robot.gravity]
    for pair in zip(nodes[:-1], nodes[1:], strict=True):
        beam = mbs.AddObject(
            eii.ObjectBeamGeometricallyExact2D(
                nodeNumbers=list(pair),
                length=length,
                massPerLength=rho * b * h,
                crossSectionInertia=rho * b * h**3 / 12,
                bendingStiffness=E * b * h**3 / 12,
                axialStiffness=E * b * h,
                shearStiffness=5 / 6 * E / (2 + 2 * nu) * b * h,
            )
        )
        marker = mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=beam))
        mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=gravity))
    zero = mbs.AddMarker(
        eii.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(eii.NodePointGround()), coordinate=0)
    )

    def constrain(first, node, coordinate, offset=None):
        marker = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=coordinate))
        options = {} if offset is None else {"offsetUserFunction": offset}
        mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[first, marker], **options))

    angle = CubicSpline(times, angles)  # linear pieces would jerk
    constrain(zero, nodes[0], 0)
    constrain(zero, nodes[0], 1)
    constrain(zero, nodes[0], 2, lambda mbs, t, item, offset: float(angle(t)) - angles[0])
    tip = mbs.AddNode(eii.NodePoint2D(referenceCoordinates=list(ELEMENTS * length * along)))
    body = mbs.AddObject(eii.MassPoint2D(physicsMass=mass, nodeNumber=tip))
    marker = mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=body))
    mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=gravity))
    for c in (0, 1):
        last = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=nodes[-1], coordinate=c))
        constrain(last, tip, c)
    sensor = mbs.AddSensor(
        eii.SensorNode(
            nodeNumber=tip,
            storeInternal=True,
            outputVariableType=exudyn.OutputVariableType.Position,
        )
    )
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = settings.staticSolver.verboseMode = 0
    settings.staticSolver.newton.absoluteTolerance = 1e-6
    # By default the time of the load steps ends at 1 s, where the move is over.
    settings.staticSolver.loadStepDuration = 1e-9
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    if not mbs.SolveStatic(settings, updateInitialValues=True):
        raise RuntimeError("Exudyn found no equilibrium at the start")
    integration = settings.timeIntegration
    integration.endTime = times[-1]
    integration.numberOfSteps = 2 * (len(times) - 1)
    integration.adaptiveStep = False
    integration.newton.absoluteTolerance = 1e-6
    integration.newton.relativeTolerance = 1e-8
    integration.generalizedAlpha.computeInitialAccelerations = True
    # The trapezoidal rule is unstable with constraints on positions.
    integration.generalizedAlpha.useNewmark = False
    integration.generalizedAlpha.useIndex2Constraints = False
    integration.generalizedAlpha.spectralRadius = 0.9
    settings.solution.sensors.writePeriod = times[1] - times[0]
    if not mbs.SolveDynamic(settings):
        raise RuntimeError("Exudyn did not finish")
    stored = mbs.GetSensorStoredData(sensor)
    return np.stack([np.interp(times, stored[:, 0], stored[:, k]) for k in (1, 2)], axis=1)
