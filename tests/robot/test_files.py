"""Robot files: exact round trips, the published schema, what is read off when it is left out."""

import json
import os
import tomllib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from flexjax.robot import (
    Body,
    Circle,
    Crosstalk,
    Damping,
    Friction,
    Hub,
    IBeam,
    Joint,
    Link,
    Lowpass,
    Material,
    Motor,
    Payload,
    Rectangle,
    Robot,
    RobotError,
    Sensor,
    Stops,
    examples,
    load_robot,
    robot_from_dict,
    robot_schema,
    robot_to_toml,
    save_robot,
)
from flexjax.robot.files._file import SCHEMA_FILE, file_model
from flexjax.robot.files._load import robot_from_toml


def everything() -> Robot:
    """A robot that uses every field there is, with numbers that are not short in decimal."""
    third = 1 / 3
    alu = Material.named("aluminium")
    links = [
        Link(
            "a",
            third,
            section=Rectangle(0.02, 0.005),
            section_end=Rectangle(0.01, 0.1 / 7),
            material=alu,
            curvature=(0.1, third, -0.0),
            damping=Damping(strain_rate=1e-4, mass=third, modal=0.01),
        ),
        Link(
            "b",
            1.0,
            section=IBeam(0.1, 0.05, 0.01, 0.005),
            material=Material(E=7e10, rho=2.7e3, G=third * 1e11),
        ),
        Link(
            "c", 2.0, rigid=True, body=Body(third, (1.0, 0.0, 0.0), (1.0, 1.0, 1.0, 0.1, 0.0, 0.0))
        ),
        Link("d", 1.0, section=Circle(0.01), material=alu),
    ]
    joints = [
        Joint("j1", "universal", "ground", "a", axis=(0, 0, 1), axis2=(0, 1, 0), home=(0.1, third)),
        Joint(
            "j2",
            "revolute",
            "a",
            "b",
            axis=(1, 2, 3),
            offset=(third, 0, 0),
            rotation=(third, 0.1, 0.2),
            stiffness=100 * third,
            damping=0.1,
            friction=Friction(0.1),
            output_friction=Friction(third, 0.02, 0.5, 0.1),
            spring_friction=Friction(third),
            hub=Hub(1.0, (0.1, 0.2, third)),
            mass=third,
            motor=Motor(1e-5, 50, 0.1, 3),
            stops=Stops(-1, 1, 1e4, 1.0),
            home=(third,),
        ),
        Joint("j3", "prismatic", "b", "c", home=1.5),
        Joint("j4", "sliding", "b", "d", home=third),
        Joint("close", "spherical", "d", "c", loop=True, child_at="tip"),
    ]
    sensors = [
        Sensor(
            "s1",
            "flex",
            "a",
            span=(0.1, third),
            gain=third,
            offset=1.0,
            delay=1e-3,
            lowpass=Lowpass(10),
            noise=0.1,
            crosstalk=(Crosstalk("s2", third), Crosstalk("s3", -1.0)),
            drift=third,
            skew=1e-3,
            quantum=0.1,
        ),
        Sensor("s2", "accelerometer", "b", s=third, direction=(0, 1, 0)),
        Sensor("s3", "strain_gauge", "d", s=0.2, position=(0.005, 0.0)),
    ]
    return Robot(
        'all of it, "quoted" \\ and é',
        links,
        joints,
        [Payload("p", "d", third, 0.1, (0, third, 0), 0.5)],
        sensors,
    )


@pytest.mark.parametrize("name", list(examples()))
def test_example_round_trip_is_exact(name, tmp_path):
    robot = load_robot(name)
    assert robot.name == name
    path = save_robot(robot, tmp_path / "robot.toml")
    assert eqx.tree_equal(load_robot(path), robot, typematch=True)
    assert all(leaf.dtype == jnp.float64 and not leaf.weak_type for leaf in jax.tree.leaves(robot))


def test_every_field_round_trips():
    robot = everything()
    again = robot_from_toml(robot_to_toml(robot))
    assert eqx.tree_equal(again, robot, typematch=True)
    assert robot_to_toml(again) == robot_to_toml(robot)


@settings(max_examples=40)
@given(st.floats(min_value=1e-300, max_value=1e300), st.floats(-1e300, 1e300))
def test_every_float_survives(positive, any_float):
    link = Link("a", positive, section=Circle(positive), material=Material.named("steel"))
    robot = Robot.serial([link], gravity=(any_float, -0.0, 0.0))
    again = robot_from_toml(robot_to_toml(robot))
    assert (
        np.asarray(again.links[0].length).tobytes() == np.asarray(robot.links[0].length).tobytes()
    )
    assert np.asarray(again.gravity).tobytes() == np.asarray(robot.gravity).tobytes()


