"""Free parameters: paths, transforms, bounds, priors, ties."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.study.free import parameters


def expand(free, robot=None, drives=None, starts=None):
    robot = fx.load_robot("two-link") if robot is None else robot
    return parameters(
        free,
        robot,
        drives or [fx.Drive()],
        starts or [fx.Start()],
        ["a", "b"],
        {"sensors.tip-y.offset": 0.3},
    )


def test_stars_units_and_kinds():
    par = expand(
        [
            "links.*.material.E",
            "gravity",
            "sensors.tip-y.offset",
            "links.upper.material.nu",
            "joints.shoulder.hub.inertia",
        ]
    )
    assert par.names[:5] == (
        "links.upper.material.E",
        "links.fore.material.E",
        "gravity.0",
        "gravity.1",
        "gravity.2",
    )
    assert par.kinds == ("log", "log", "none", "none", "none", "none", "logit", "log")
    assert par.units[:3] == ("Pa", "Pa", "m/s2") and float(par.scale[5]) == 0.3


def test_values_and_back():
    par = expand(
        [
            fx.Free("links.*.material.E", bounds=(50e9, 90e9)),
            "gravity.1",
            fx.Free("payloads.0.mass", bounds=(0.05, None)),
        ]
    )
    z = jnp.array([0.3, -0.2, 0.1, 0.7])
    np.testing.assert_allclose(par.inverse(par.values(z)), z, atol=1e-12)
    np.testing.assert_allclose(par.values(jnp.zeros(4)), [70e9, 70e9, -9.81, 0.1], rtol=1e-12)
    extreme = par.values(jnp.array([40.0, -40.0, 0.0, -40.0]))
    assert 50e9 <= float(extreme[1]) and float(extreme[0]) <= 90e9 and float(extreme[3]) >= 0.05
    assert np.all(np.isfinite(jax.jacfwd(par.values)(z))) and np.all(
        np.isfinite(jax.jacrev(par.values)(z))
    )


def test_numbers_arrive_where_they_belong():
    robot = fx.load_robot("two-link")
    par = expand(
        [
            fx.Free("links.*.damping.strain_rate", tie="value"),
            fx.Free("links.*.section.height", tie="factor"),
            "gravity.1",
        ],
        robot,
    )
    assert par.size == 3
    new = par.place(robot, "robot", jnp.array([2e-4, 1.1, -5.0]))
    assert [float(link.damping.strain_rate) for link in new.links] == [2e-4, 2e-4]
    np.testing.assert_allclose([float(link.section.height) for link in new.links], [0.0055, 0.0033])
    np.testing.assert_allclose(new.gravity, [0, -5, 0])
    assert float(
        jax.grad(lambda v: par.place(robot, "robot", v).links[1].section.height)(
            jnp.array([2e-4, 1.1, -5.0])
        )[1]
    ) == pytest.approx(0.003)


def test_drive_and_start():
    drive = fx.Drive({"shoulder": fx.PD(10.0, 1.0, fx.constant(0.5))})
    starts = [fx.Start({"elbow": 0.1}), fx.Start({"elbow": 0.2})]
    par = expand(
        ["drive.joints.shoulder.kp", "start.joints.elbow"], drives=[drive, drive], starts=starts
    )
    assert par.names == (
        "drive.joints.shoulder.kp",
        "start.joints.elbow of a",
        "start.joints.elbow of b",
    )
    values = jnp.array([20.0, 0.3, 0.4])
    assert float(par.place(drive, "drive", values).joints["shoulder"].kp) == 20.0
    assert float(par.place(starts[1], "start", values, 1).joints["elbow"]) == 0.4


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        ("drive.joints.shoulder.signal.values", (0, 1, 2)),
        ("drive.joints.shoulder.signal.values.*", (0, 1, 2)),
        ("drive.joints.shoulder.signal.values.2", (2,)),
        ("drive.joints.*.signal.values.1", (1,)),
    ],
)
def test_a_vector_of_the_drive_is_all_of_its_entries(path, entries):
    drive = fx.Drive({"shoulder": fx.Effort(fx.recorded([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]))})
    par = expand([path], drives=[drive])
    assert par.names == tuple(f"drive.joints.shoulder.signal.values.{k}" for k in entries)
    np.testing.assert_allclose(par.start, [3.0 + k for k in entries])
    new = par.place(drive, "drive", jnp.asarray([10.0 + k for k in entries]))
    wanted = [10.0 + k if k in entries else 3.0 + k for k in range(3)]
    np.testing.assert_allclose(new.joints["shoulder"].signal.values, wanted)


def test_arrays_of_several_axes():
    table = fx.recorded([0.0, 1.0], [[1.0, 2.0], [3.0, 4.0]])
    drive = fx.Drive({"shoulder": fx.Effort(table)})
    par = expand(["drive.joints.shoulder.signal.values"], drives=[drive])
    assert [n.rpartition("values.")[2] for n in par.names] == ["0.0", "0.1", "1.0", "1.1"]
    new = par.place(drive, "drive", jnp.arange(4.0)).joints["shoulder"].signal.values
    np.testing.assert_allclose(new, [[0.0, 1.0], [2.0, 3.0]])
    par = expand([fx.Free("drive.joints.shoulder.signal.values.*.0", tie="value")], drives=[drive])
    new = par.place(drive, "drive", jnp.array([9.0])).joints["shoulder"].signal.values
    np.testing.assert_allclose(new, [[9.0, 2.0], [9.0, 4.0]])


def test_vectors_of_the_start():
    starts = [fx.Start({"elbow": [0.1, 0.2]})]
    par = expand(["start.joints.elbow"], starts=starts)
    assert par.names == ("start.joints.elbow.0", "start.joints.elbow.1")
    np.testing.assert_allclose(par.start, [0.1, 0.2])
    new = par.place(starts[0], "start", jnp.array([0.3, 0.4]), 0)
    np.testing.assert_allclose(new.joints["elbow"], [0.3, 0.4])


def test_drives_must_have_the_same_entries():
    short, long = (
        fx.Drive({"shoulder": fx.Effort(fx.recorded(jnp.arange(float(n)), jnp.ones(n)))})
        for n in (2, 3)
    )
    with pytest.raises(ValueError, match=r"free 'drive.*values': the drives of 'a' and 'b' differ"):
        expand(["drive.joints.shoulder.signal.values"], drives=[long, short])


def test_priors():
    par = expand(
        [
            fx.Free("links.upper.material.E", prior=(70e9, 7e9)),
            fx.Free("gravity.1", prior=(-9.81, 0.1)),
            "links.fore.material.E",
        ]
    )
    r = par.prior_residual(jnp.array([77e9, -9.71, 1e9]))
    np.testing.assert_allclose(r, [np.log(1.1) / 0.1, 1.0, 0.0], rtol=1e-9)


@pytest.mark.parametrize(
    ("free", "message"),
    [
        ([], "free: none; expected at least one free parameter"),
        ([3], "expected a path"),
        (["links.upper.material.F"], "Near: links.upper.material.E"),
        (["links.upper.curvature"], "absent"),
        (["links.*.material.E", "links.upper.material.E"], "named twice"),
        ([fx.Free("links.upper.material.E", bounds=(80e9, 90e9))], "not inside"),
        ([fx.Free("links.upper.material.E", bounds=(90e9, 80e9))], "lower and a larger upper"),
        ([fx.Free("gravity.0", bounds=(0.0, None))], "not inside"),
        ([fx.Free("links.upper.material.E", transform="sqrt")], "expected one of none, log, logit"),
        ([fx.Free("links.*.material.E", tie="yes")], "expected 'value'"),
        ([fx.Free("links.upper.material.E", prior=(70e9, 0.0))], "positive standard deviation"),
        ([fx.Free("gravity.1", bounds=(-12.0, None), transform="none")], "give both bounds"),
    ],
)
def test_bad_requests_are_refused(free, message):
    with pytest.raises(ValueError, match=message):
        expand(free)
