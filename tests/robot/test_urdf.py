"""URDF in and out: kinematics as in the file, inertias rotated with the frames, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import flexjax as fx
from flexjax.robot import RobotError, load_urdf, robot_to_toml
from flexjax.robot.files._load import robot_from_toml
from flexjax.robot.files._urdf import robot_from_urdf

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base_link"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0.01 0.2" rpy="0.1 0.2 0.3"/>
      <mass value="2.0"/>
      <inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.001" ixz="0.002" iyz="0.003"/>
    </inertial>
  </link>
  <link name="fore">
    <inertial>
      <origin xyz="0.1 0 0.1"/>
      <mass value="1.0"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <link name="slider">
    <inertial><mass value="0.5"/><inertia ixx="0.001" iyy="0.001" izz="0.001"/></inertial>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <parent link="base_link"/><child link="upper"/>
    <origin xyz="0 0 0.3" rpy="0 0 0.4"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="30" velocity="3"/>
    <dynamics damping="0.2" friction="0.1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="fore"/>
    <origin xyz="0 0.1 0.4" rpy="0.3 0 0"/>
    <axis xyz="1 0 0"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="fore"/><child link="slider"/>
    <origin xyz="0.2 0 0.1" rpy="0 0.5 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="0" upper="0.2" effort="5" velocity="1"/>
  </joint>
  <joint name="flange" type="fixed">
    <parent link="slider"/><child link="tool"/>
    <origin xyz="0 0 0.05"/>
  </joint>
</robot>
"""


SLIDER = '<inertial><mass value="0.5"/><inertia ixx="0.001" iyy="0.001" izz="0.001"/></inertial>'


def pose(rotation, position):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, position
    return T


def joint_motion(kind, axis, q):
    if kind == "prismatic":
        return pose(np.eye(3), np.array(axis) * q)
    return pose(Rotation.from_rotvec(np.array(axis) * q).as_matrix(), np.zeros(3))


def centres_in_robot(robot, q):
    """World positions of the centres of mass and world inertias, from the description's own
    conventions.
    """
    tips, out = {"ground": np.eye(4)}, {}
    for joint, value in zip(robot.joints, q, strict=True):
        link = robot.links[robot.link_index(joint.child)]
        offset = np.zeros(3) if joint.offset is None else np.asarray(joint.offset)
        turn = np.zeros(3) if joint.rotation is None else np.array(joint.rotation)
        start = tips[joint.parent] @ pose(Rotation.from_rotvec(turn).as_matrix(), offset)
        here = start @ joint_motion(joint.type, joint.axis, value)
        tips[link.name] = here @ pose(np.eye(3), [float(link.length), 0, 0])
        xx, yy, zz, xy, xz, yz = np.asarray(link.body.inertia)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        out[link.name] = (
            here[:3, :3] @ np.asarray(link.body.com) + here[:3, 3],
            here[:3, :3] @ inertia @ here[:3, :3].T,
        )
    return out


def centres_in_file(q):
    """The same straight from the numbers of the file."""
    rpy = lambda *angles: Rotation.from_euler("xyz", angles).as_matrix()
    upper = pose(rpy(0, 0, 0.4), [0, 0, 0.3]) @ joint_motion("revolute", [0, 1, 0], q[0])
    fore = upper @ pose(rpy(0.3, 0, 0), [0, 0.1, 0.4]) @ joint_motion("revolute", [1, 0, 0], q[1])
    slider = fore @ pose(rpy(0, 0.5, 0), [0.2, 0, 0.1]) @ joint_motion("prismatic", [0, 0, 1], q[2])
    inertia = np.array([[0.03, 0.001, 0.002], [0.001, 0.04, 0.003], [0.002, 0.003, 0.02]])
    turned = rpy(0.1, 0.2, 0.3) @ inertia @ rpy(0.1, 0.2, 0.3).T
    parts = {
        "upper": (upper, [0, 0.01, 0.2], turned),
        "fore": (fore, [0.1, 0, 0.1], 0.01 * np.eye(3)),
        "slider": (slider, [0, 0, 0], 0.001 * np.eye(3)),
    }
    return {
        name: (T[:3, :3] @ com + T[:3, 3], T[:3, :3] @ J @ T[:3, :3].T)
        for name, (T, com, J) in parts.items()
    }


@pytest.mark.parametrize("q", [(0.0, 0.0, 0.0), (0.7, -1.1, 0.15)])
def test_moves_like_the_file(q):
    robot = robot_from_urdf(ARM)
    got, want = centres_in_robot(robot, q), centres_in_file(q)
    assert list(got) == ["upper", "fore", "slider"]  # the tool is a mere frame
    for name in want:
        np.testing.assert_allclose(got[name][0], want[name][0], atol=1e-12)
        np.testing.assert_allclose(got[name][1], want[name][1], atol=1e-12)


