"""Shapes of links at the start: the spline, what is refused, files and paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.cli._main import main
from flexjax.study.free._free import parameters
from tests.start.rods import rod

STATIONS = np.linspace(0.0, 1.0, 13)


def on(shape, s=STATIONS):
    """(values, slopes, curvatures) of (y, z) and of their rates."""
    value, rate = shape.push(lambda curve: curve(s))
    return np.asarray(value), np.asarray(rate)


def test_one_number_is_the_deflection_under_a_force_at_the_tip():
    value, rate = on(fx.Shape(y=0.02, z_rate=0.3))
    s = STATIONS
    np.testing.assert_allclose(value[0, 0], 0.01 * (3 * s**2 - s**3), atol=1e-17)
    np.testing.assert_allclose(value[1, 0], 0.01 * (6 * s - 3 * s**2), atol=1e-16)
    np.testing.assert_allclose(value[2, 0], 0.01 * (6 - 6 * s), atol=1e-15)
    np.testing.assert_allclose(rate[0, 1], 0.15 * (3 * s**2 - s**3), atol=1e-16)
    assert not value[:, 1].any() and not rate[:, 0].any()


@pytest.mark.parametrize("s", [[0.5, 1.0], [0.2, 0.7, 1.0], [0.0, 0.3, 0.4, 0.9, 1.0]])
def test_cubics_are_exact(s):
    f = lambda s: 0.03 * s**2 - 0.05 * s**3
    value, _ = on(fx.Shape(y=f(np.array(s)), s=s))
    np.testing.assert_allclose(value[0, 0], f(STATIONS), atol=1e-16)
    np.testing.assert_allclose(value[2, 0], 0.06 - 0.3 * STATIONS, atol=1e-13)


def test_smooth_functions_converge_with_the_fourth_power(record_number):
    f, s = lambda s: 1 - np.cos(2 * s), np.linspace(0, 1, 1001)
    gaps = [np.max(np.abs(on(fx.Shape.of(y=f, n=n), s)[0][0, 0] - f(s))) for n in (40, 80)]
    order = float(np.log2(gaps[0] / gaps[1]))
    record_number("order of the spline of a start shape", order, (3.8, 4.2), relation="in")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "nothing given"),
        ({"y": [0.1, 0.2], "z": [0.1]}, r"z: numbers of shape \(1,\); expected 2"),
        ({"y": [0.1, 0.2], "s": [0.5]}, "s: 1 stations; expected one for each of 2"),
        ({"y": [0.1, 0.2], "s": [0.9, 0.5]}, "expected increasing stations"),
        ({"y": [0.1, 0.2], "s": [-0.1, 1.0]}, "expected increasing stations"),
        ({"y": [0.1, 0.2], "s": [np.nan, 1.0]}, "expected increasing stations"),
        ({"y": [0.1, 0.2], "s": [0.5, 0.9]}, "ends at 0.9; expected 1, the tip"),
        ({"y": [0.1, 0.2], "s": [0.0, 1.0]}, "y: 0.1 at the base; expected 0"),
    ],
)
def test_bad_shapes_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        fx.Shape(**values)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"rods": fx.Shape(0.1)}, "start.links.rods: no such link; expected one of rod"),
        ({"rod": 0.1}, "start.links.rod: float; expected fx.Shape"),
        ({"rod": fx.Shape(z=0.1)}, "start.links.rod.z: out of the plane"),
        ({"rod": fx.Shape(np.nan)}, "start.links.rod.y: nan; expected a finite number"),
        (
            {"rod": fx.Shape(0.9)},
            r"start.links.rod: rises by 1.35 m per metre .* expected less than 1",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(links, message):
    model = fx.TransferMatrix(segments=2).bind(rod())
    with pytest.raises(ValueError, match=message):
        fx.simulate(model, None, [0.0, 0.1], dt=0.1, start=fx.Start(links=links))


def test_what_a_formulation_cannot_bend_is_refused():
    start = fx.Start(links={"rod": fx.Shape(0.01)})
    for formulation in (fx.RigidArm(), fx.FiniteElement(elements={"rod": 0})):
        with pytest.raises(ValueError, match="start.links.rod: the link is rigid in"):
            fx.simulate(formulation.bind(rod()), None, [0.0, 0.1], dt=0.1, start=start)
    model = fx.ScrewSynthesis(modes=(1, 2, 0, 1)).bind(rod(planar=False))
    with pytest.raises(ValueError, match="start.links.rod.z: ScrewSynthesis has no shape function"):
        model.initial_state(fx.Drive(), 0.0, fx.Start(links={"rod": fx.Shape(z=0.01)}))
    with pytest.raises(ValueError, match="start.joints.pin: .* contradicts the Motion"):
        drive = fx.Drive(joints={"pin": fx.Motion(fx.constant(0.0))})
        model = fx.TransferMatrix(segments=2).bind(rod("revolute"))
        fx.simulate(model, drive, [0.0, 0.1], start=fx.Start({"pin": 0.1}, links=start.links))


DRIVE = """
[joints.pin]
motion = { constant = { value = 0.5 } }
[start.links.rod]
y = [0.0, 0.004, 0.01]
s = [0.0, 0.6, 1.0]
y_rate = [0.0, 0.0, 0.1]
"""


def test_files(tmp_path, capsys):
    path = tmp_path / "drive.toml"
    path.write_text(DRIVE)
    start = fx.load_start(path)
    assert start.links["rod"].s == (0.6, 1.0)
    np.testing.assert_array_equal(start.links["rod"].y, [0.004, 0.01])
    with pytest.warns(UserWarning, match="has a start table"):
        assert "pin" in fx.load_drive(path).joints
    robot = fx.save_robot(rod("revolute"), tmp_path / "rod.toml")
    run = [
        "simulate",
        str(robot),
        "--drive",
        str(path),
        "--formulation",
        "TransferMatrix:segments=2",
    ]
    assert main([*run, "--end", "0.01", "--outputs", "2", "--dt", "0.01", "--json"]) == 0
    path.write_text(DRIVE.replace("links.rod", "links.bar"))
    assert main(run) == 1
    assert "start.links.bar: no such link; expected one of rod" in capsys.readouterr().err
    path.write_text(
        "[start]\nspeed = 1\njoints = 3\n[start.rates]\npin = 'x'\n[start.links.rod]\nx = 1\n"
        "[start.links.bar]\ny = 'a'\n[start.links.foo]\ny = [1, 2]\ns = [1.0]\n"
    )
    with pytest.raises(ValueError) as caught:
        fx.load_start(path)
    for part in (
        "start.speed: unknown key",
        "start.joints: 3; expected a table",
        "start.rates.pin: 'x'; expected a number",
        "start.links.rod: {'x': 1}; expected a table",
        "start.links.bar.y: 'a'",
        "start.links.foo: s: 1 stations",
    ):
        assert part in str(caught.value), part


def test_paths():
    robot = rod("revolute")
    start = fx.Start({"pin": 0.1}, links={"rod": fx.Shape(0.01, y_rate=0.0)})
    found = parameters(
        ["start.links.rod.y", "start.links.rod.y_rate", "start.joints.pin"],
        robot,
        [fx.Drive()],
        [start],
        ["a"],
        {},
    )
    assert found.units == ("m", "m/s", "rad")
    new = found.place(start, "start", jnp.array([0.02, 0.3, 0.4]), 0)
    assert float(new.links["rod"].y) == 0.02 and float(new.links["rod"].y_rate) == 0.3
    several = fx.Start(links={"rod": fx.Shape([0.01, 0.02, 0.03])})
    found = parameters(["start.links.rod.y"], robot, [fx.Drive()], [several], ["a"], {})
    assert found.names == ("start.links.rod.y.0", "start.links.rod.y.1", "start.links.rod.y.2")
    new = found.place(several, "start", jnp.array([0.1, 0.2, 0.3]), 0)
    np.testing.assert_array_equal(new.links["rod"].y, [0.1, 0.2, 0.3])


def test_numbers_are_traced_and_stations_are_static():
    traces = []

    @jax.jit
    def tip(shape):
        traces.append(1)
        return shape.push(lambda curve: curve(np.ones(1)))[0][0, 0, 0]

    assert float(tip(fx.Shape(0.01))) == pytest.approx(0.01)
    assert float(tip(fx.Shape(0.02))) == pytest.approx(0.02)
    assert len(traces) == 1
