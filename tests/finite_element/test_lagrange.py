"""The chain with finite-element links against an independent Lagrangian: every joint type on
elastic links, every term of the equations at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.numerics.term import Instant, Mechanical, State
from tests.finite_element.arms import both, coordinates, model_of
from tests.finite_element.lagrangian import turn

# Links of constant length, a contact on one of them, and one on a link that itself runs through its
# joint; payload on the centreline and off it.
ARMS = {
    "RR": (["R", "R"], [2, 1], (0.2, 0.003, 0.0, 0.0)),
    "RPa": (["R", "Pa"], [2, 1], (0.2, 0.003, 0.0, 0.0)),
    "PbPa": (["Pb", "Pa"], [2, 1], (0.2, 0.003, 0.05, -0.02)),
}


# The other two arms have what "RR" has, and a contact besides.
@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.slow) if n == "RR" else n for n in ARMS],
)
def case(request):
    kinds, elements, payload = ARMS[request.param]
    lengths = [0.8, 0.5, 0.6, 0.4][: len(kinds)]
    robot, arm = both(kinds, lengths=lengths, elements=elements, payload=payload)
    q, v = coordinates(kinds, lengths, arm.size, np.random.default_rng(0))
    efforts = [0.3 * (i + 1) for i in range(len(kinds))]
    drive = fx.Drive(
        joints={f"joint{i + 1}": fx.Effort(fx.constant(e)) for i, e in enumerate(efforts)}
    )
    force = jnp.zeros(arm.size).at[: len(kinds)].set(jnp.array(efforts))
    term = model_of(robot, elements).term(drive)
    wanted = jax.jit(
        lambda q, v: (
            arm.mass(q, v),
            arm.bias(q, v) - force,
            arm.kinetic(q, v),
            arm.potential(q),
            jax.grad(arm.kinetic)(q, v),
        )
    )(q, v)
    return request.param, term, arm, q, v, [np.asarray(x) for x in wanted]


def test_forward_and_inverse_dynamics(case, record_number):
    name, term, _, q, v, (M, bias, *_) = case
    wanted = np.linalg.solve(M, -bias)
    found, gap = jax.jit(
        lambda q, v, a: (term.accelerate(Instant(0.0), q, v), term.balance(Instant(0.0), q, v, a))
    )(q, v, jnp.asarray(wanted))
    record_number(
        f"acceleration of {name}, relative",
        float(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted))),
        1e-10,
    )
    record_number(
        f"equations of motion of {name}, relative",
        float(np.max(np.abs(gap)) / np.max(np.abs(bias))),
        1e-11,
    )


def test_energies_and_their_gradients(case, record_number):
    name, term, arm, q, v, (M, _, kinetic, potential, gradient) = case
    (T, elastic, gravity), (p, _, dL) = jax.jit(
        lambda q, v: (term.energies(Instant(0.0), q, v), term.lagrangian(q, v, v))
    )(q, v)
    assert abs(T - kinetic) < 1e-12 * kinetic
    assert abs(elastic + gravity - potential) < 1e-11 * (elastic + abs(gravity))
    np.testing.assert_allclose(p, M @ v, rtol=1e-10, atol=1e-11)
    wanted = gradient - np.asarray(jax.jit(jax.grad(arm.potential))(q))
    record_number(
        f"gradient of the Lagrangian of {name}, relative",
        float(np.max(np.abs(dL - wanted)) / np.max(np.abs(wanted))),
        1e-11,
    )


@pytest.mark.slow  # compiles a whole snapshot
def test_reactions(case, record_number):
    """The wrench of a joint is the rate of momentum of the links after it, less their weight."""
    name, term, arm, q, v, (M, bias, *_) = case
    model = fx.FiniteElement(
        elements={link.name: n for link, n in zip(term.robot.links, ARMS[name][1], strict=True)},
        stiffening=False,
    ).bind(term.robot)
    state = State.fresh(Mechanical(q, v), q.dtype, term.drive.initial_memory(term.robot))
    snapshot = jax.jit(
        lambda y: model.observe(jnp.zeros(()), y, term.drive, jnp.array([0.0, 1.0]))
    )(state)
    a, error, scale = jnp.asarray(np.linalg.solve(M, -bias)), 0.0, 0.0
    for joint in range(len(arm.pieces)):
        wanted = 0.0
        for i in range(joint, len(arm.pieces)):
            rate = jax.jvp(lambda q, v, i=i: arm.momentum(i, q, v)[0], (q, v), (v, a))[1]
            wanted = wanted + rate - arm.momentum(i, q, v)[1] * arm.gravity
        found = turn(arm.frames(q)[joint][1]) @ snapshot.reaction[joint, :2]
        error, scale = (
            max(error, float(np.max(np.abs(found - wanted)))),
            max(scale, float(np.max(np.abs(wanted)))),
        )
    record_number(f"reactions of {name}, relative", error / scale, 1e-9)


@pytest.mark.slow  # compiles a whole snapshot
def test_efforts_of_prescribed_motions(case, record_number):
    """A prescribed joint takes the effort of its row; the other joint has its own drive."""
    name, term, arm, q, v, (M, bias, *_) = case
    model = fx.FiniteElement(
        elements={link.name: n for link, n in zip(term.robot.links, ARMS[name][1], strict=True)},
        stiffening=False,
    ).bind(term.robot)
    given = 1.7
    drive = fx.Drive(
        joints={**term.drive.joints, "joint2": fx.Motion(fx.polynomial([q[1], v[1], 0.5 * given]))}
    )
    state = State.fresh(Mechanical(q, v), q.dtype, drive.initial_memory(model.robot))
    snapshot = jax.jit(lambda y: model.observe(jnp.zeros(()), y, drive, jnp.array([0.0, 1.0])))(
        state
    )
    # ``bias`` holds the effort of the second joint that the fixture's drive has.
    free = np.arange(arm.size) != 1
    a = np.full(arm.size, given)
    a[free] = np.linalg.solve(M[np.ix_(free, free)], -bias[free] - M[free, 1] * given)
    wanted = M[1] @ a + bias[1] + 0.6
    record_number(
        f"{name}: effort of a prescribed joint, relative",
        float(abs(snapshot.effort[1] / wanted - 1)),
        1e-10,
    )
    record_number(
        f"{name}: acceleration beside it, relative",
        float(np.max(np.abs(snapshot.qdd - a[:2])) / np.max(np.abs(a[:2]))),
        1e-10,
    )
