"""The robot as a pytree: gradients, traces, placeholders; and as a table."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.robot import (
    Body,
    Circle,
    GivenSection,
    IBeam,
    Joint,
    Link,
    Material,
    Piece,
    Rectangle,
    Robot,
    RobotError,
    Tube,
    examples,
    load_robot,
)
from flexjax.robot.check._check import check_robot

STEEL = Material.named("steel")


def link(name="a", length=1.0, **others):
    return Link(name, length, section=Rectangle(0.02, 0.01), material=STEEL, **others)


def stiffness(robot):
    """A function of many parameters of a robot."""
    return sum(
        part.material.E * part.section.properties().Iz / part.length**3 for part in robot.links
    )


@pytest.mark.parametrize("name", list(examples()))
def test_leaves_are_floats(name):
    leaves = jax.tree.leaves(load_robot(name))
    assert all(
        isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves
    )


def test_gradient_through_replace():
    robot = load_robot("two-link")

    def loss(E, length):
        return stiffness(
            robot.replace("links.*.material.E", E).replace("links.upper.length", length)
        )

    by_E, by_length = jax.grad(loss, (0, 1))(70e9, 0.5)
    I = [float(part.section.properties().Iz) for part in robot.links]
    np.testing.assert_allclose(by_E, I[0] / 0.5**3 + I[1] / 0.4**3, rtol=1e-12)
    np.testing.assert_allclose(by_length, -3 * 70e9 * I[0] / 0.5**4, rtol=1e-12)


def test_gradient_with_respect_to_the_whole_robot():
    robot = load_robot("two-link")
    gradient = jax.grad(stiffness)(robot)
    assert isinstance(gradient, Robot)
    np.testing.assert_allclose(
        gradient.links[0].material.E, robot.links[0].section.properties().Iz / 0.125, rtol=1e-12
    )
    assert float(gradient.payloads[0].mass) == 0


def test_changed_number_does_not_trace_again():
    traces = []

    @jax.jit
    def f(robot):
        traces.append(1)
        return stiffness(robot)

    robot = load_robot("two-link")
    f(robot)
    f(robot.replace("links.upper.length", 0.6))
    f(robot.replace("links.upper.length", 1))
    f(robot.replace("links.upper.length", np.float64(0.7)))
    f(robot.replace("gravity.1", jnp.asarray(-1.6)))
    f(robot.replace("gravity", [0, 0, 0]))
    f(jax.jit(lambda r, v: r.replace("links.upper.length", v))(robot, 0.3))
    assert len(traces) == 1


def test_vmap_builds_robots():
    lengths = jnp.array([0.3, 0.6])
    got = jax.vmap(lambda v: stiffness(load_robot("metal-link").replace("links.0.length", v)))(
        lengths
    )
    want = [stiffness(load_robot("metal-link").replace("links.0.length", v)) for v in lengths]
    np.testing.assert_allclose(got, jnp.stack(want), rtol=1e-14)


def test_robot_is_made_inside_jit():
    def f(length):
        return Robot.serial([link(length=length)]).links[0].length

    assert float(jax.jit(f)(-1.0)) == -1.0  # not known while it is traced, so not refused
    with pytest.raises(RobotError):
        f(-1.0)


@pytest.mark.parametrize("name", list(examples()))
def test_placeholders_are_skipped(name):
    robot = load_robot(name)
    shapes = jax.eval_shape(lambda r: r, robot)
    for strange in (
        jax.tree.map(lambda _: None, robot),
        jax.tree.map(lambda _: object(), robot),
        jax.tree.map(lambda _: True, robot),
        shapes,
        eqx.filter(robot, jax.tree.map(lambda _: False, robot)),
    ):
        check_robot(strange)
        assert str(strange).startswith("robot ")


def test_filters_and_partitions():
    robot = load_robot("two-link")
    arrays, rest = eqx.partition(robot, eqx.is_array)
    assert eqx.tree_equal(eqx.combine(arrays, rest), robot)
    leaves, structure = jax.tree.flatten(robot)
    assert eqx.tree_equal(jax.tree.unflatten(structure, leaves), robot)


def test_donated_numbers_are_skipped():
    robot = load_robot("metal-link")
    robot.links[0].length.delete()
    check_robot(robot)


def test_faults_in_python_are_told_together():
    with pytest.raises(RobotError) as caught:
        Robot(
            "bad",
            [link("a", -1.0), Link("b", 1.0), link("a")],
            [
                Joint("j", "revolut", "ground", "a"),
                Joint("k", "universal", "a", "b", rotation=(0, 0, 180)),
            ],
            planar=True,
        )
    message = str(caught.value)
    for path in (
        "links.0.length",
        "links.2.name",
        "links.b",
        "joints.j.type",
        "joints.k.axis2",
        "joints.k.rotation",
    ):
        assert f"  {path} = " in message
    assert message.startswith("robot 'bad': ")


def test_wrong_change_is_refused():
    robot = load_robot("two-link")
    with pytest.raises(RobotError, match=r"links\.upper\.length = -1\.0"):
        robot.replace("links.upper.length", -1.0)
    with pytest.raises(RobotError, match="one number"):
        robot.replace("links.upper.length", [1.0, 2.0])
    with pytest.raises(RobotError, match="expected numbers"):
        robot.replace("links.upper.length", "long")


def test_rigid_bodies_may_have_no_length():
    wrist = Link("wrist", 0.0, rigid=True, body=Body(1.0))
    assert Robot.serial([link(), wrist]).dofs == 2
    with pytest.raises(RobotError, match="a positive number"):
        Robot.serial([link(length=0.0)])


def test_loops():
    square = load_robot("macchelli-parallelogram")
    assert square.dofs == 4 and [j.name for j in square.loop_joints] == ["closure"]
    open_joints = [*square.tree_joints, Joint("closure", "revolute", "C", "D")]
    with pytest.raises(RobotError, match="loop = true"):
        Robot("open", square.links, open_joints, planar=True)


def test_material_is_checked_at_once():
    with pytest.raises(RobotError, match="exactly one"):
        Material(E=1.0, rho=1.0)
    with pytest.raises(RobotError, match="aluminium"):
        Material.named("wood")


@pytest.mark.parametrize(
    ("section", "A", "Iz", "J"),
    [
        (
            Rectangle(0.02, 0.005),
            1e-4,
            0.02 * 0.005**3 / 12,
            0.02 * 0.005**3 * 0.28081,
        ),  # J: Saint-Venant series
        (Rectangle(1.0, 1.0), 1.0, 1 / 12, 0.140577),
        (Circle(0.1), np.pi * 0.0025, np.pi * 1e-4 / 64, np.pi * 1e-4 / 32),
        (Tube(0.1, 0.05 - 1e-12), np.pi * 0.0025, np.pi * 1e-4 / 64, np.pi * 1e-4 / 32),
        (IBeam(0.1, 0.05, 0.01, 0.05), 0.005, 0.05 * 0.1**3 / 12, None),
        (GivenSection(1.0, 2.0, 3.0, 4.0), 1.0, 3.0, 4.0),
    ],
)
def test_sections(section, A, Iz, J):
    properties = section.properties()
    np.testing.assert_allclose(properties.A, A, rtol=1e-9)
    np.testing.assert_allclose(properties.Iz, Iz, rtol=1e-9)
    if J is not None:
        np.testing.assert_allclose(properties.J, J, rtol=5e-3)
    assert 0 < float(properties.ky) <= 1 and 0 < float(properties.kz) <= 1


@pytest.mark.parametrize("name", list(examples()))
def test_table(name):
    robot = load_robot(name)
    text = str(robot)
    for part in (*robot.links, *robot.joints, *robot.payloads, *robot.sensors):
        assert part.name in text
    assert "m/s2" in text and "[m]" in text and max(map(len, text.splitlines())) < 220


def test_table_has_the_numbers():
    text = str(load_robot("two-link"))
    for words in (
        "planar, 2 links, 2 joint coordinates, gravity (0, -9.81, 0) m/s2",
        "rectangle width 0.03, height 0.005",
    ):
        assert words in text
    assert (
        "0.02 N m s/rad" in text
        and "gripper" in text
        and "motor rotor 2e-06, gear 50, limit 20" in text
    )
    assert "100 N m/rad" in str(load_robot("li-zhang-three-link"))
    assert "closes a loop at the tip" in str(load_robot("macchelli-parallelogram"))
    assert "free length" in str(load_robot("my-rpb"))


def test_table_inside_jit():
    seen = []
    jax.jit(lambda r: seen.append(str(r)))(load_robot("two-link"))
    assert "traced" in seen[0] and "upper" in seen[0]


def test_pieces():
    half = Piece(0.5, section=Circle(0.01), section_end=Circle(0.02), material=STEEL)
    robot = Robot.serial([Link("a", 1.0, pieces=[half, half])])
    with pytest.raises(RobotError, match="sum to 1"):
        Robot.serial([Link("a", 1.0, pieces=[half])])
    with pytest.raises(RobotError, match=r"pieces\.0\.material"):
        Robot.serial([Link("a", 1.0, pieces=[Piece(1.0, section=Circle(0.01))])])
    assert "2 pieces" in str(robot)
