"""Kinematics of the nine two-link arms of the paper's appendix, and the element functions."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.mechanism.chain import kinematics
from flexjax.mechanism.chain.geometry._kinematics import poses, to_shapes
from flexjax.numerics.beam import bspline_cubics, hermite_cubics

CASES = json.loads((Path(__file__).parents[1] / "reference" / "001_kinematics.json").read_text())[
    "cases"
]
TYPES = {"R": "revolute", "Pa": "sliding", "Pb": "prismatic"}


def arm(case, flexible):
    first, second = case["config"].split("-")
    beam = dict(constants=fx.BeamConstants(EA=1, EIy=1, EIz=1, GJ=1, rhoA=1), rigid=not flexible)
    links = [fx.Link("one", case["L1"], **beam), fx.Link("two", case["L2"], **beam)]
    joints = [
        fx.Joint(
            name,
            TYPES[kind],
            parent,
            child,
            rotation=None if kind == "R" else [0.0, 0.0, case[gamma]],
        )
        for name, kind, parent, child, gamma in (
            ("a", first, "ground", "one", "gamma1"),
            ("b", second, "one", "two", "gamma2"),
        )
    ]
    return fx.Robot(case["config"], links, joints, gravity=[0.0, 0.0, 0.0], planar=True)


def turned(angle, x, y):
    return np.array([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)])


def by_table(case, u1=(0.0, 0.0), w1_end=0.0, w2_end=0.0):
    """(angles of both links, end of link 1, end point) by eqs. 1-6 with the corrected Table 2;
    ``u1``: deflection and slope of link 1 where link 2 hangs.
    """
    first, second = case["config"].split("-")
    angle = case["p1"] if first == "R" else case["gamma1"]
    origin = np.array([case["p1"] if first == "Pa" else 0.0, 0.0])
    free = case["p1"] if first == "Pb" else case["L1"]
    end = origin + turned(angle, free, w1_end)
    at = case["p2"] - (case["L1"] - free) if second == "Pa" else free
    origin = origin + turned(angle, at, u1[0])
    angles = [angle, angle + u1[1] + (case["p2"] if second == "R" else case["gamma2"])]
    return (
        angles,
        end,
        origin + turned(angles[1], case["p2"] if second == "Pb" else case["L2"], w2_end),
    )


def ends(model, q):
    """The same of a model."""
    kin = kinematics(model.layout, model.parameters, q, model.links)
    world = poses(model.parameters, kin, model.parameters.space.identity(q.dtype))
    if model.links is None:
        tips = jnp.stack([jnp.stack([link.length, jnp.zeros(())]) for link in model.robot.links])
    else:
        tips = model.links.section(to_shapes(model.layout, q), jnp.ones(2)).pose.position
    points = world.position + jnp.sum(world.rotation * tips[:, None, :], axis=2)
    return jnp.arctan2(world.rotation[:, 1, 0], world.rotation[:, 0, 0]), points[0], points[1]


def tip(model, q):
    return ends(model, q)[2]


def furthest(found, wanted):
    return max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
        for a, b in zip(found, wanted, strict=True)
    )


def coefficients(model, q, stage, station, wanted):
    """Shape coordinates of a stage with value and slope ``wanted`` at a material station: the
    smallest that do.
    """
    at = model.links._station(to_shapes(model.layout, q), jnp.full(2, station))
    _, lengths = model.links._split(to_shapes(model.layout, q))
    rows = np.stack([np.asarray(at.f[stage]), np.asarray(at.f1[stage] / lengths[stage])])[
        : len(wanted)
    ]
    return np.linalg.lstsq(rows, np.array(wanted), rcond=None)[0]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["config"])
def test_end_point(case, record_number):
    joints = jnp.array([case["p1"], case["p2"]])
    rigid = fx.FiniteElement(elements=0).bind(arm(case, False))
    np.testing.assert_allclose(tip(rigid, joints), case["r0E_rigid"], atol=2e-9)
    record_number(
        f"transforms and ends of {case['config']}, rigid",
        furthest(ends(rigid, joints), by_table(case)),
        1e-14,
    )
    model = fx.FiniteElement(elements=2, variant="paper").bind(arm(case, True))
    q = jnp.zeros(model.layout.nq).at[:2].set(joints)
    np.testing.assert_allclose(tip(model, q), case["r0E_rigid"], atol=2e-9)
    first, second = case["config"].split("-")
    # Pa: the printed d counts from the link's base; where the carrier runs through its joint, from
    # its rear end.
    station = case["p2"] / case["L1"] if second == "Pa" else 1.0
    c1 = coefficients(model, q, 0, station, [case["u1f"], case["u1s"]])
    q = q.at[2 : 2 + model.layout.shapes[0]].set(c1[: model.layout.shapes[0]])
    c2 = coefficients(model, q, 1, 1.0, [case["w2_tip"]])
    q = q.at[2 + model.layout.shapes[0] :].set(c2[: model.layout.shapes[1]])
    section = model.links.section(to_shapes(model.layout, q), jnp.ones(2)).pose.position[:, 1]
    table = by_table(case, (case["u1f"], case["u1s"]), float(section[0]), case["w2_tip"])
    record_number(
        f"transforms and ends of {case['config']}, flexible", furthest(ends(model, q), table), 1e-13
    )
    record_number(
        f"end point of {case['config']}, flexible [m]",
        float(np.max(np.abs(tip(model, q) - np.array(case["r0E_flexible"])))),
        2e-9,
    )


@pytest.mark.parametrize("cubics", [hermite_cubics, bspline_cubics])
def test_functions_are_clamped_and_smooth(cubics):
    n = 6
    table = cubics(n)
    c = np.append(np.random.default_rng(1).standard_normal(table.size), 0.0)
    local = np.einsum("epa,ea->ep", table.powers, c[table.index])
    left, right = local[1:], local[:-1]
    value = [
        left[:, 0] - right.sum(1),
        left[:, 1] - right @ [0, 1, 2, 3],
        2 * left[:, 2] - right @ [0, 0, 2, 6],
    ]
    smooth = 3 if cubics is bspline_cubics else 2
    assert np.max(np.abs(local[0, :2])) < 1e-13
    assert all(np.max(np.abs(v)) < 1e-12 for v in value[:smooth])
    assert smooth == 3 or np.max(np.abs(value[2])) > 1e-3
    # Both hold every parabola that is clamped.
    x = np.linspace(0, 1, 40)
    e = np.minimum((x * n).astype(int), n - 1)
    rows = np.zeros((40, table.size + 1))
    for k in range(40):
        np.add.at(
            rows[k],
            table.index[e[k]],
            np.vander([x[k] * n - e[k]], 4, increasing=True)[0] @ table.powers[e[k]],
        )
    fit = np.linalg.lstsq(rows[:, :-1], x**2, rcond=None)
    assert np.max(np.abs(rows[:, :-1] @ fit[0] - x**2)) < 1e-12


def test_zero_is_regular():
    """Gradients of the tip at the straight arm are finite and equal in both modes."""
    model = fx.FiniteElement(elements=2).bind(arm(CASES[0], True))
    q = jnp.zeros(model.layout.nq)
    forward, reverse = (
        jax.jacfwd(lambda q: tip(model, q))(q),
        jax.jacrev(lambda q: tip(model, q))(q),
    )
    assert np.all(np.isfinite(forward))
    np.testing.assert_allclose(forward, reverse, atol=1e-14)
