"""Another code: a soft clamped link, swung out of every plane by a force on its tip, in Exudyn's
geometrically exact beams in space.

The force grows smoothly (a quintic in time): released suddenly under gravity the same link
converges irregularly in either code (orders 1.4 to 2.3).
"""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

# Unequal bending stiffnesses and a force across both: bending about two axes and torsion from the
# first instant.
SECTION = dict(
    EA=4e3,
    EIy=0.9,
    EIz=0.2,
    GJ=0.5,
    rhoA=0.5,
    GAy=1.5e3,
    GAz=1.2e3,
    rhoIx=2.5e-3,
    rhoIy=1e-3,
    rhoIz=1.5e-3,
)
LENGTH, FORCE, SPAN = 0.8, (0.5, -4.0, 2.5), 0.3


def exudyn_swing(elements: int, dt: float):
    """Tip after SPAN. Nodes with Euler parameters, the base node clamped."""
    exudyn = pytest.importorskip("exudyn")
    import exudyn.itemInterface as eii

    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    section = exudyn.BeamSection()
    section.massPerLength = SECTION["rhoA"]
    section.inertia = np.diag([SECTION[k] for k in ("rhoIx", "rhoIy", "rhoIz")])
    section.stiffnessMatrix = np.diag(
        [SECTION[k] for k in ("EA", "GAy", "GAz", "GJ", "EIy", "EIz")]
    )
    h = LENGTH / elements
    nodes = [
        mbs.AddNode(eii.NodeRigidBodyEP(referenceCoordinates=[i * h, 0, 0, 1, 0, 0, 0]))
        for i in range(elements + 1)
    ]
    for a, b in zip(nodes[:-1], nodes[1:], strict=True):
        mbs.AddObject(
            eii.ObjectBeamGeometricallyExact(nodeNumbers=[a, b], length=h, sectionData=section)
        )
    tip = mbs.AddMarker(eii.MarkerNodePosition(nodeNumber=nodes[-1]))

    def growing(_, t, force):
        x = t / SPAN
        return [f * x**3 * (10 - 15 * x + 6 * x**2) for f in force]

    mbs.AddLoad(eii.Force(markerNumber=tip, loadVector=FORCE, loadVectorUserFunction=growing))
    ground = mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=mbs.AddObject(eii.ObjectGround())))
    mbs.AddObject(
        eii.GenericJoint(
            markerNumbers=[ground, mbs.AddMarker(eii.MarkerNodeRigid(nodeNumber=nodes[0]))]
        )
    )
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = SPAN
    settings.timeIntegration.numberOfSteps = round(SPAN / dt)
    settings.timeIntegration.adaptiveStep = False
    settings.timeIntegration.newton.absoluteTolerance = 1e-8
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    assert mbs.SolveDynamic(settings)
    return np.asarray(mbs.GetNodeOutput(nodes[-1], exudyn.OutputVariableType.Position))


def our_swing(elements: int, dt: float):
    link = fx.Link("link", LENGTH, constants=fx.BeamConstants(**SECTION))
    robot = fx.Robot(
        "swing", [link], [fx.Joint("clamp", "fixed", "ground", "link")], gravity=(0.0, 0.0, 0.0)
    )
    model = fx.PortHamiltonian(elements=elements).bind(robot)
    drive = fx.Drive(
        loads=[fx.Load("link", fx.quintic(jnp.zeros(6), jnp.array([*FORCE, 0.0, 0.0, 0.0]), SPAN))]
    )
    traj = fx.simulate(model, drive, jnp.array([0.0, SPAN]), dt=dt, stations=2)
    return np.asarray(traj.tip[-1]), np.asarray(traj.deflection[-1, 0, -1])


@pytest.mark.slow
@pytest.mark.outside
def test_swing_in_space_against_exudyn(record_number):
    theirs = [exudyn_swing(n, 5e-4) for n in (40, 80)]
    limit = (
        4 * theirs[1] - theirs[0]
    ) / 3  # Exudyn's own error falls with the square of its elements
    record_number(
        "Exudyn's swing in space, 80 elements against its limit [m]",
        np.linalg.norm(theirs[1] - limit),
        1e-4,
    )
    ours = [our_swing(n, 5e-4) for n in (10, 40)]
    errors = [np.linalg.norm(tip - limit) for tip, _ in ours]
    record_number(
        "swing in space: tip off the base's tangent, over the length",
        np.linalg.norm(ours[1][1]) / LENGTH,
        0.1,
        ">=",
    )
    record_number(
        "swing in space: tip against Exudyn, 40 elements each, over the length",
        np.linalg.norm(ours[1][0] - theirs[0]) / LENGTH,
        1e-3,
    )
    record_number(
        "swing in space: tip against Exudyn's limit, 40 elements, over the length",
        errors[1] / LENGTH,
        1e-3,
    )
    record_number(
        "swing in space: order of the difference from Exudyn's limit",
        0.5 * np.log2(errors[0] / errors[1]),
        (1.8, 2.2),
        "in",
    )
