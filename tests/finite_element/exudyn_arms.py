"""The same arms in Exudyn: absolute nodal coordinates, another discretisation and another measure
of strain, with large deflections.
"""

import warnings

import numpy as np


def _system():
    import exudyn

    container = exudyn.SystemContainer()
    return container, container.AddSystem()


def _cable(mbs, start, length, elements, mu, EI, EA):
    """(nodes, beams) of a straight cable along x."""
    import exudyn.itemInterface as eii

    h = length / elements
    nodes = [
        mbs.AddNode(eii.NodePoint2DSlope1(referenceCoordinates=[start + i * h, 0.0, 1.0, 0.0]))
        for i in range(elements + 1)
    ]
    pairs = zip(nodes[:-1], nodes[1:], strict=True)
    beams = [
        mbs.AddObject(
            eii.ObjectANCFCable2D(
                nodeNumbers=[a, b],
                length=h,
                massPerLength=mu,
                bendingStiffness=EI,
                axialStiffness=EA,
            )
        )
        for a, b in pairs
    ]
    return nodes, beams


def _hold(mbs, node, coordinates, ground, other=None):
    import exudyn.itemInterface as eii

    for c in coordinates:
        here = mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=c))
        there = (
            ground
            if other is None
            else mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=other, coordinate=c))
        )
        mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[there, here]))


def _ground(mbs):
    import exudyn.itemInterface as eii

    return mbs.AddMarker(
        eii.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(eii.NodePointGround()), coordinate=0)
    )


def _solve(mbs, end, dt, tolerance, spectral_radius=None):
    import exudyn

    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = end
    settings.timeIntegration.numberOfSteps = round(end / dt)
    settings.timeIntegration.adaptiveStep = False
    settings.timeIntegration.newton.absoluteTolerance = tolerance
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    # The trapezoidal rule is unstable with constraints on positions; the sliding joint has no
    # others.
    settings.timeIntegration.generalizedAlpha.useNewmark = (
        settings.timeIntegration.generalizedAlpha.useIndex2Constraints
    ) = spectral_radius is None
    if spectral_radius is not None:
        settings.timeIntegration.generalizedAlpha.spectralRadius = spectral_radius
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    if not mbs.SolveDynamic(settings):
        raise RuntimeError("Exudyn did not finish")


def two_hinged_links(force, *, lengths, mu, EI, elements, end, dt, EA=1e6):
    """End point of two hinged links, straight and at rest at first, under a constant force across
    the tip.
    """
    import exudyn
    import exudyn.itemInterface as eii

    _keep, mbs = _system()
    ground, last, start = _ground(mbs), None, 0.0
    for length in lengths:
        nodes, _ = _cable(mbs, start, length, elements, mu, EI, EA)
        _hold(mbs, nodes[0], (0, 1), ground, last)
        last, start = nodes[-1], start + length
    mbs.AddLoad(
        eii.Force(
            markerNumber=mbs.AddMarker(eii.MarkerNodePosition(nodeNumber=last)),
            loadVector=[0.0, force, 0.0],
        )
    )
    _solve(mbs, end, dt, 1e-7)
    return np.asarray(mbs.GetNodeOutput(last, exudyn.OutputVariableType.Position))[:2]


def mass_on_a_beam(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Exudyn's own, about how its items are read
        return _mass_on_a_beam(*args, **options)


def _mass_on_a_beam(gravity, *, length, mu, EI, elements, mass, start, speed, end, dt, EA=1e6):
    """Place (x, y) of a point mass that slides along a clamped beam under gravity."""
    import exudyn
    import exudyn.itemInterface as eii

    _keep, mbs = _system()
    nodes, beams = _cable(mbs, 0.0, length, elements, mu, EI, EA)
    _hold(mbs, nodes[0], (0, 1, 3), _ground(mbs))
    for beam in beams:
        marker = mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=beam))
        mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=[0.0, -gravity, 0.0]))
    node = mbs.AddNode(
        eii.NodePoint2D(referenceCoordinates=[start, 0.0], initialVelocities=[speed, 0.0])
    )
    rider = mbs.AddObject(eii.ObjectMassPoint2D(physicsMass=mass, nodeNumber=node))
    mbs.AddLoad(
        eii.Gravity(
            markerNumber=mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=rider)),
            loadVector=[0.0, -gravity, 0.0],
        )
    )
    h = length / elements
    first = int(start / h)
    cables = [mbs.AddMarker(eii.MarkerBodyCable2DCoordinates(bodyNumber=b)) for b in beams]
    data = mbs.AddNode(
        eii.NodeGenericData(initialCoordinates=[first, start], numberOfDataCoordinates=2)
    )
    on = mbs.AddMarker(eii.MarkerBodyPosition(bodyNumber=rider, localPosition=[0.0, 0.0, 0.0]))
    mbs.AddObject(
        eii.ObjectJointSliding2D(
            markerNumbers=[on, cables[first]],
            slidingMarkerNumbers=cables,
            slidingMarkerOffsets=[i * h for i in range(elements)],
            nodeNumber=data,
            constrainRotation=False,
            classicalFormulation=True,
        )
    )
    _solve(mbs, end, dt, 1e-5, spectral_radius=0.9)
    return np.asarray(mbs.GetNodeOutput(node, exudyn.OutputVariableType.Position))[:2]
