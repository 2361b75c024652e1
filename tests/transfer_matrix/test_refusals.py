"""Refusals of a drive name the formulations that support it, by asking them."""

import jax.numpy as jnp
import pytest

import flexjax as fx
from flexjax.cli import main
from flexjax.cli._common import make_formulation
from flexjax.formulation import formulation, formulations_for

BASE = fx.Base(angle=fx.ramp(0.0, 1.0, 1.0))


def arm(**joint) -> fx.Robot:
    soft = fx.Material(E=5e9, nu=0.3, rho=1200.0)
    link = fx.Link("a", 0.4, section=fx.Rectangle(0.02, 0.008), material=soft)
    return fx.Robot("arm", [link], [fx.Joint("j", "revolute", "ground", "a", **joint)])


CASES = {
    "base": (arm(), fx.Drive(base=BASE), "drive.base: a moving base; expected none"),
    "flexible joint": (
        arm(stiffness=10.0),
        fx.Drive(),
        "drive.joints.j: no Motion on a flexible joint; expected one",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_drive_names_who_supports_it(name):
    robot, drive, fault = CASES[name]
    model = fx.TransferMatrix(segments=2).bind(robot)
    with pytest.raises(ValueError, match=fault) as error:
        fx.simulate(model, drive, jnp.linspace(0.0, 0.1, 2), dt=0.05)
    named = str(error.value).split("Supported by: ")[1].rstrip(".").split(", ")
    assert named == list(formulations_for(robot, drive)[0])
    assert "FiniteElement" not in named and "TransferMatrix" not in named
    # Those that are named do: their equations can be made.
    for other in named:
        formulation(other)().bind(robot).term(drive)


def test_compare_asks_with_the_drive():
    robot, drive, fault = CASES["base"]
    refused = formulations_for(robot, drive)[1]
    assert fault in refused["TransferMatrix"][0]
    with pytest.raises(ValueError, match="drive.base"):
        fx.compare(
            robot, drive, jnp.linspace(0.0, 0.1, 2), formulations={"tm": fx.TransferMatrix()}
        )


def test_the_command_line_says_the_same(tmp_path, capsys):
    robot, drive, _ = CASES["flexible joint"]
    path = str(fx.save_robot(robot, tmp_path / "arm.toml"))
    with pytest.raises(ValueError) as error:
        fx.TransferMatrix().bind(robot).term(drive)
    assert main(["simulate", path, "--formulation", "TransferMatrix"]) != 0
    assert str(error.value) in capsys.readouterr().err
    assert main(["modes", path, "--formulation", "TransferMatrix", "--lock", "none"]) != 0
    assert str(error.value) in capsys.readouterr().err


def test_the_command_line_chooses_a_formulation_that_supports_the_drive():
    robot, drive, _ = CASES["flexible joint"]
    name, _ = make_formulation("", robot, drive)
    assert name in formulations_for(robot, drive)[0]