def test_what_is_taken_over(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    robot = load_urdf(path, gravity=(0, 0, -1.6))
    assert robot.name == "arm" and robot.gravity.tolist() == [0.0, 0.0, -1.6] and not robot.planar
    assert [joint.type for joint in robot.joints] == ["revolute", "revolute", "prismatic"]
    shoulder = robot.joints[0]
    assert (
        shoulder.parent == "ground"
        and float(shoulder.damping) == 0.2
        and float(shoulder.friction.coulomb) == 0.1
    )
    assert float(shoulder.motor.limit) == 30.0 and shoulder.stops is None
    np.testing.assert_allclose(robot.links[0].length, np.hypot(0.1, 0.4))
    assert robot.joints[1].offset is None  # the elbow is at the tip of the upper link
    assert robot_from_toml(robot_to_toml(robot)).name == "arm"


def test_flexible_block():
    block = {
        "section": {"shape": "rectangle", "width": 0.02, "height": 0.005},
        "material": "aluminium",
    }
    robot = robot_from_urdf(ARM, flexible={"upper": block})
    upper = robot.links[0]
    assert not upper.rigid and upper.body is None and upper.section.shape == "rectangle"
    np.testing.assert_allclose(upper.length, np.hypot(0.1, 0.4))
    shorter = robot_from_urdf(ARM, flexible={"upper": {**block, "length": 0.3}})
    np.testing.assert_allclose(
        shorter.joints[1].offset, [np.hypot(0.1, 0.4) - 0.3, 0, 0], atol=1e-12
    )
    tool = robot_from_urdf(ARM, flexible={"tool": {**block, "length": 0.2}})
    assert tool.links[-1].name == "tool" and tool.joints[-1].type == "fixed"


PLANAR = """<robot name="planar"><link name="world"/>
<link name="a"><inertial><origin xyz="0 0.25 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="b"><inertial><origin xyz="-0.2 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="world"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="k" type="continuous"><parent link="a"/><child link="b"/>
<origin xyz="0 0.5 0"/><axis xyz="0 0 1"/></joint>
</robot>"""


def test_planar_files_stay_planar():
    robot = robot_from_urdf(PLANAR, gravity=(0, -9.81, 0))
    assert robot.planar
    np.testing.assert_allclose(robot.joints[0].rotation, [0, 0, np.pi / 2])
    np.testing.assert_allclose(robot.links[1].length, 0.4)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'type="continuous"',
            'type="planar"',
            "joint.elbow.type = 'planar': expected one of revolute, continuous",
        ),
        (
            '<axis xyz="1 0 0"/>',
            '<axis xyz="1 0 0"/><mimic joint="shoulder"/>',
            "joint.elbow.mimic = 'shoulder'",
        ),
        (SLIDER, "", "link.slider.inertial = missing: expected mass and inertia"),
        ('<mass value="2.0"/>', "", "link.upper.inertial.mass = missing"),
        (
            '<mass value="2.0"/>',
            '<mass value="two"/>',
            "inertial.mass.value = 'two': expected 1 finite number",
        ),
        ('<mass value="2.0"/>', '<mass value="nan"/>', "expected 1 finite number"),
        (
            '<mass value="2.0"/>',
            '<mass value="-2.0"/>',
            "links.upper.body.mass = -2.0: expected zero or a positive",
        ),
        (
            'xyz="0 0.1 0.4"',
            'xyz="0 0.1"',
            "joint.elbow.origin.xyz = '0 0.1': expected 3 finite numbers",
        ),
        ('rpy="0.3 0 0"', 'rpy="30 0 0"', "look like degrees"),
        (
            '<parent link="upper"/>',
            '<parent link="uper"/>',
            "joint.elbow.parent = 'uper': expected the name of a link",
        ),
        (
            '<link name="tool"/>',
            '<link name="tool"/><link name="stray"/>',
            "exactly one link that is not",
        ),
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', "joints.shoulder.axis = [0.0, 0.0, 0.0]"),
        ("<robot", "<robots", "is not valid XML"),
        ('<?xml version="1.0"?>', '<!DOCTYPE robot [<!ENTITY x "y">]>', "DOCTYPE"),
    ],
)
def test_refusals(old, new, says):
    assert old in ARM
    with pytest.raises(RobotError) as caught:
        robot_from_urdf(ARM.replace(old, new, 1))
    assert says in str(caught.value)


