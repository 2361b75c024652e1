"""Experiments: files, units, gaps, grids, and what is refused."""

import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify._track import track
from flexjax.study.identify._units import parse_unit
from tests.identify.cases import joint_arm

T = np.linspace(0.0, 1.0, 51)
Y = np.sin(7 * T)


def write_csv(path, columns: dict, delimiter=","):
    rows = [delimiter.join(columns)] + [
        delimiter.join("" if np.isnan(x) else repr(float(x)) for x in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_csv_with_units_and_roles(tmp_path):
    path = write_csv(
        tmp_path / "a.csv",
        {
            "time [ms]": 1e3 * T,
            "effort.pin [mN m]": 5e2 * Y,
            "angle [deg]": np.degrees(Y),
            "motor": Y,
        },
    )
    e = fx.Experiment.read(path)
    np.testing.assert_allclose(e.ts, T, rtol=1e-12)
    np.testing.assert_allclose(e.efforts["pin"], 0.5 * Y, rtol=1e-12)
    np.testing.assert_allclose(e.sensors["angle"], Y, rtol=1e-12)
    assert set(e.sensors) == {"angle", "motor"} and e.faults(joint_arm()) == [] and e.name == "a"


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_mapping_offset_and_delimiters(tmp_path, delimiter):
    path = write_csv(tmp_path / "a.txt", {"t_s": T, "tau": Y, "th": Y, "unused": Y}, delimiter)
    e = fx.Experiment.read(
        path, sensors={"angle": "th"}, efforts={"pin": "tau"}, units={"th": "deg"}, offset=-0.5
    )
    assert list(e.sensors) == ["angle"] and e.ts[0] == -0.5
    np.testing.assert_allclose(np.degrees(e.sensors["angle"]), Y, rtol=1e-12)


def test_table_without_header_or_time(tmp_path):
    path = tmp_path / "plain.dat"
    np.savetxt(path, np.stack([Y, 2 * Y], axis=1))
    e = fx.Experiment.read(path, rate=50.0, currents={"pin": "0"}, sensors={"angle": "1"})
    np.testing.assert_allclose(e.ts, T, rtol=1e-12)
    np.testing.assert_allclose(e.sensors["angle"], 2 * e.currents["pin"])


def test_mat_npz_netcdf_give_the_same(tmp_path):
    import xarray
    from scipy.io import savemat

    savemat(
        tmp_path / "a.mat",
        {"time": T[:, None], "angle": np.degrees(Y)[:, None], "units": {"angle": "deg"}},
    )
    np.savez(tmp_path / "a.npz", **{"time": T, "angle [deg]": np.degrees(Y)})
    data = xarray.Dataset(
        {"angle": ("time", np.degrees(Y), {"units": "deg"})}, {"time": ("time", T, {"units": "s"})}
    )
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    for name in ("a.mat", "a.npz", "a.nc"):
        e = fx.Experiment.read(tmp_path / name)
        np.testing.assert_allclose(e.sensors["angle"], Y, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(e.ts, T, rtol=1e-12)


@pytest.mark.slow
def test_what_to_csv_writes_is_read(tmp_path):
    traj = fx.simulate(fx.RigidArm().bind(joint_arm()), None, np.linspace(0, 0.02, 3), dt=0.01)
    fx.to_csv(traj, tmp_path / "run.csv")
    e = fx.Experiment.read(tmp_path / "run.csv")
    assert (
        set(e.sensors) == {"angle", "motor"}
        and e.kinds["angle"] == "angle"
        and e.faults(joint_arm()) == []
    )


def test_gaps_windows_and_grids(tmp_path):
    y = Y.copy()
    y[10:20] = np.nan
    e = fx.Experiment(T, {"angle": y, "motor": Y}, efforts={"pin": Y})
    assert "10 gaps" in str(e)
    fine = e.resample(0.01)
    np.testing.assert_allclose(np.diff(fine.ts), 0.01)
    gap = np.isnan(fine.sensors["angle"])
    assert (
        gap[(fine.ts > 0.21) & (fine.ts < 0.38)].all()
        and not gap[(fine.ts < 0.17) | (fine.ts > 0.41)].any()
    )
    coarse = fx.Experiment(T, {"motor": 1 + 2 * T}).resample(0.1)
    np.testing.assert_allclose(coarse.sensors["motor"], 1 + 2 * coarse.ts, atol=1e-9)
    first, second = e.split(0.5)
    assert first.ts[-1] == pytest.approx(0.5) and second.ts[0] == pytest.approx(0.5)
    assert np.isnan(e.without(0.6, 0.7, "motor").sensors["motor"]).sum() == 6
    assert e.shift(2.0).ts[0] == 2.0
    noisy = fx.Experiment(
        T, {"motor": Y}, motions={"pin": np.sin(3 * T) + 0.1 * np.sin(2 * np.pi * 20 * T)}
    )
    assert np.std(noisy.smooth(4.0).motions["pin"] - np.sin(3 * T)) < 0.02


def test_gaps_of_inputs_are_filled_on_request(tmp_path):
    u = Y.copy()
    u[5:7] = np.nan
    path = write_csv(tmp_path / "a.csv", {"time": T, "effort.pin": u, "angle": Y})
    with pytest.raises(ValueError, match="2 gaps; an input has none"):
        fx.Experiment.read(path)
    e = fx.Experiment.read(path, fill=0.1)
    assert abs(e.efforts["pin"][5] - Y[5]) < 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ts": T[::-1]}, "expected increasing times"),
        ({"ts": np.where(T == T[3], np.nan, T)}, "row 3 is nan"),
        ({"sensors": {"angle": Y[:-1]}}, r"shape \(50,\); expected \(51,\)"),
        ({"sensors": {"angle": np.nan * Y}}, "no number at all"),
        ({"sensors": {"angle": np.where(T > 0.5, np.inf, Y)}}, "infinite at t = 0.52"),
        ({"sensors": {}}, "at least one sensor"),
        ({"efforts": {"pin": Y}, "motions": {"pin": Y}}, "driven twice"),
        ({"noise": {"nose": 1.0}}, "no such sensor here"),
        ({"noise": {"angle": -1.0}}, "expected a positive number"),
        ({"start": 3.0}, "'rest'"),
    ],
)
def test_bad_records_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fx.Experiment(**({"ts": T, "sensors": {"angle": Y}} | change))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("time,angle\n0,1\n1,two\n", {}, "line 3, column 'angle': 'two'"),
        ("time,angle\n0,1\n1\n", {}, "line 3: 1 values; expected 2"),
        ("when,angle\n0,1\n1,2\n", {}, "no time column"),
        ("time,angle\n0,1\n1,2\n", {"sensors": {"angle": "angel"}}, "did you mean 'angle'"),
        ("time,angle [furlong]\n0,1\n1,2\n", {}, "unit 'furlong' is unknown"),
        ("time [m],angle\n0,1\n1,2\n", {}, "expected seconds"),
        (
            "time,angle,tau [mm]\n0,1,2\n1,2,3\n",
            {"efforts": {"pin": "tau"}},
            "expected torque or force",
        ),
        ("time,angle\n0,1\n1,2\n", {"units": {"angel": "deg"}}, "no such column"),
        ("time,angle,angle\n0,1,1\n1,2,2\n", {}, "two columns"),
        ("", {}, "holds no column"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, options, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        fx.Experiment.read(path, **options)


def test_missing_and_unknown_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        fx.Experiment.read(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="expected a name that ends in"):
        fx.Experiment.read(tmp_path / "a.xlsx")


def test_what_does_not_fit_the_robot():
    e = fx.Experiment(T, {"angel": Y}, efforts={"pins": Y}, kinds={})
    faults = "\n".join(e.faults(joint_arm()))
    assert "did you mean 'angle'" in faults and "did you mean 'pin'" in faults
    assert (
        "torque_constant"
        in fx.Experiment(T, {"angle": Y}, currents={"pin": Y}).faults(joint_arm())[0]
    )
    assert (
        "recorded as length"
        in fx.Experiment(T, {"angle": Y}, kinds={"angle": "length"}).faults(joint_arm())[0]
    )


def test_tracks_follow_their_samples():
    for hold in ("cubic", "linear", "zero"):
        signal = track(T, Y, hold)
        np.testing.assert_allclose(signal(T[:-1]), Y[:-1], atol=1e-12)
    smooth = track(T, Y)
    value, rate, acc = smooth.evaluate(0.333)
    assert (
        abs(value - np.sin(7 * 0.333)) < 1e-4
        and abs(rate - 7 * np.cos(7 * 0.333)) < 1e-2
        and abs(acc + 49 * np.sin(7 * 0.333)) < 1
    )
    held = track(T, Y, "zero")
    assert (
        float(held.evaluate(0.02, 0.03)[0]) == Y[1] and float(held.evaluate(0.02, 0.01)[0]) == Y[0]
    )
    uneven = track(T**1.5, Y)
    np.testing.assert_allclose(uneven(T**1.5), Y, atol=1e-12)


def test_units():
    assert (
        parse_unit("N·m", "x").kind == "torque" and parse_unit("m/s^2", "x").kind == "acceleration"
    )
    assert parse_unit("µε", "x").factor == 1e-6
