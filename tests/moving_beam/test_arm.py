"""The arm as a rigid body, and its payloads and dampers, against closed forms."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.moving_beam import _link
from flexjax.formulation.moving_beam._carrier import arm_layout
from flexjax.formulation.moving_beam.beam._shapes import Shapes

MU, EI, TAU, DRAG = 1.2, 3.0, 0.05, 0.4
J = (2e-3, 1e-3, 3e-3)
BEAM = fx.BeamConstants(
    EA=1e3, EIy=2.0, EIz=EI, GJ=1.0, rhoA=MU, rhoIx=J[0], rhoIy=J[1], rhoIz=J[2]
)
OFFSET = np.array([0.03, 0.05, -0.02])


def telescope(slides):
    """A tube on a pin or that slides through its joint, and one that slides in it; the payload is
    beside the axis."""
    damping = fx.Damping(strain_rate=TAU, mass=DRAG)
    outer = fx.Link("outer", 0.6, constants=BEAM, damping=damping)
    inner = fx.Link("inner", 0.5, constants=BEAM, damping=damping)
    joints = [
        fx.Joint("base", "prismatic" if slides else "revolute", "ground", "outer"),
        fx.Joint("slide", "prismatic", "outer", "inner"),
    ]
    load = fx.Payload("load", "inner", 0.7, offset=OFFSET, inertia=(0.01, 0.02, 0.03))
    return fx.Robot("telescope", [outer, inner], joints, [load])


@eqx.filter_jit
def quantities(robot, layout, d, z, d_rate, twin):
    arm = _link.arm_parameters(robot, layout, True)
    payloads = _link.payload_parameters(robot, layout)
    y = jnp.zeros((layout.elements, layout.shapes.size))
    still = jnp.zeros_like(y)
    twice = lambda a, b: jnp.stack([a, b])
    rates = _link.Rates(twice(z, twin), twice(d_rate, jnp.zeros_like(d_rate)), twice(still, still))
    one = _link.Rates(z, d_rate, still)
    return dict(
        mesh=arm.mesh(d),
        first=_link.first_moment(arm, d, y),
        product=_link.kinetic(arm, d, y, rates),
        load=_link.payload_kinetic(arm, payloads, d, y, rates),
        position=_link.payload_position(arm, payloads, 0, d, y),
        lost=_link.dissipation(arm, False, d, y, one),
        point=_link.point(arm, d, y, 0, jnp.asarray(0.25)),
    )


def rods(ends, z, twin, speeds):
    """v^T M v' / 2 of straight rods on the x axis; ``speeds``: along it, of the first motion."""
    total = 0.0
    for (a, b), speed in zip(ends, speeds, strict=True):
        x, w = np.polynomial.legendre.leggauss(4)
        x, w = 0.5 * (b - a) * x + 0.5 * (a + b), 0.5 * (b - a) * w
        for point, weight in zip(x, w, strict=True):
            u, v = (t[:3] + np.cross(t[3:], [point, 0, 0]) for t in (z, twin))
            u = u + np.array([speed, 0, 0])
            total += 0.5 * weight * (MU * u @ v + np.sum(np.array(J) * z[3:] * twin[3:]))
    return total


