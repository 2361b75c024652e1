"""A flexible link on a motor with a gear and friction, in Exudyn: recordings that flexjax did not
make.

Geometrically exact beams of two nodes in the plane; their shear compliance is h^2 / (12 EI) for
elements of length h (MacNeal's residual bending flexibility). The dry friction on the motor's side
is c tanh(rate / v_eps), or LuGre's with its bristles as a state of first order. Damping of the
link is that of sigma = E (epsilon + tau d(epsilon)/dt).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STRAIN_AT = 0.05  # station of the gauge: the middle of an element with 10, 30, 50, ... elements


class Arm(NamedTuple):
    """SI units. Without ``gear`` the motor moves the hub rigidly."""

    length: float
    height: float
    width: float
    E: float
    rho: float
    tau: float
    payload: float
    hub: float
    rotor: float
    coulomb: float
    gear: float | None = None
    gear_damping: float = 0.0
    v_eps: float = 0.01
    breakaway: float | None = None
    stribeck: float = 1.0
    bristle: float | None = None
    bristle_damping: float = 0.0


def simulated(
    arm: Arm,
    torque: Callable[[float], float],
    ts: np.ndarray,
    *,
    elements: int = 30,
    dt: float = 5e-4,
    motion: Callable[[float], float] | None = None,
) -> dict[str, np.ndarray]:
    """Motor angle, link angle, tip position along y and strain at the times ``ts`` (even, from 0).

    ``torque``: of the motor. ``motion``: angle that the motor follows instead.
    """
    import exudyn
    import exudyn.itemInterface as eii

    exudyn.SuppressWarnings(True)  # one about user functions, which are slow
    mbs = exudyn.SystemContainer().AddSystem()
    nodes = _beams(mbs, eii, arm, elements)
    ground = mbs.AddNode(eii.NodePointGround())
    fixed = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))
    at = lambda node, k: mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=k))
    for k in (0, 1):
        mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[fixed, at(nodes[0], k)]))
    mbs.AddObject(eii.ObjectRigidBody2D(mass=1e-9, inertia=arm.hub, nodeNumber=nodes[0]))
    mbs.AddObject(eii.ObjectRigidBody2D(mass=arm.payload, inertia=0.0, nodeNumber=nodes[-1]))
    link = at(nodes[0], 2)
    motor_node, motor = nodes[0], link
    if arm.gear is None:
        mbs.AddObject(eii.ObjectRigidBody2D(mass=1e-9, inertia=arm.rotor, nodeNumber=nodes[0]))
    else:
        motor_node = mbs.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[0.0, 0.0, 0.0]))
        mbs.AddObject(eii.ObjectRigidBody2D(mass=1.0, inertia=arm.rotor, nodeNumber=motor_node))
        for k in (0, 1):
            mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[fixed, at(motor_node, k)]))
        motor = at(motor_node, 2)
        spring = {"stiffness": arm.gear, "damping": arm.gear_damping}
        mbs.AddObject(eii.CoordinateSpringDamper(markerNumbers=[motor, link], **spring))
    if motion is not None:
        follow = {"offsetUserFunction": lambda mbs, t, item, offset: float(motion(t))}
        mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[fixed, motor], **follow))
    else:
        drive = lambda mbs, t, load: float(torque(t))
        mbs.AddLoad(eii.LoadCoordinate(markerNumber=motor, loadUserFunction=drive))
    if arm.bristle is None:
        _dry(mbs, eii, arm, [fixed, motor])
    else:
        _bristles(mbs, eii, exudyn, arm, motor_node, motor)
    node = lambda n, what: mbs.AddSensor(
        eii.SensorNode(nodeNumber=n, outputVariableType=what, storeInternal=True, writeToFile=False)
    )
    kinds = exudyn.OutputVariableType
    sensors = {
        "motor": node(motor_node, kinds.Rotation),
        "angle": node(nodes[0], kinds.Rotation),
        "tip": node(nodes[-1], kinds.Position),
    }
    before = int(STRAIN_AT * elements)  # the element around the gauge turns by h times curvature
    ends = [node(n, kinds.Rotation) for n in nodes[before : before + 2]]
    mbs.Assemble()
    _integrate(mbs, exudyn, float(ts[-1]), dt, float(ts[1] - ts[0]))
    stored = lambda s: np.asarray(mbs.GetSensorStoredData(s))[: len(ts)]
    got = {name: stored(s)[:, 2 if name == "tip" else -1] for name, s in sensors.items()}
    turned = stored(ends[1])[:, -1] - stored(ends[0])[:, -1]
    got["strain"] = -0.5 * arm.height * turned / (arm.length / elements)
    return got


def _beams(mbs: Any, eii: Any, arm: Arm, elements: int) -> list[int]:
    h, area = arm.length / elements, arm.height * arm.width
    second = arm.width * arm.height**3 / 12
    nodes = [
        mbs.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[i * h, 0.0, 0.0]))
        for i in range(elements + 1)
    ]
    for pair in zip(nodes[:-1], nodes[1:], strict=True):
        mbs.AddObject(
            eii.ObjectBeamGeometricallyExact2D(
                nodeNumbers=list(pair),
                length=h,
                massPerLength=arm.rho * area,
                crossSectionInertia=arm.rho * second,
                bendingStiffness=arm.E * second,
                bendingDamping=arm.E * second * arm.tau,
                axialStiffness=arm.E * area,
                shearStiffness=12 * arm.E * second / h**2,
            )
        )
    return nodes


def _level(arm: Arm, rate: float) -> float:
    rise = 0.0 if arm.breakaway is None else arm.breakaway - arm.coulomb
    return arm.coulomb + rise * np.exp(-((rate / arm.stribeck) ** 2))


def _dry(mbs: Any, eii: Any, arm: Arm, markers: list[int]) -> None:
    def force(mbs, t, item, q, rate, *rest):
        return float(_level(arm, rate) * np.tanh(rate / arm.v_eps))

    mbs.AddObject(eii.CoordinateSpringDamper(markerNumbers=markers, springForceUserFunction=force))


def _bristles(mbs: Any, eii: Any, exudyn: Any, arm: Arm, node: int, marker: int) -> None:
    bristle = arm.bristle or 0.0
    state = mbs.AddNode(
        eii.NodeGenericODE1(
            referenceCoordinates=[0.0], initialCoordinates=[0.0], numberOfODE1Coordinates=1
        )
    )
    speed = exudyn.OutputVariableType.AngularVelocity

    def rate_of(z: float) -> tuple[float, float]:
        rate = float(mbs.GetNodeOutput(node, speed)[2])
        return rate, rate - abs(rate) * z * bristle / _level(arm, rate)

    def bend(_, t, item, q):
        return [rate_of(q[0])[1]]

    def against(_, t, load):
        z = float(mbs.GetNodeOutput(state, exudyn.OutputVariableType.Coordinates))
        return float(-bristle * z - arm.bristle_damping * rate_of(z)[1])

    mbs.AddObject(eii.ObjectGenericODE1(nodeNumbers=[state], rhsUserFunction=bend))
    mbs.AddLoad(eii.LoadCoordinate(markerNumber=marker, loadUserFunction=against))


def _integrate(mbs: Any, exudyn: Any, end: float, dt: float, every: float) -> None:
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    integration = settings.timeIntegration
    integration.verboseMode = 0
    integration.endTime, integration.numberOfSteps = end, round(end / dt)
    integration.adaptiveStep = False
    integration.newton.absoluteTolerance, integration.newton.relativeTolerance = 1e-6, 1e-8
    integration.generalizedAlpha.computeInitialAccelerations = True
    integration.generalizedAlpha.useNewmark = False
    integration.generalizedAlpha.useIndex2Constraints = False
    integration.generalizedAlpha.spectralRadius = 0.95
    settings.solution.sensors.writePeriod = every
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    if not mbs.SolveDynamic(settings):
        raise RuntimeError(f"Exudyn did not finish {end / dt:.0f} steps of {dt:g} s.")
