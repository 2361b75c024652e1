"""Names of numbers: every number has one, and each error says what is near."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array

from flexjax.robot import RobotError, examples, find_leaves, get_path, load_robot, paths, set_path


@pytest.mark.parametrize("name", list(examples()))
def test_every_leaf_has_a_path(name):
    robot = load_robot(name)
    names = paths(robot)
    assert len(names) == len(jax.tree.leaves(robot))
    for path, (value, unit) in names.items():
        assert get_path(robot, path) is value
        assert isinstance(unit, str)
    changed = robot
    for path, (value, _) in names.items():
        (found,) = find_leaves(robot, path)
        changed = eqx.tree_at(found.leaf_in, changed, value * 2)
    assert eqx.tree_equal(changed, jax.tree.map(lambda x: x * 2, robot))


def test_units():
    rpb = paths(load_robot("my-rpb"))
    assert rpb["joints.guide.home"].unit == "m"
    names = paths(load_robot("li-zhang-three-link"))
    assert names["joints.joint1.stiffness"].unit == "N m/rad"
    assert names["links.link1.material.E"].unit == "Pa"
    assert names["gravity"].unit == "m/s2"
    assert paths(load_robot("two-link"))["joints.elbow.home"].unit == "rad"
    text = str(names)
    assert "joints.joint1.stiffness" in text and "7.1e+10" in text and "kg/m3" in text


def test_names_indices_stars_components():
    robot = load_robot("two-link")
    assert get_path(robot, "links.1.length") is get_path(robot, "links.fore.length")
    assert [float(v) for v in get_path(robot, "links.*.length")] == [0.5, 0.4]
    assert float(get_path(robot, "gravity.1")) == -9.81
    assert [float(v) for v in get_path(robot, "joints.*.home")] == [-0.5]  # only one joint has it
    changed = set_path(robot, "links.*.length", 0.7)
    assert [float(part.length) for part in changed.links] == [0.7, 0.7]
    assert set_path(robot, "gravity.1", -1.6).gravity.tolist() == [0.0, -1.6, 0.0]
    assert set_path(robot, "gravity", (0, 0, -9.81)).gravity.tolist() == [0.0, 0.0, -9.81]
    assert robot.gravity.tolist() == [0.0, -9.81, 0.0]
    assert [found.path for found in find_leaves(robot, "joints.*.hub.*")] == [
        f"joints.{joint}.hub.{key}"
        for joint in ("shoulder", "elbow")
        for key in ("mass", "inertia")
    ]


def test_entries_of_arrays():
    robot = load_robot("two-link")
    assert get_path(robot, "gravity.*") == [0.0, -9.81, 0.0]
    assert [f.path for f in find_leaves(robot, "gravity.*")] == [f"gravity.{k}" for k in range(3)]
    assert robot.replace("gravity.*", 0.5).gravity.tolist() == [0.5, 0.5, 0.5]
    table = {"values": jnp.arange(6.0).reshape(3, 2)}
    assert get_path(table, "values.2").tolist() == [4.0, 5.0]
    assert float(get_path(table, "values.2.1")) == 5.0
    assert [float(v) for v in get_path(table, "values.*.1")] == [1.0, 3.0, 5.0]
    assert len(get_path(table, "values.*.*")) == 6
    changed = set_path(table, "values.1", [7.0, 8.0])
    assert changed["values"].tolist() == [[0.0, 1.0], [7.0, 8.0], [4.0, 5.0]]
    assert set_path(table, "values.*.0", 9.0)["values"][:, 0].tolist() == [9.0, 9.0, 9.0]
    for path, says in (
        ("values.3", "values has 3 components"),
        ("values.0.2", "values.0 has 2 components"),
        ("values.0.0.0", "values.0.0 is a number"),
        ("values.x", "values has 3 components"),
    ):
        with pytest.raises(RobotError, match=says):
            get_path(table, path)
    with pytest.raises(RobotError, match=r"values\.1: got shape \(\), expected .*shape \(2,\)"):
        set_path(table, "values.1", 7.0)


def test_pieces_have_indices():
    robot = load_robot("soeffker-telescopic-locked")
    assert float(get_path(robot, "links.arm.pieces.1.section.ky")) == 0.5
    assert len(get_path(robot, "links.arm.pieces.*.material.E")) == 5


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("links.uper.material.E", "did you mean 'upper'?"),
        ("links.upper.material.G", "absent"),
        ("joints.shoulder.stiffness", "is absent in this robot; give the field"),
        ("joints.elbow.stops.lower", "joints.elbow.stops is absent"),
        ("joints.*.stiffness", "no element has it"),
        ("links.upper", "has several parameters: links.upper.length"),
        ("links.7.length", "links has no '7'"),
        ("gravity.3", "gravity has 3 components"),
        ("gravity.-1", "gravity has 3 components"),
        ("gravity.y", "gravity has 3 components"),
        ("links.upper.length.0", "is a number"),
        ("links.upper.name", "has no 'name'"),
        ("planar", "has no 'planar'"),
        ("", "expected text"),
        (None, "expected text"),
    ],
)
def test_wrong_paths(path, says):
    with pytest.raises(RobotError, match="1 fault") as caught:
        set_path(load_robot("two-link"), path, 1.0)
    assert says in str(caught.value)


def test_near_names_are_listed():
    with pytest.raises(RobotError, match=r"Near: .*links\.upper\.material\.E"):
        get_path(load_robot("two-link"), "links.upper.material.Emod")


class Gains(eqx.Module):
    kp: Array
    kd: Array
    limit: Array | None = None


class Controller(eqx.Module):
    joints: dict[str, Gains]


def test_other_trees():
    drive = Controller(
        {
            "elbow": Gains(jnp.asarray(2.0), jnp.asarray(0.1)),
            "1": Gains(jnp.asarray(3.0), jnp.asarray(0.2)),
        }
    )
    tree = {"drive": drive, "robot": load_robot("two-link")}
    assert float(get_path(tree, "drive.joints.elbow.kp")) == 2.0
    assert [found.path for found in find_leaves(tree, "drive.joints.*.kd")] == [
        "drive.joints.elbow.kd",
        "drive.joints.1.kd",
    ]
    changed = set_path(drive, "joints.1.kp", 5)
    assert float(changed.joints["1"].kp) == 5.0 and not changed.joints["1"].kp.weak_type
    with pytest.raises(RobotError, match="absent"):
        get_path(drive, "joints.elbow.limit")


def test_traced_values():
    robot = load_robot("two-link")
    value = jax.jit(lambda v: set_path(robot, "links.upper.length", v).links[0].length)(1)
    assert value.dtype == jnp.float64 and not value.weak_type
    slope = jax.jacfwd(
        lambda v: set_path(robot, "payloads.gripper.offset.0", v).payloads[0].offset
    )(0.1)
    assert slope.tolist() == [1.0, 0.0, 0.0]