def test_single_precision_survives():
    with jax.enable_x64(False):
        robot = load_robot("two-link")
        assert robot.links[0].length.dtype == jnp.float32
        assert eqx.tree_equal(robot_from_toml(robot_to_toml(robot)), robot, typematch=True)


def test_save_is_whole_or_nothing(tmp_path, monkeypatch):
    robot, path = load_robot("metal-link"), tmp_path / "robot.toml"
    save_robot(robot, path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_robot(robot.replace("links.link.length", 2.0), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["robot.toml"]


def test_traced_robot_is_not_saved(tmp_path):
    robot = load_robot("metal-link")
    with pytest.raises(TypeError, match="not known on the host"):
        jax.jit(lambda r: save_robot(r, tmp_path / "x.toml"))(robot)
    assert not list(tmp_path.iterdir())


def test_published_schema_is_up_to_date():
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == robot_schema(), (
        "write json.dumps(robot_schema(), indent=2, ensure_ascii=False) to "
        "flexjax/robot/files/robot.schema.json"
    )


def test_schema_says_what_the_checks_demand():
    schema = robot_schema()
    link = schema["$defs"]["Link"]
    assert link["required"] == ["name", "length"] and link["additionalProperties"] is False
    assert schema["$defs"]["Material"]["properties"]["E"]["exclusiveMinimum"] == 0
    assert "revolute" in schema["$defs"]["Joint"]["properties"]["type"]["enum"]
    assert schema["required"] == ["schema", "name", "links", "joints"]
    assert "[N m/rad or N/m]" in schema["$defs"]["Joint"]["properties"]["stiffness"]["description"]


def test_examples_name_themselves():
    for name, about in examples().items():
        assert about and not about.startswith("schema"), name
        assert name in str(examples())


@pytest.mark.parametrize(
    ("change", "planar"),
    [
        ({}, True),
        ({"axis": [0, 0, -1]}, True),
        ({"axis": [0, 1, 0]}, False),
        ({"type": "spherical"}, False),
        ({"type": "universal", "axis2": [0, 1, 0]}, False),
        ({"offset": [0, 0, 0.1]}, False),
        ({"offset": [0.1, 0.2, 0]}, True),
        ({"rotation": [0.1, 0, 0]}, False),
        ({"rotation": [0, 0, 0.1]}, True),
        ({"type": "prismatic", "axis": [0, 1, 0]}, True),
        ({"type": "prismatic", "axis": [0, 0, 1]}, False),
        ({"type": "free"}, False),
    ],
)
def test_planar_is_read_off(change, planar):
    document = {
        "schema": 1,
        "name": "x",
        "links": [
            {
                "name": "a",
                "length": 1,
                "section": {"shape": "circle", "diameter": 0.1},
                "material": "steel",
            }
        ],
        "joints": [{"name": "j", "type": "revolute", "parent": "ground", "child": "a", **change}],
    }
    assert robot_from_dict(document).planar is planar
    document["links"][0]["curvature"] = [0.0, 0.1, 0.0]
    assert robot_from_dict(document).planar is False


def test_short_forms():
    text = """
    schema = 1
    name = "sketch"
    [[links]]
    name = "upper"
    length = 1
    section = { A = 1e-4, Iy = 1e-9, Iz = 1e-10, J = 4e-10 }
    material = "aluminium"
    [[joints]]
    name = "j"
    type = "revolute"
    parent = "ground"
    child = "upper"
    [[payloads]]
    link = "upper"
    mass = 0.2
    """
    robot = robot_from_toml(text)
    assert robot.payloads[0].name == "payload1"
    assert robot.gravity.tolist() == [0.0, -9.81, 0.0]
    assert robot.links[0].section.shape == "given"
    assert eqx.tree_equal(robot_from_toml(robot_to_toml(robot)), robot)


def test_documents_are_not_changed():
    document = tomllib.loads(robot_to_toml(load_robot("two-link")))
    before = json.dumps(document)
    robot_from_dict(document)
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    "junk", [{}, {"schema": 1}, [], None, 3, {"links": {"a": 1}, "joints": "x", "payloads": [1]}]
)
def test_junk_is_told(junk):
    with pytest.raises(RobotError):
        robot_from_dict(junk)


KEYS = (
    "name length section material E axis type parent child shape home hub stops lower pieces body "
    "inertia"
).split()
SIMPLE = st.none() | st.booleans() | st.floats() | st.text(max_size=3)
TABLES = st.sampled_from(KEYS)
JUNK = st.recursive(
    SIMPLE,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(TABLES, x, max_size=5),
    max_leaves=12,
)


@settings(max_examples=60)
@given(JUNK)
def test_any_junk_in_links_and_joints_is_one_error(junk):
    document = {
        "schema": 1,
        "name": "x",
        "links": [junk],
        "joints": [junk],
        "sensors": junk,
        "payloads": [junk],
    }
    with pytest.raises(RobotError):
        robot_from_dict(document)
    assert file_model() is file_model()
