"""The same problems in Exudyn, for ratios measured in the same run. Requires the `outside` extra.

Exudyn's default absolute Newton tolerance (1e-10) lies below the rounding error of the residual,
EA/l times 1e-16 or about 1e-8 N. With step control, the ANCF cable then takes 57 683 steps instead
of 50 (0.05 s, generalised-alpha 0.9, Exudyn 1.13.6). The tolerance here is 1e-6, with modified
Newton, the sparse solver and one step per dt: the fastest of 24 combinations, within the noise.
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
    """A link pinned at its base and released horizontally.

    The solver is trapezoidal Newmark, or generalised-alpha with the given spectral radius.
    """
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
    # Newmark is unstable with position constraints (index 3), and the pin is a constraint.
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
