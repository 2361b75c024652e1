"""Every solver under every kind of drive in every formulation: the motion of the rigid arm, or a
refusal before tracing.

The link is short and stiff, so that each formulation moves as a rigid body does. The reference is
an explicit Runge-Kutta method on the rigid arm.

The jump of forces at the start excites modes that a step does not resolve. Their damping is so
strong that the trapezoidal rule multiplies them by nearly -1 in every step: they alternate in rates
and in the effort of a Motion (by 7 % of it in FiniteElement). So rates and efforts are compared as
weighted means of three steps, which contain nothing of them."""

import functools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from tests.contract_cases import CONTRACTS, RIGID, light, method, settings

DT = 2.5e-3
TS = DT * jnp.arange(81)
START = {"root": 0.4}

SOLVERS = {
    type(solver).__name__: solver
    for solver in (
        fx.Newmark(),
        fx.GeneralisedAlpha(0.9),
        fx.DiscreteGradient(),
        fx.ChainNewmark(),
        fx.ImplicitMidpoint(),
        fx.TRBDF2(),
    )
}


@functools.cache
def robot() -> fx.Robot:
    steel = fx.Material(E=2e11, nu=0.3, rho=7800.0)
    damping = fx.Damping(strain_rate=1e-3)
    section = fx.Rectangle(0.03, 0.03)
    link = fx.Link("link", 0.4, section=section, material=steel, damping=damping)
    joint = fx.Joint("root", "revolute", "ground", "link", hub=fx.Hub(0.1, 2e-3))
    return fx.Robot("stiff", (link,), (joint,), (fx.Payload("tool", "link", 0.3),), planar=True)


def feedback(t, q, qd, gains):
    return gains[0] * (0.8 - q) - gains[1] * qd + jnp.sin(3 * t)


def shaken() -> fx.Base:
    to = fx.stack([fx.sine(0.05, 2.0), fx.sine(0.03, 3.0), fx.constant(0.0)])
    return fx.Base(translation=to, angle=fx.sine(0.3, 1.5))


def drive(kind: str) -> fx.Drive:
    push = fx.stack([fx.constant(x) for x in (5.0, 8.0, 0.0, 0.0, 0.0, 0.4)])
    loads = (fx.Load("link", push, s=0.7), fx.Load("link", push, frame="section"))
    joint = {
        "Motion": fx.Motion(fx.polynomial([0.4, 1.0, 2.0])),
        "Effort": fx.Effort(fx.polynomial([6.0, 20.0])),
        "PD": fx.PD(60.0, 3.0, fx.quintic(0.4, 1.2, 0.3)),
        "Feedback": fx.Feedback(feedback, jnp.array([60.0, 3.0])),
    }
    return fx.Drive(
        joints=dict([("root", joint[name]) for name in joint if name in kind]),
        loads=loads if "Load" in kind else (),
        base=shaken() if "base" in kind else None,
    )


@functools.cache
def model(name: str) -> fx.AbstractModel:
    return method(name, "solver drives").bind(robot())


def accepted(name: str, solver: str) -> bool:
    """Whether the formulation's equations have the form that the solver integrates."""
    return isinstance(model(name).term(drive("")), SOLVERS[solver].term_structure)


def run(name, kind, solver):
    start = None if "Motion" in kind else START
    how = dict(substeps=1, solver=solver, start=start, stations=2)
    return fx.simulate(model(name), drive(kind), TS, **how)


@functools.cache
def reference(kind: str):
    return run(RIGID[0], kind, diffrax.Tsit5())


def smooth(x):
    """Means of three steps: without what alternates from step to step."""
    return 0.25 * (x[:-2] + 2 * x[1:-1] + x[2:])


def wrong(traj, kind: str) -> dict[str, float]:
    """Distances from the reference in the second half, relative to its size."""
    ref = reference(kind)
    scale = lambda x: 1.0 + float(np.max(np.abs(x)))
    return {
        name: float(np.max(np.abs(np.asarray(got - want)[TS.size // 2 :]))) / scale(want)
        for name, got, want in (
            ("tip", traj.tip, ref.tip),
            ("joint", traj.q, ref.q),
            ("rate", smooth(traj.qd), smooth(ref.qd)),
            ("effort", smooth(traj.effort), smooth(ref.effort)),
            ("work", traj.energy.work, ref.energy.work),
            ("balance", traj.energy.balance - traj.energy.balance[0], 0.0 * ref.energy.work),
        )
    }


KINDS = ("base", "Motion", "Effort", "Load", "PD", "Feedback")
MIXED = ("base and Load", "base and Motion and Load", "base and PD and Load")
# In `make test`: of formulations without elastic links, and of the light ones.
QUICK = {
    ("DiscreteGradient", "base and Load"),
    ("DiscreteGradient", "base and Motion and Load"),
    ("Newmark", "base and Load"),
    ("Newmark", "Feedback"),
    ("GeneralisedAlpha", "base and Motion and Load"),
}
LIGHT = {("ChainNewmark", "base and PD and Load")}


def cases():
    for name in CONTRACTS:
        quick = (QUICK if name in RIGID else set()) | (LIGHT if name in light() else set())
        for solver in SOLVERS:
            for kind in (*KINDS, *MIXED):
                marks = () if (solver, kind) in quick else pytest.mark.slow
                yield pytest.param(name, solver, kind, marks=marks)


def refused(name: str, solver: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"solver: {solver} integrates"):
        fx.simulate(model(name), drive(kind), TS, solver=SOLVERS[solver])


@pytest.mark.parametrize(("name", "solver", "kind"), list(cases()))
def test_drive_acts_as_on_the_rigid_arm(name, solver, kind):
    if not accepted(name, solver):
        return refused(name, solver, kind)
    limits = dict.fromkeys(("tip", "joint", "rate", "effort", "work", "balance"), 2e-3)
    limits |= settings(name, "solver drives")
    found = wrong(run(name, kind, SOLVERS[solver]), kind)
    assert not {k: x for k, x in found.items() if not x <= limits[k]}


@pytest.mark.parametrize("name", CONTRACTS)
def test_other_solvers_are_refused(name):
    mine = {solver for solver in SOLVERS if accepted(name, solver)}
    assert type(model(name).default_solver(drive("Effort"))).__name__ in mine
    for other in SOLVERS.keys() - mine:
        refused(name, other, "Effort")
