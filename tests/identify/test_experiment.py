"""Experiments: files, units, gaps, grids, and what is refused."""

import numpy as np
import pytest

import flexjax as fx
from flexjax.study.identify.records._track import track
from flexjax.study.identify.records._units import parse_unit
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


def test_resampling_keeps_every_reading_of_a_slow_camera():
    ts = np.arange(3970) / 600
    y = np.sin(7 * ts)
    camera = np.where(np.arange(3970) % 10 == 0, y, np.nan)
    e = fx.Experiment(ts, {"camera": camera, "angle": y}, efforts={"pin": y})
    for step in (1 / 600, 1 / 300, 1 / 1200):
        new = e.resample(step)
        seen = np.isfinite(new.sensors["camera"])
        assert seen.sum() == 397  # none lost, none made up between two frames
        np.testing.assert_allclose(new.sensors["camera"][seen], np.sin(7 * new.ts[seen]), atol=1e-6)
        assert np.isfinite(new.sensors["angle"]).all()
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, 3970) / 600
    jitter[0] = 0
    uneven = fx.Experiment(
        ts + jitter, {"camera": np.where(np.isnan(camera), np.nan, np.sin(7 * (ts + jitter)))}
    )
    new = uneven.resample(1 / 600)
    seen = np.isfinite(new.sensors["camera"])
    assert seen.sum() == 397
    np.testing.assert_allclose(new.sensors["camera"][seen], np.sin(7 * new.ts[seen]), atol=1e-3)
    coarse = e.resample(0.05).sensors["camera"]
    assert np.isfinite(coarse).all()


@pytest.mark.parametrize("step", [0.01, 0.02, 0.023, 0.05])
def test_resampling_fills_no_gap(step):
    """A gap of the times, one of readings, and one single reading that is missing."""
    rows = np.ones(51, bool)
    rows[10:20] = False
    y = Y.copy()
    y[30:40] = np.nan
    y[45] = np.nan
    e = fx.Experiment(T[rows], {"angle": y[rows]}, efforts={"pin": Y[rows]})
    new = e.resample(step)
    value, t = new.sensors["angle"], new.ts
    gap = np.isnan(value)
    inside = lambda a, b: (t > a + step / 2) & (t < b - step / 2)
    assert gap[inside(0.18, 0.40)].all() and gap[inside(0.58, 0.80)].all()
    assert gap[inside(0.88, 0.92)].all()
    away = (t <= 0.18) | ((t >= 0.4) & (t <= 0.58)) | ((t >= 0.8) & (t <= 0.88)) | (t >= 0.92)
    assert not gap[away].any()
    tolerance = 0.01 if step < 0.03 else 0.03  # a straight line, a mean over the step
    np.testing.assert_allclose(value[~gap], np.sin(7 * t[~gap]), atol=tolerance)
    assert np.isfinite(new.efforts["pin"]).all()


def test_an_empty_cell_at_the_end_of_a_row_is_a_gap(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,angle,motor\n0,1,2\n0.1,3,\n0.2,,\n0.3,5,6\n")
    e = fx.Experiment.read(path)
    np.testing.assert_array_equal(e.sensors["angle"], [1, 3, np.nan, 5])
    np.testing.assert_array_equal(e.sensors["motor"], [2, np.nan, np.nan, 6])
    path.write_text("time;angle;\n0;1;\n0.1;;\n0.2;3\n")  # a delimiter that ends every line
    e = fx.Experiment.read(path)
    np.testing.assert_array_equal(e.sensors["angle"], [1, np.nan, 3])
    path.write_text("time,angle\n0,1,\n0.1,2,\n")  # one that ends the rows only
    np.testing.assert_array_equal(fx.Experiment.read(path).sensors["angle"], [1, 2])
    path.write_text("0,1,\n0.1,2,\n")
    e = fx.Experiment.read(path, time="0", sensors={"angle": "1"})
    np.testing.assert_array_equal(e.sensors["angle"], [1, 2])
    path.write_text("time,angle\n0,1,7\n0.1,2,\n")
    with pytest.raises(ValueError, match="line 2: 3 values; expected 2"):
        fx.Experiment.read(path)


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
        ({"sensors": {"angle": np.nan * Y}}, "contains no number"),
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
        ("", {}, "contains no column"),
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
    assert "did you mean 'angle'" in faults and "Did you mean 'pin'" in faults
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