def test_other_refusals(tmp_path):
    with pytest.raises(RobotError, match="cannot be read"):
        load_urdf(tmp_path / "absent.urdf")
    with pytest.raises(RobotError, match="expected <robot>"):
        robot_from_urdf("<sdf/>")
    with pytest.raises(RobotError, match="flexible.elbow = 'elbow': expected the name of a link"):
        robot_from_urdf(ARM, flexible={"elbow": {}})
    with pytest.raises(RobotError, match="flexible.tool.length = missing"):
        robot_from_urdf(
            ARM,
            flexible={
                "tool": {"section": {"shape": "circle", "diameter": 0.01}, "material": "steel"}
            },
        )
    with pytest.raises(RobotError, match="unknown key"):
        robot_from_urdf(ARM, flexible={"upper": {"sectoin": 1}})


@pytest.mark.parametrize("name", ["two-link", "rigid-3r", "metal-link", "li-zhang-three-link"])
def test_round_trip(name, tmp_path):
    """What save_urdf writes, load_urdf reads: every parameter, static field and name."""
    robot = fx.load_robot(name)
    path = fx.save_urdf(robot, tmp_path / "arm.urdf")
    back = fx.load_urdf(path)
    assert jax.tree.structure(back) == jax.tree.structure(_explicit(robot))
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(_explicit(robot)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def _explicit(robot):
    """The robot with the default axes of its joints written out, and no zero placement."""
    import dataclasses

    def joint(j):
        default = {"revolute": [0.0, 0.0, 1.0], "prismatic": [1.0, 0.0, 0.0]}.get(j.type)
        axis = jnp.asarray(default) if j.axis is None and default else j.axis
        placed = {
            key: None if x is None or not np.any(np.asarray(x)) else x
            for key, x in (("offset", j.offset), ("rotation", j.rotation))
        }
        return dataclasses.replace(j, axis=axis, **placed)

    return dataclasses.replace(robot, joints=tuple(map(joint, robot.joints)))


def test_round_trip_of_a_curved_link_in_space(tmp_path):
    tube = {"section": fx.Tube(0.03, 0.002), "material": fx.Material.named("steel")}
    links = [
        fx.Link("a", 0.7, curvature=(0.3, -0.4, 0.9), **tube),
        fx.Link("b", 0.4, **tube),
    ]
    joints = [
        fx.Joint("one", "revolute", "ground", "a", axis=(0.0, 1.0, 0.0), offset=(0.1, 0.2, 0.3)),
        fx.Joint("two", "prismatic", "a", "b", axis=(0.6, 0.0, 0.8), rotation=(0.3, -0.8, 0.5)),
    ]
    robot = fx.Robot("arm", links, joints, gravity=(0.0, 0.0, -9.81))
    back = fx.load_urdf(fx.save_urdf(robot, tmp_path / "arm.urdf"))
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(_explicit(robot)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.outside
def test_other_programs_read_a_rigid_arm(tmp_path):
    """Pinocchio's mass matrix from the file is that of RigidArm without rotors."""
    pin = pytest.importorskip("pinocchio")
    robot = fx.load_robot("two-link")
    path = fx.save_urdf(robot, tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    angle = -0.5
    q = np.array([1.0, 0.0, np.cos(angle), np.sin(angle)])  # continuous joints
    pin.computeGeneralizedGravity(model, data, q)
    mass = sum(inertia.mass for inertia in model.inertias)
    assert abs(mass - fx.describe(robot).mass) < 1e-9
    tip = model.getFrameId("gripper")
    pin.framesForwardKinematics(model, data, q)
    place = data.oMf[tip].translation
    want = [0.5 + 0.43 * np.cos(angle), 0.43 * np.sin(angle), 0.0]
    np.testing.assert_allclose(place, want, atol=1e-12)


def test_save_urdf_refuses(tmp_path):
    for name, message in (("my-rpb", "telescopic joint"), ("macchelli-parallelogram", "a loop")):
        with pytest.raises(ValueError, match=message):
            fx.save_urdf(fx.load_robot(name), tmp_path / "arm.urdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"length": 0.5', '"length": -0.5', "links.upper.length = -0.5"),
        ('"length": 0.5', '"length": "x"', "links.upper.length"),
        ('{"length"', "{", "a JSON object"),
        ('"planar": true', '"links": []', "robot.flexjax"),
    ],
)
def test_bad_extensions(old, new, message, tmp_path):
    text = fx.save_urdf(fx.load_robot("two-link"), tmp_path / "arm.urdf").read_text()
    assert old in text
    with pytest.raises(RobotError, match=message):
        robot_from_urdf(text.replace(old, new, 1))
