"""Other codes: swings of planar arms in Exudyn (absolute nodal coordinates: another discretisation,
another strain measure), rigid arms in pinocchio.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.term import Instant
from tests.screw_synthesis.arms import CONSTANTS, SLENDER, arm

END = 0.4


def exudyn_swing(links: int, elements: int = 8, dt: float = 2.5e-4):
    """Tip of an arm of ANCF cables with hinges, released straight and horizontal."""
    exudyn = pytest.importorskip("exudyn")
    import exudyn.itemInterface as eii

    container = exudyn.SystemContainer()
    mbs = container.AddSystem()
    h = 0.8 / elements
    fixed = mbs.AddMarker(
        eii.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(eii.NodePointGround()), coordinate=0)
    )
    last = None
    for k in range(links):
        nodes = [
            mbs.AddNode(
                eii.NodePoint2DSlope1(referenceCoordinates=[0.8 * k + i * h, 0.0, 1.0, 0.0])
            )
            for i in range(elements + 1)
        ]
        for a, b in zip(nodes[:-1], nodes[1:], strict=True):
            beam = eii.ObjectANCFCable2D(
                nodeNumbers=[a, b],
                length=h,
                massPerLength=CONSTANTS["rhoA"],
                bendingStiffness=CONSTANTS["EIz"],
                axialStiffness=CONSTANTS["EA"],
            )
            marker = mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=mbs.AddObject(beam)))
            mbs.AddLoad(eii.Gravity(markerNumber=marker, loadVector=[0.0, -9.81, 0.0]))
        for coordinate in (0, 1):
            here = mbs.AddMarker(
                eii.MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=coordinate)
            )
            there = (
                fixed
                if last is None
                else mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=last, coordinate=coordinate))
            )
            mbs.AddObject(eii.CoordinateConstraint(markerNumbers=[there, here]))
        last = nodes[-1]
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.endTime = END
    settings.timeIntegration.numberOfSteps = round(END / dt)
    settings.timeIntegration.adaptiveStep = False
    settings.timeIntegration.newton.absoluteTolerance = 1e-7
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
    assert mbs.SolveDynamic(settings)
    return np.asarray(mbs.GetNodeOutput(last, exudyn.OutputVariableType.Position))[:2]


@pytest.mark.slow
@pytest.mark.parametrize("links", [2, 3])
def test_swing_in_exudyn(links, record_number):
    theirs = exudyn_swing(links)
    link = fx.BeamConstants(**(CONSTANTS | SLENDER))
    robot = fx.Robot.serial([fx.Link(f"link{i}", 0.8, constants=link) for i in range(links)])
    model = fx.ScrewSynthesis(modes=3).bind(robot)
    traj = fx.simulate(model, None, jnp.array([0.0, END]), dt=5e-4, stations=2)
    record_number(
        f"{links}-link swing: tip against Exudyn's ANCF cables [m]",
        np.linalg.norm(traj.tip[-1, :2] - theirs),
        3e-4,
    )


def test_rigid_limit_is_pinocchio(record_number):
    """Without shape functions the recursion is Newton and Euler's; pinocchio's articulated-body
    algorithm is the judge.
    """
    pin = pytest.importorskip("pinocchio")
    n, axes = 3, ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    term = fx.ScrewSynthesis(modes=0).bind(arm(("revolute",) * n, axes=axes)).term(fx.Drive())
    model, parent = pin.Model(), 0
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    m, L = CONSTANTS["rhoA"] * 0.8, 0.8
    sections = np.diag([CONSTANTS[k] * L for k in ("rhoIx", "rhoIy", "rhoIz")])
    body = pin.Inertia(
        m, np.array([L / 2, 0.0, 0.0]), np.diag([0.0, m * L**2 / 12, m * L**2 / 12]) + sections
    )
    for i in range(n):
        joint = pin.JointModelRevoluteUnaligned(*axes[i])
        parent = model.addJoint(
            parent, joint, pin.SE3(np.eye(3), np.array([L if i else 0.0, 0.0, 0.0])), f"joint{i}"
        )
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    rng = np.random.default_rng(3)
    q, v = rng.normal(size=n), rng.normal(size=n)
    theirs = pin.aba(model, model.createData(), q, v, np.zeros(n))
    ours = jax.jit(lambda q, v: term.accelerate(Instant(0.0), q, v))(jnp.asarray(q), jnp.asarray(v))
    record_number(
        "screw synthesis without modes: accelerations against pinocchio",
        np.max(np.abs(ours - theirs)),
        1e-8,
    )
