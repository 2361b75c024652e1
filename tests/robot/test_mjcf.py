"""MJCF import: kinematics and masses as an independent parser reads them, clear refusals."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flexjax.robot import RobotError, load_mjcf
from flexjax.robot._home import IDENTITY, Pose, placement, section_pose
from flexjax.robot.files._mjcf import robot_from_mjcf

ARM = """<mujoco model="arm">
  <compiler angle="degree" eulerseq="xyz"/>
  <option gravity="0 0 -9.8"/>
  <default>
    <joint damping="0.3"/>
    <geom density="500"/>
    <default class="light"><joint frictionloss="0.2"/><geom density="100"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="upper" pos="0 0 0.3" euler="10 20 30">
      <joint name="shoulder" axis="0 1 0" armature="0.01" actuatorfrcrange="-30 30"/>
      <inertial pos="0 0.01 0.2" mass="2" diaginertia="0.03 0.04 0.02" quat="0.9 0.1 0.2 0.3"/>
      <body name="fore" pos="0 0.1 0.4" axisangle="1 0 0 17" childclass="light">
        <joint name="elbow" axis="1 0 0" pos="0 0 0.02"/>
        <geom type="capsule" fromto="0 0 0.02 0.1 0 0.3" size="0.02"/>
        <geom type="box" size="0.02 0.03 0.04" pos="0 0 0.1" class="light" mass="0.4"/>
        <body name="slider" pos="0.2 0 0.1" xyaxes="1 1 0 0 0 1">
          <joint name="slide" type="slide" axis="0 0 1" damping="2"/>
          <geom type="cylinder" size="0.01 0.05"/>
          <geom type="ellipsoid" size="0.01 0.02 0.03" pos="0.1 0 0"/>
          <geom type="sphere" size="0.02" pos="0 0.1 0"/>
          <body name="tool" pos="0 0 0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def moved(joint, q):
    axis = np.array(joint.axis)
    if joint.type == "prismatic":
        return Pose(q * axis, Rotation.identity())
    return Pose(np.zeros(3), Rotation.from_rotvec(q * axis))


def bodies(robot, q):
    """World centre of mass, mass and world inertia of every link."""
    tips, found = {"ground": IDENTITY}, {}
    for joint, value in zip(robot.joints, q, strict=True):
        link = robot.links[robot.link_index(joint.child)]
        here = tips[joint.parent] @ placement(joint) @ moved(joint, value)
        tips[link.name] = here @ section_pose(link, 1.0)
        xx, yy, zz, xy, xz, yz = np.array(link.body.inertia)
        R = here.rotation.as_matrix()
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        found[link.name] = (
            here.apply(np.array(link.body.com)),
            float(link.body.mass),
            inertia,
        )
    return found


def test_fields():
    robot = robot_from_mjcf(ARM)
    assert [link.name for link in robot.links] == ["upper", "fore", "slider"]  # tool is a frame
    assert [joint.type for joint in robot.joints] == ["revolute", "revolute", "prismatic"]
    shoulder, elbow, slide = robot.joints
    assert float(shoulder.damping) == 0.3 and float(slide.damping) == 2.0
    assert float(shoulder.motor.rotor) == 0.01 and float(shoulder.motor.limit) == 30.0
    assert float(elbow.friction.coulomb) == 0.2 and shoulder.friction is None
    np.testing.assert_allclose(robot.gravity, [0, 0, -9.8])


@pytest.mark.outside
@pytest.mark.parametrize("q", [(0.0, 0.0, 0.0), (0.7, -1.1, 0.15)])
def test_moves_like_pinocchio(q, tmp_path):
    pin = pytest.importorskip("pinocchio")
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    model = pin.buildModelFromMJCF(str(path))
    data = model.createData()
    pin.forwardKinematics(model, data, np.array(q))
    got = bodies(load_mjcf(path), q)
    for name, joint in (("upper", "shoulder"), ("fore", "elbow"), ("slider", "slide")):
        i = model.getJointId(joint)
        inertia, place = model.inertias[i], data.oMi[i]
        com, mass, about = got[name]
        np.testing.assert_allclose(com, place.act(inertia.lever), atol=1e-10, err_msg=name)
        np.testing.assert_allclose(mass, inertia.mass, rtol=1e-10, err_msg=name)
        want = place.rotation @ inertia.inertia @ place.rotation.T
        np.testing.assert_allclose(about, want, atol=1e-10, err_msg=name)


def test_flexible_block():
    beam = {"section": {"shape": "circle", "diameter": 0.02}, "material": "steel"}
    robot = robot_from_mjcf(ARM, flexible={"upper": beam})
    upper = robot.links[0]
    assert upper.elastic and abs(float(upper.length) - np.hypot(0.1, 0.4)) < 0.05


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("<worldbody>", "<equality><weld body1='a'/></equality><worldbody>", "no constraints"),
        ("<worldbody>", "<include file='x.xml'/><worldbody>", "no other files"),
        ('type="slide"', 'type="screw"', "one of hinge, slide, ball, free"),
        ('axis="0 1 0"', 'axis="0 1 0" stiffness="3"', "stiffness"),
        ('axis="0 1 0"', 'axis="0 1"', "3 finite numbers"),
        ('type="cylinder" size="0.01 0.05"', 'type="mesh" mesh="x"', "Add an <inertial>"),
        ('<joint name="elbow"', '<joint name="more"/><joint name="elbow"', "at most one joint"),
        ('mass="2"', "", "a mass"),
        ('name="fore"', 'name="upper"', "a name that no other body has"),
        ('eulerseq="xyz"', 'eulerseq="xyY"', "three of the letters"),
        ('class="light" mass', 'class="heavy" mass', "the name of a class"),
        ("<mujoco", "<!DOCTYPE x [<!ENTITY a 'b'>]><mujoco", "declaration"),
        ("<mujoco", "<robot", "not valid XML"),
    ],
)
def test_refusals(change, to, message):
    assert change in ARM
    with pytest.raises(RobotError, match=message):
        robot_from_mjcf(ARM.replace(change, to, 1))


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(RobotError, match="cannot be read"):
        load_mjcf(tmp_path / "none.xml")
    with pytest.raises(RobotError, match="expected <mujoco>"):
        robot_from_mjcf("<robot/>")
    deep = "<body>" * 500 + "</body>" * 500
    with pytest.raises(RobotError, match="at most 200 levels"):
        robot_from_mjcf(f"<mujoco><worldbody>{deep}</worldbody></mujoco>")
    with pytest.raises(RobotError, match="at least one <body>"):
        robot_from_mjcf("<mujoco><worldbody/></mujoco>")