@pytest.mark.parametrize("slides", [False, True])
def test_a_straight_telescope(slides):
    robot = telescope(slides)
    layout = arm_layout(robot, 4, Shapes.of({}))
    rng = np.random.default_rng(0)
    z, twin = rng.normal(size=(2, 6))
    free, free_rate = (0.5, -0.3) if slides else (0.6, 0.0)  # of the outer tube
    out, rate = 0.45, 0.8  # of the inner tube's end from that of the outer
    d, d_rate = ([free, out], [free_rate, rate]) if slides else ([out], [rate])
    found = quantities(robot, layout, *map(jnp.asarray, (d, z, d_rate, twin)))
    tip, speed = free + out, free_rate + rate
    starts, lengths = found["mesh"]
    np.testing.assert_allclose(np.sum(lengths), tip, rtol=1e-13)
    np.testing.assert_allclose(starts, np.concatenate([[0.0], np.cumsum(lengths)[:-1]]), atol=1e-14)
    assert np.min(np.abs(starts - (tip - 0.5))) < 1e-14  # a node where the overlap begins
    ends, speeds = [(free - 0.6, free), (tip - 0.5, tip)], [free_rate, speed]
    mass, moment = found["first"]
    np.testing.assert_allclose(mass, MU * 1.1, rtol=1e-13)
    along = sum(MU * 0.5 * (b**2 - a**2) for a, b in ends)
    np.testing.assert_allclose(moment, [along, 0, 0], atol=1e-13)
    np.testing.assert_allclose(found["product"], rods(ends, z, twin, speeds), rtol=1e-11)
    where = np.array([tip, 0.0, 0.0]) + OFFSET
    np.testing.assert_allclose(found["position"][0], where, atol=1e-14)
    u, v = (t[:3] + np.cross(t[3:], where) for t in (z, twin))
    u = u + np.array([speed, 0.0, 0.0])
    about = np.array([0.01, 0.02, 0.03])
    wanted = 0.5 * 0.7 * u @ v + 0.5 * np.sum(about * z[3:] * twin[3:])
    np.testing.assert_allclose(found["load"], wanted, rtol=1e-12)
    assert float(found["lost"]) == pytest.approx(0.0, abs=1e-14)  # no material is deformed
    np.testing.assert_allclose(found["point"][0], [free - 0.45, 0.0, 0.0], atol=1e-14)


def test_a_beam_of_pieces_has_a_node_on_their_border():
    L, heavy = 0.8, dataclasses.replace(BEAM, rhoA=jnp.asarray(2.4))
    pieces = (fx.Piece(0.25, constants=BEAM), fx.Piece(0.75, constants=heavy))
    robot = fx.Robot.serial([fx.Link("a", L, pieces=pieces)], planar=True)
    layout = arm_layout(robot, 4, Shapes.of({}))
    arm = eqx.filter_jit(lambda robot: _link.arm_parameters(robot, layout, True))(robot)
    starts, lengths = arm.mesh(jnp.zeros(0))
    border = 0.25 * L
    assert np.min(np.abs(starts - border)) < 1e-14
    first = np.asarray(starts) < border - 1e-9
    np.testing.assert_allclose(np.sum(lengths[first]), border, rtol=1e-13)
    np.testing.assert_allclose(np.sum(lengths), L, rtol=1e-13)
    np.testing.assert_allclose(arm.rhoA[:, 0], np.where(first, MU, 2.4), rtol=1e-13)


def test_dampers_of_a_bent_beam():
    """Rates of a constant curvature: EI tau kappa'^2 L / 2 and drag mu int w'^2 / 2."""
    L, kappa = 0.6, 0.3
    damping = fx.Damping(strain_rate=TAU, mass=DRAG)
    robot = fx.Robot.serial([fx.Link("a", L, constants=BEAM, damping=damping)], planar=True)
    layout = arm_layout(robot, 2, Shapes.of({}))
    rate = np.zeros((2, layout.shapes.node + layout.shapes.own))
    x = np.array([0.5, 1.0]) * L
    rows = {f: i for f, i in _link_rows(layout).items()}
    rate[:, rows["uy"]] = 0.5 * kappa * x**2
    rate[:, rows["uy"] + 1] = kappa * x

    @eqx.filter_jit
    def lost(robot, flat):
        arm, n = _link.arm_parameters(robot, layout, True), layout.elements
        d, still = jnp.zeros(0), jnp.zeros((n, layout.shapes.size))
        y_rate = _link.element_unknowns(flat, n, layout.node)
        return _link.dissipation(arm, True, d, still, _link.Rates(jnp.zeros(6), d, y_rate))

    by_strain = 0.5 * EI * TAU * kappa**2 * L
    by_drag = 0.5 * DRAG * MU * kappa**2 / 4 * L**5 / 5
    np.testing.assert_allclose(
        lost(robot, jnp.asarray(rate.reshape(-1))), by_strain + by_drag, rtol=1e-11
    )


def _link_rows(layout):
    from flexjax.formulation.moving_beam.beam._shapes import field_rows

    shapes = layout.shapes
    return {f: r[len(r) // 2] - shapes.node for f, r in field_rows(shapes).items()}
