"""Rigid segments, their springs and what joints add to them, against closed forms."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.transfer_matrix._layout import chain_layout
from flexjax.formulation.transfer_matrix._link import (
    build_chain,
    locate,
    on_segment,
    section_between,
    segment_bodies,
)

L, TAU = 0.6, 0.01
BEAM = dict(EA=50.0, GJ=0.7, EIy=2.0, EIz=3.0, rhoA=0.8, rhoIx=3e-3, rhoIy=1e-3, rhoIz=2e-3)
LINK = fx.Link("link", L, constants=fx.BeamConstants(**BEAM), damping=fx.Damping(strain_rate=TAU))
N = 3
l = L / N


@pytest.mark.parametrize("planar", [True, False])
def test_segments_of_a_uniform_link(planar):
    b = jax.jit(lambda link: segment_bodies(link, N, True, planar))(LINK)
    axes = [2] if planar else [0, 1, 2]
    dim = 2 if planar else 3
    rhoA = BEAM["rhoA"]
    half = np.array([0.5 * l / BEAM[k] for k in ("GJ", "EIy", "EIz")])[axes]
    rotary = np.array([BEAM[k] for k in ("rhoIx", "rhoIy", "rhoIz")])[axes] * l
    lever = np.array([0.0, 1.0, 1.0])[axes] * rhoA * l**3
    about_end, about_centre = rotary + lever / 3, rotary + lever / 12
    lag = TAU + np.sqrt(half * about_centre)
    per_half = lambda x: np.broadcast_to(x[0] if planar else x, b.compliance.shape)
    np.testing.assert_allclose(b.reach, [[l, 0, 0][:dim]] * N, atol=1e-15)
    np.testing.assert_allclose(b.mass, [rhoA * l] * N, rtol=1e-13)
    np.testing.assert_allclose(b.moment, [[rhoA * l**2 / 2, 0, 0][:dim]] * N, atol=1e-15)
    wanted = about_end[0] if planar else np.diag(about_end)
    np.testing.assert_allclose(b.inertia, [wanted] * N, atol=1e-15)
    np.testing.assert_allclose(b.compliance, per_half(half), rtol=1e-13)
    np.testing.assert_allclose(b.compliance_times_tau, per_half(TAU * half), rtol=1e-13)
    np.testing.assert_allclose(b.compliance_times_lag, per_half(lag * half), rtol=1e-10)
    assert np.all(b.rest_angle == 0)


def test_compliance_of_pieces_is_that_of_their_stretches():
    """The border, at 0.3 of the link, is inside the first of two halves of three segments."""
    soft = fx.BeamConstants(**(BEAM | dict(EIz=1.0, rhoA=0.4)))
    pieces = (fx.Piece(0.3, constants=soft), fx.Piece(0.7, constants=LINK.constants))
    link = fx.Link("link", L, pieces=pieces)
    b = jax.jit(lambda link: segment_bodies(link, N, False, True))(link)
    edges = np.linspace(0.0, L, 2 * N + 1)
    first = np.clip(0.3 * L, edges[:-1], edges[1:]) - edges[:-1]
    rest = L / (2 * N) - first
    np.testing.assert_allclose(b.compliance.ravel(), first / 1.0 + rest / 3.0, rtol=1e-12)
    masses = (0.4 * first + 0.8 * rest).reshape(N, 2).sum(1)
    np.testing.assert_allclose(b.mass, masses, rtol=1e-12)


def test_a_curved_segment_is_an_arc():
    """Sections along it have its direction, and it ends on the chord."""
    link = dataclasses.replace(LINK, curvature=(0.0, 0.0, 0.9))
    at = jnp.linspace(0.0, l, 5)
    go = lambda d: on_segment(link, N, d)
    (x, y, angle), (dx, dy, turn) = jax.jit(lambda d: jax.jvp(go, (d,), (jnp.ones_like(d),)))(at)
    np.testing.assert_allclose(dx, np.cos(angle), atol=1e-12)
    np.testing.assert_allclose(dy, np.sin(angle), atol=1e-12)
    np.testing.assert_allclose(turn, 0.9, rtol=1e-12)
    np.testing.assert_allclose([x[0], y[0], y[-1], angle[2]], 0.0, atol=1e-15)
    np.testing.assert_allclose(x[-1], 2 / 0.9 * np.sin(0.45 * l), rtol=1e-12)


def test_stations_between_segments():
    s = jnp.array([0.0, 0.125, 0.25, 0.5, 0.875, 1.0])
    index, share = section_between(2, s)
    np.testing.assert_array_equal(index, [0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(share, [0.0, 0.5, 0.0, 0.5, 0.5, 1.0])
    where, distance = locate(2, jnp.asarray(0.75), jnp.asarray(L))
    np.testing.assert_array_equal(where, [0.0, 1.0])
    np.testing.assert_allclose(distance, [0.75 * L, 0.25 * L])
    np.testing.assert_array_equal(locate(2, jnp.asarray(1.0), jnp.asarray(L))[0], [0.0, 1.0])


K, C = 40.0, 0.3
LOAD = fx.Payload("load", "upper", 0.2, inertia=4e-3, s=0.75)


def two_links(planar):
    upper, fore = (dataclasses.replace(LINK, name=name) for name in ("upper", "fore"))
    hub = fx.Hub(0.1, 5e-3) if planar else None
    spring = dict(stiffness=K, damping=C) if planar else {}
    joints = [
        fx.Joint("base", "revolute", "ground", "upper", offset=(0.1, 0.2, 0.0)),
        fx.Joint("elbow", "revolute", "upper", "fore", offset=(0.03, 0.02, 0), hub=hub, **spring),
    ]
    return fx.Robot("two", [upper, fore], joints, [LOAD], planar=planar)


@eqx.filter_jit
def chain(robot, layout):
    return build_chain(robot, layout, False)


def test_a_flexible_joint_with_hub_offset_and_payload():
    robot = two_links(True)
    layout = chain_layout(robot, (2, 2), True)  # two segments, the hub, two segments
    c = chain(robot, layout)
    seg, h = L / 2, L / 4 / BEAM["EIz"]
    inside = [0, 1, 4]  # connections between halves alone: at the base, inside the links
    np.testing.assert_allclose(c.offset, [0.1, 0.2])
    np.testing.assert_allclose(c.bodies.reach[1], [seg + 0.03, 0.02], rtol=1e-13)
    rhoA = BEAM["rhoA"]
    np.testing.assert_allclose(
        c.bodies.mass, [rhoA * seg, rhoA * seg + 0.2, 0.1, *[rhoA * seg] * 2]
    )
    own = rhoA * seg**3 / 3
    d = 0.5 * seg  # of the payload from the inboard point of the second segment
    np.testing.assert_allclose(c.bodies.moment[1], [rhoA * seg**2 / 2 + 0.2 * d, 0.0], atol=1e-15)
    wanted = [own, own + 4e-3 + 0.2 * d**2, 5e-3, own, own]
    np.testing.assert_allclose(c.bodies.inertia, wanted, rtol=1e-12)
    halves = np.array([h, 2 * h, h, h, 2 * h])  # the hub is rigid: the elbow has one half before it
    np.testing.assert_allclose(c.connections.compliance, halves, rtol=1e-12)
    total = halves + np.array([0, 0, 1 / K, 0, 0])
    spring = np.where(np.arange(5) == 0, c.connections.spring[0], 1 / total)
    np.testing.assert_allclose(c.connections.spring, spring, rtol=1e-12)
    late = TAU * halves + np.array([0, 0, C / K**2, 0, 0])
    np.testing.assert_allclose(c.connections.damper[1:], (late / total**2)[1:], rtol=1e-12)
    np.testing.assert_allclose(c.connections.joint_share[2], 1 / K / total[2], rtol=1e-12)
    assert np.all(c.connections.joint_share[np.array(inside)] == 0)


def test_connections_in_space():
    robot = two_links(False)
    c = chain(robot, chain_layout(robot, (2, 2), True))
    halves = L / 4 / np.array([BEAM[k] for k in ("GJ", "EIy", "EIz")])
    assert c.connections.compliance.shape == (4, 2, 3)
    np.testing.assert_allclose(c.connections.compliance[1:, 0], [halves] * 3, rtol=1e-12)
    np.testing.assert_allclose(c.connections.compliance[:, 1], [halves] * 4, rtol=1e-12)
    assert np.all(c.connections.compliance[0, 0] == 0)
    np.testing.assert_allclose(c.connections.axes[[0, 2], 0], [[0, 0, 1]] * 2, atol=1e-15)
    np.testing.assert_allclose(c.bodies.reach[1], [L / 2 + 0.03, 0.02, 0.0], atol=1e-15)
    d = L / 4
    point = np.diag([0.0, 0.2 * d**2, 0.2 * d**2])
    gained = c.bodies.inertia[1] - c.bodies.inertia[0]
    np.testing.assert_allclose(gained - point, np.diag(np.diag(gained - point)), atol=1e-15)
    np.testing.assert_allclose(gained[2, 2], 4e-3 + 0.2 * d**2, rtol=1e-9)
    np.testing.assert_allclose(c.bodies.moment[1] - c.bodies.moment[0], [0.2 * d, 0, 0], atol=1e-15)
