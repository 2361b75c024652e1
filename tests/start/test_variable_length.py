"""Shapes of links that run through joints, carry sliding joints, telescope, or close loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.moving_beam._observe import _world
from flexjax.mechanism.chain.geometry._kinematics import to_shapes
from flexjax.numerics.screw import se3
from tests.start.rods import rod

S = np.linspace(0.0, 1.0, 6)


def under_force(s):
    return 0.01 * (3 * s**2 - s**3)


def deflections(model, start, link: int):
    """Deflection along y at the stations S of a chain's link, and its rate at fixed material."""
    stage = next(i for i, s in enumerate(model.layout.stages) if s.link == link)

    def along(q):
        eta = to_shapes(model.layout, q)
        at = lambda s: model.links.strain(eta, jnp.full(eta.shape[0], s))[0][stage, 1]
        return jax.vmap(at)(jnp.asarray(S))

    @jax.jit
    def look(start):
        mech = model.initial_state(fx.Drive(), jnp.zeros(()), start).mech
        return jax.jvp(along, (mech.q,), (mech.v,))

    return look(start)


def test_a_link_that_runs_through_its_joint():
    robot = fx.load_robot("my-rpb")
    model = fx.FiniteElement(elements=4).bind(robot)
    free, length = 0.48, float(robot.links[1].length)
    start = fx.Start({"guide": free}, links={"link2": fx.Shape(y=0.02, y_rate=0.1)})
    value, rate = deflections(model, start, 1)
    s = np.clip((S * length - (length - free)) / free, 0.0, None)
    np.testing.assert_allclose(value, under_force(s), atol=1e-15)
    np.testing.assert_allclose(rate, 5 * under_force(s), atol=1e-15)


@pytest.mark.parametrize("contact", ["ale", "fixed"])
def test_a_link_that_carries_a_sliding_joint(contact):
    carrier = rod("revolute")
    rider = fx.Link(
        "rider",
        0.3,
        section=fx.Rectangle(0.01, 0.01),
        material=fx.Material.named("steel"),
        rigid=True,
    )
    robot = fx.Robot(
        "carrier",
        [*carrier.links, rider],
        [*carrier.joints, fx.Joint("slide", "sliding", "rod", "rider")],
        gravity=(0.0, 0.0, 0.0),
        planar=True,
    )
    model = fx.FiniteElement(elements=4, contact=contact).bind(robot)
    start = fx.Start({"slide": 0.4}, {"slide": 0.3}, links={"rod": fx.Shape(y=0.02, y_rate=0.1)})
    value, rate = deflections(model, start, 0)
    np.testing.assert_allclose(value, under_force(S), atol=1e-15)
    # The mesh moves with the contact, the material does not.
    np.testing.assert_allclose(rate, 5 * under_force(S), atol=1e-14)


@pytest.mark.parametrize("stiffening", [False, True])
def test_a_frame_inside_the_link(stiffening):
    model = fx.ScrewSynthesis(frame=0.5, stiffening=stiffening).bind(rod("revolute"))
    start = fx.Start(links={"rod": fx.Shape(y=0.002, y_rate=0.1)})
    value, rate = deflections(model, start, 0)
    np.testing.assert_allclose(value, 0.1 * under_force(S), atol=1e-7)
    np.testing.assert_allclose(rate, 5 * under_force(S), atol=1e-5)


@pytest.mark.parametrize("planar", [True, False])
def test_the_tube_of_a_telescope_goes_on_along_the_tangent(planar):
    material = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    links = [
        fx.Link(name, 0.5, section=fx.Tube(d, 0.002), material=material)
        for name, d in (("outer", 0.03), ("inner", 0.024))
    ]
    joints = [
        fx.Joint("weld", "fixed", "ground", "outer"),
        fx.Joint("extend", "prismatic", "outer", "inner", home=0.2),
    ]
    robot = fx.Robot("telescope", links, joints, gravity=(0.0, 0.0, 0.0), planar=planar)
    model = fx.MovingBeam(elements=3).bind(robot)
    out = {} if planar else {"z": 0.01}
    shapes = {"outer": fx.Shape(y=0.02, **out), "inner": fx.Shape(y_rate=0.3)}
    start = fx.Start(rates={"extend": 0.1}, links=shapes)

    def tip(q):
        return _world(model.term(fx.Drive()), q, se3.identity(q.dtype), jnp.ones(1))[0][1, 0]

    @jax.jit
    def look(start):
        mech = model.initial_state(fx.Drive(), jnp.zeros(()), start).mech
        return jax.jvp(tip, (mech.q,), (mech.v,))

    place, speed = look(start)
    slope = np.array([1.5 * 0.02, 0.0 if planar else 1.5 * 0.01]) / 0.5
    tangent = np.array([np.sqrt(1 - slope @ slope), *slope])
    # Half the integral of the squared slope, which is (2 s - s^2) times the last one.
    shorter = 0.5 * 0.5 * (slope @ slope) * 8 / 15
    deflection = np.array([0.02, 0.0 if planar else 0.01])
    np.testing.assert_allclose(place[1:], deflection + 0.2 * tangent[1:], atol=1e-5)
    assert float(place[0]) == pytest.approx(0.5 - shorter + 0.2 * tangent[0], abs=1e-5)
    # Out along the tangent, and across it as the shape says.
    across = np.array([-tangent[1], tangent[0]])
    np.testing.assert_allclose(speed[:2], 0.1 * tangent[:2] + 0.3 * across, atol=2e-3)


def test_loops_close_with_bent_links():
    """A parallelogram with a deflected, moving bar: bars that meet in the closure move alike."""
    robot, name = fx.load_robot("macchelli-parallelogram"), "C"
    model = fx.PortHamiltonian(elements=4).bind(robot)
    length = float(robot.links[robot.link_index(name)].length)
    start = fx.Start(links={name: fx.Shape(y=0.02 * length, y_rate=0.3)})
    mech = jax.jit(lambda start: model.initial_state(fx.Drive(), jnp.zeros(()), start).mech)(start)
    (closure,) = robot.loop_joints
    ends = [robot.link_index(closure.parent), robot.link_index(closure.child)]
    cos, sin = jnp.cos(mech.orientation[0]), jnp.sin(mech.orientation[0])
    u, v = mech.V[0], mech.V[1]
    moving = np.stack([cos * u - sin * v, sin * u + cos * v], -1)[ends]
    places = np.moveaxis(np.asarray(mech.x), 0, -1)[ends]
    at = min(
        ((i, j) for i in (0, -1) for j in (0, -1)),
        key=lambda k: np.linalg.norm(places[0, k[0]] - places[1, k[1]]),
    )
    assert np.max(np.abs(moving)) > 0.05
    np.testing.assert_allclose(places[0, at[0]], places[1, at[1]], atol=1e-12)
    np.testing.assert_allclose(moving[0, at[0]], moving[1, at[1]], atol=1e-12)
