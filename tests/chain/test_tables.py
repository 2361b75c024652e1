"""Places of the coordinates of joints and shapes, for joints that are listed in any order."""

import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.mechanism.chain import serial_layout
from flexjax.mechanism.chain.geometry._kinematics import (
    from_joints,
    from_shapes,
    to_joints,
    to_shapes,
)

LINKS = [fx.Link(name, 1.0, rigid=True, body=fx.Body(1.0)) for name in "abc"]
PLACES = [("ground", "a"), ("a", "b"), ("b", "c")]


def layout(types, order, shapes=None):
    joints = [
        fx.Joint(f"j{child}", kind, parent, child, **_axes(kind))
        for kind, (parent, child) in zip(types, PLACES, strict=True)
    ]
    return serial_layout(fx.Robot("arm", LINKS, [joints[i] for i in order]), shapes)


def _axes(kind):
    if kind == "universal":
        return dict(axis=(0.0, 1.0, 0.0), axis2=(0.0, 0.0, 1.0))
    return {} if kind in ("fixed", "spherical") else dict(axis=(0.0, 0.0, 1.0))


# Types from the base on, their order in the robot, and the place of every stage's rates in it.
CASES = {
    "in order": (("revolute",) * 3, (0, 1, 2), [[0], [1], [2]]),
    "reversed": (("revolute",) * 3, (2, 1, 0), [[2], [1], [0]]),
    "a weld": (("revolute", "fixed", "revolute"), (0, 1, 2), [[0], [-1], [1]]),
    "a weld at the end": (("revolute", "revolute", "fixed"), (0, 1, 2), [[0], [1], [-1]]),
}


@pytest.mark.parametrize("name", CASES)
def test_rates_of_the_stages(name):
    types, order, places = CASES[name]
    lay = layout(types, order)
    rates = np.arange(10.0, 10.0 + lay.dofs)
    stages = np.append(rates, 0.0)[np.array(places)]
    np.testing.assert_array_equal(to_joints(lay, jnp.asarray(rates)), stages)
    np.testing.assert_array_equal(from_joints(lay, jnp.asarray(stages)), rates)


def test_a_ball_has_three_columns():
    lay = layout(("revolute", "spherical", "revolute"), (1, 0, 2))
    stages = to_joints(lay, jnp.arange(10.0, 15.0))
    np.testing.assert_array_equal(stages, [[13, 0, 0], [10, 11, 12], [14, 0, 0]])
    np.testing.assert_array_equal(from_joints(lay, stages), np.arange(10.0, 15.0))


@pytest.mark.parametrize(
    ("shapes", "places"),
    [
        ({"a": 2, "b": 2, "c": 2}, [[0, 1], [2, 3], [4, 5]]),
        ({"a": 1, "c": 2}, [[0, -1], [-1, -1], [1, 2]]),
    ],
)
def test_shapes_of_the_stages(shapes, places):
    lay = layout(("revolute",) * 3, (0, 1, 2), shapes)
    values = np.concatenate([np.zeros(3), np.arange(10.0, 10.0 + sum(shapes.values()))])
    stages = np.append(values[3:], 0.0)[np.array(places)]
    np.testing.assert_array_equal(to_shapes(lay, jnp.asarray(values)), stages)
    np.testing.assert_array_equal(from_shapes(lay, jnp.asarray(stages)), values)
