"""The same problems in Exudyn, for the ratio in the same run. Needs the `outside` extra.

With Exudyn's default Newton tolerances (absolute 1e-10, relative 1e-8) and step control, the ANCF cable takes 57 683
steps instead of 50 on this link (0.05 s, generalised-alpha 0.9, exudyn 1.13.6); the geometrically exact beam
does the same once the relative one is 1e-10. The likely reason: the tolerance lies below the rounding of the residual,
EA/l times 1e-16 or about 1e-8 N. Here the absolute one is 1e-6, with modified Newton and the sparse solver: of 24
combinations of Newton, tolerance and linear solver, none was faster beyond the noise at the same tip. One step per dt.
"""

import dataclasses
import time

ELEMENTS = ("GeometricallyExact2D", "ANCFCable2D")


@dataclasses.dataclass
class Run:
    tip: tuple[float, float]
    wall: float
    cpu: float
    steps: int
    newton_iterations: int


def _beam(kind: str, link, length: float, nodes: list[int], eii):
    section = dict(massPerLength=link.rho * link.area, bendingStiffness=link.E * link.second_moment)
    if kind == "ANCFCable2D":
        return eii.ObjectANCFCable2D(
            nodeNumbers=nodes, length=length, axialStiffness=link.E * link.area, **section
        )
    return eii.ObjectBeamGeometricallyExact2D(
        nodeNumbers=nodes,
        length=length,
        crossSectionInertia=link.rho * link.second_moment,
        axialStiffness=link.E * link.area,
        shearStiffness=link.shear_factor * link.G * link.area,
        **section,
    )


def pendulum(
    link, *, kind: str, elements: int, dt: float, end: float, gravity: float, spectral_radius=None
) -> Run:
    """A link pinned at its base, released horizontally. Trapezoidal Newmark, or generalised-alpha with a radius."""
    import exudyn
    import exudyn.itemInterface as eii

    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    h = link.length / elements
    exact = kind == "GeometricallyExact2D"
    make_node = eii.NodeRigidBody2D if exact else eii.NodePoint2DSlope1
    tail = [0.0] if exact else [1.0, 0.0]  # an angle, or a slope vector
    nodes = [
        mbs.AddNode(make_node(referenceCoordinates=[i * h, 0.0, *tail]))
        for i in range(elements + 1)
    ]
    for a, b in zip(nodes[:-1], nodes[1:], strict=True):
        body = mbs.AddObject(_beam(kind, link, h, [a, b], eii))
        marker = mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=[0.0, -gravity, 0.0]))
    ground = mbs.AddNode(eii.NodePointGround())
    fixed = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=ground, coordinate=0))
    for coordinate in (0, 1):
        marker = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate))
        mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[fixed, marker]))
    mbs.Assemble()

    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = end
    settings.timeIntegration.numberOfSteps = round(end / dt)
    settings.timeIntegration.adaptiveStep = False
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.timeIntegration.newton.absoluteTolerance = 1e-6
    settings.timeIntegration.newton.relativeTolerance = 1e-8
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    # The pin is a constraint on two coordinates, and Newmark is unstable with constraints on positions (index 3).
    settings.timeIntegration.generalizedAlpha.useNewmark = spectral_radius is None
    settings.timeIntegration.generalizedAlpha.useIndex2Constraints = spectral_radius is None
    if spectral_radius is not None:
        settings.timeIntegration.generalizedAlpha.spectralRadius = spectral_radius
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse

    wall, cpu = time.perf_counter(), time.process_time()
    if not mbs.SolveDynamic(settings):
        raise RuntimeError(f"Exudyn did not finish: {kind}, {elements} elements, dt = {dt}")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tip = mbs.GetNodeOutput(nodes[-1], exudyn.OutputVariableType.Position)
    it = mbs.sys["dynamicSolver"].it
    return Run(
        (float(tip[0]), float(tip[1])), wall, cpu, it.currentStepIndex - 1, it.newtonStepsCount
    )
