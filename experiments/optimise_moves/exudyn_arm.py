"""A planar arm whose joints follow prescribed angles, in Exudyn: geometrically exact beams.

The clamp is a node whose position and angle are prescribed. A joint prescribes the angle of the
next link's first node relative to the last node before it. Hubs and payloads are rigid bodies on
these nodes.
"""

import warnings

import exudyn
import exudyn.itemInterface as eii
import numpy as np
from scipy.interpolate import CubicSpline

from flexjax.study.optimise._replay import baseline

ELEMENTS = 24
STEPS = 400  # of the move


def vibration(res, move="optimised"):
    """Peak tip vibration [m] after a move of ``res``, from where the tip rests at the goal."""
    drive = res.drive if move == "optimised" else baseline(res, move)
    motions = [drive.joints[joint.name] for joint in res.model.robot.joints]
    end = 2 * res.duration
    times = np.linspace(0.0, end, 2 * STEPS + 1)
    angles = np.array([[float(m.signal(t)) for m in motions] for t in times])
    tips = _run(res.model.robot, times, angles)
    # Held at the goal from the start, the arm does not move.
    held = _run(res.model.robot, times[:3], np.tile(angles[-1], (3, 1)))[-1]
    return float(np.max(np.linalg.norm(tips[times >= res.duration - 1e-12] - held, axis=1)))


def _run(robot, times, angles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Exudyn's own, about how its items are read
        container = exudyn.SystemContainer()
        mbs = container.AddSystem()
        tip = _build(mbs, robot, times, angles)
        return _simulate(mbs, tip, times)


def _build(mbs, robot, times, angles):
    """The arm at its first angles; returns the node of the tip."""
    zero = mbs.AddMarker(
        eii.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(eii.NodePointGround()), coordinate=0)
    )
    gravity = [float(g) for g in robot.gravity]
    weigh = lambda body: mbs.AddLoad(
        eii.Gravity(
            markerNumber=mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=body)), loadVector=gravity
        )
    )
    place, heading, last = np.zeros(2), 0.0, None
    for k, (link, joint) in enumerate(zip(robot.links, robot.joints, strict=True)):
        heading += angles[0, k]
        nodes = _link(mbs, link, place, heading, weigh)
        for c in (0, 1, 2):
            before = zero if last is None else _coordinate(mbs, last, c)
            given = {}
            if c == 2:
                # Cubic, since linear pieces would jerk. The node's angle counts from the start.
                angle, first = CubicSpline(times, angles[:, k]), angles[0, k]
                given["offsetUserFunction"] = lambda mbs, t, item, offset, angle=angle, a=first: (
                    float(angle(t)) - a
                )
            markers = [before, _coordinate(mbs, nodes[0], c)]
            mbs.AddObject(eii.CoordinateConstraint(markerNumbers=markers, **given))
        hub = [0.0, 0.0] if joint.hub is None else [joint.hub.mass, joint.hub.inertia]
        if joint.hub is not None:
            _body(mbs, nodes[0], *map(float, hub), [0.0, 0.0], weigh)
        for payload in robot.payloads:
            if payload.link == link.name:
                inertia = 0.0 if payload.inertia is None else float(payload.inertia)
                given = (0.0, 0.0) if payload.offset is None else np.asarray(payload.offset)
                offset = [float(x) for x in given[:2]]
                _body(mbs, nodes[-1], float(payload.mass), inertia, offset, weigh)
        place = place + float(link.length) * np.array([np.cos(heading), np.sin(heading)])
        last = nodes[-1]
    return last


def _coordinate(mbs, node, c):
    return mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=c))


def _body(mbs, node, mass, inertia, offset, weigh):
    """A rigid body on a node. Exudyn's inertia is that about the node, not the centre of mass."""
    about = inertia + mass * (offset[0] ** 2 + offset[1] ** 2)
    weigh(
        mbs.AddObject(
            eii.ObjectRigidBody2D(
                mass=mass,
                inertia=about,
                centerOfMass=offset,
                nodeNumber=node,
            )
        )
    )


def _link(mbs, link, place, heading, weigh):
    """The beams of one link; returns their nodes."""
    b, h = float(link.section.width), float(link.section.height)
    length = float(link.length) / ELEMENTS
    E, nu, rho = (float(getattr(link.material, name)) for name in ("E", "nu", "rho"))
    rate = 0.0 if link.damping is None else float(link.damping.strain_rate)
    stiff = {
        "bending": E * b * h**3 / 12,
        "axial": E * b * h,
        "shear": 5 / 6 * E / (2 + 2 * nu) * b * h,
    }
    values = {f"{name}Stiffness": value for name, value in stiff.items()}
    values |= {f"{name}Damping": rate * value for name, value in stiff.items()}
    along = np.array([np.cos(heading), np.sin(heading)])
    nodes = [
        mbs.AddNode(
            eii.NodeRigidBody2D(referenceCoordinates=[*(place + i * length * along), heading])
        )
        for i in range(ELEMENTS + 1)
    ]
    for pair in zip(nodes[:-1], nodes[1:], strict=True):
        beam = eii.ObjectBeamGeometricallyExact2D(
            nodeNumbers=list(pair),
            length=length,
            massPerLength=rho * b * h,
            crossSectionInertia=rho * b * h**3 / 12,
            **values,
        )
        weigh(mbs.AddObject(beam))
    return nodes


def _simulate(mbs, tip, times):
    """Positions of the tip at the times."""
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
