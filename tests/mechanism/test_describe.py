"""describe(): masses, reach and frequencies against closed forms."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from flexjax.mechanism import describe
from flexjax.robot import (
    BeamConstants,
    Circle,
    Link,
    Material,
    Payload,
    Piece,
    Rectangle,
    Robot,
    RobotError,
    examples,
    load_robot,
)

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "robots" / "frequencies.json").read_text()
)
CONSTANTS = BeamConstants(EA=1e9, EIy=2.0, EIz=3.0, GJ=1.0, rhoA=0.5)


def hertz(beta, EI, rhoA, length):
    return np.array(beta) ** 2 * np.sqrt(EI / (rhoA * length**4)) / (2 * np.pi)


def test_clamped_free():
    (link,) = describe(Robot.serial([Link("a", 0.7, constants=CONSTANTS)])).links
    beta = REFERENCE["beta_clamped_free"]
    np.testing.assert_allclose(link.frequencies_y, hertz(beta, 3.0, 0.5, 0.7), rtol=1e-5)
    np.testing.assert_allclose(link.frequencies_z, hertz(beta, 2.0, 0.5, 0.7), rtol=1e-5)


@pytest.mark.parametrize("mu", REFERENCE["beta_tip_mass"])
def test_tip_mass(mu):
    robot = Robot.serial(
        [Link("a", 0.7, constants=CONSTANTS)], payloads=[Payload("p", "a", float(mu) * 0.5 * 0.7)]
    )
    beta = REFERENCE["beta_tip_mass"][mu]
    np.testing.assert_allclose(
        describe(robot).links[0].frequencies_y, hertz(beta, 3.0, 0.5, 0.7), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("li-zhang-single-link", "li_zhang_hz"),
        ("li-zhang-single-link-printed", "li_zhang_printed_hz"),
    ],
)
def test_single_link_of_li_and_zhang(name, key):
    np.testing.assert_allclose(
        describe(load_robot(name)).links[0].frequencies_y, REFERENCE[key], rtol=1e-4
    )


def test_links_of_my():
    # The closed forms have no shear and no rotary inertia; both lower the third frequency by 3e-4.
    par = describe(load_robot("my-par")).links[1]
    np.testing.assert_allclose(par.frequencies_y, REFERENCE["my_par_hz"], rtol=3e-4)
    rpb = describe(load_robot("my-rpb")).links[1]
    assert rpb.length == 0.8 and rpb.free_length == 0.4
    np.testing.assert_allclose(rpb.frequencies_y, REFERENCE["my_rpb_free_0.4_hz"], rtol=5e-4)


def test_shear():
    link = describe(load_robot("macchelli-single-link")).links[0]
    np.testing.assert_allclose(
        2 * np.pi * link.frequencies_y, REFERENCE["macchelli_timoshenko_rad_s"], rtol=2e-3
    )


def test_taper_and_pieces():
    steel = Material.named("steel")
    whole = Link(
        "a", 1.0, section=Rectangle(0.01, 0.02), section_end=Rectangle(0.01, 0.01), material=steel
    )
    middle = Rectangle(0.01, 0.015)
    halves = Link(
        "a",
        1.0,
        pieces=[
            Piece(0.5, section=Rectangle(0.01, 0.02), section_end=middle, material=steel),
            Piece(0.5, section=middle, section_end=Rectangle(0.01, 0.01), material=steel),
        ],
    )
    one, two = (describe(Robot.serial([link])) for link in (whole, halves))
    assert one.mass == pytest.approx(7850 * 0.01 * 0.015, rel=1e-12) == two.mass
    np.testing.assert_allclose(one.links[0].frequencies_y, two.links[0].frequencies_y, rtol=1e-4)
    assert one.links[0].base.EIz == pytest.approx(8 * one.links[0].tip.EIz, rel=1e-12)
    assert one.links[0].frequencies_y[0] > one.links[0].frequencies_z[0] * 1.2


def test_payload_along_the_link():
    def first(s):
        loads = [Payload("p", "a", 0.2, inertia=1e-3, s=s)]
        return (
            describe(Robot.serial([Link("a", 1.0, constants=CONSTANTS)], payloads=loads))
            .links[0]
            .frequencies_y[0]
        )

    values = [first(s) for s in (0.0, 0.3, 0.61, 0.999999, 1.0)]
    assert np.all(np.diff(values) < 0)
    np.testing.assert_allclose(values[3], values[4], rtol=1e-5)
    np.testing.assert_allclose(
        values[0], hertz(REFERENCE["beta_clamped_free"][0], 3.0, 0.5, 1.0), rtol=1e-6
    )


def test_masses_and_reach():
    two = describe(load_robot("two-link"))
    assert two.mass == pytest.approx(
        2700 * 0.03 * (0.5 * 0.005 + 0.4 * 0.003) + 0.35 + 0.1, rel=1e-12
    )
    assert two.reach == pytest.approx(0.9)
    assert describe(load_robot("rigid-3r")).mass == pytest.approx(12.5)
    for name in ("soeffker-telescopic", "soeffker-telescopic-locked"):
        assert describe(load_robot(name)).mass == pytest.approx(48.008, abs=1e-3)
    assert describe(load_robot("macchelli-parallelogram")).reach == pytest.approx(2.0)


@pytest.mark.parametrize("name", list(examples()))
def test_prints(name):
    robot = load_robot(name)
    text = str(describe(robot))
    assert all(link.name in text for link in robot.links) and "kg" in text and "Hz" in text


def test_print_has_the_numbers():
    assert "6.0984, 38.218, 107.01" in str(describe(load_robot("li-zhang-single-link")))
    assert "0.8 (0.4 free)" in str(describe(load_robot("my-rpb")))


def test_traced_robot_is_refused():
    with pytest.raises(RobotError, match="outside jit"):
        jax.jit(lambda robot: describe(robot).mass)(load_robot("metal-link"))


def test_round_link_bends_alike():
    (link,) = describe(
        Robot.serial([Link("a", 1.0, section=Circle(0.01), material=Material.named("steel"))])
    ).links
    np.testing.assert_allclose(link.frequencies_y, link.frequencies_z, rtol=1e-12)
