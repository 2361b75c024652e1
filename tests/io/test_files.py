"""Trajectories to files and back: the same numbers, the same types, and clear errors."""

import csv

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io

import flexjax as fx
from flexjax.io._tree import flatten, restore
from tests._sample import sample_drive, sample_model, sample_trajectory


@pytest.fixture(scope="module")
def traj():
    return sample_trajectory()


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["run.nc", "run.zarr"])
def test_round_trip_is_exact(traj, tmp_path, name):
    path = fx.save_trajectory(traj, tmp_path / name)
    assert_same(fx.load_trajectory(path), traj)
    assert fx.save_trajectory(traj, path) == path  # replaces what was there
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_loaded_run_goes_on(traj, tmp_path):
    loaded = fx.load_trajectory(fx.save_trajectory(traj, tmp_path / "run.nc"))
    ts = jnp.linspace(0.1, 0.2, 6)
    one, two = (
        fx.simulate(sample_model(), sample_drive(), ts, dt=5e-3, stations=3, start=t.final)
        for t in (traj, loaded)
    )
    np.testing.assert_array_equal(one.q, two.q)
    assert float(one.energy.work[0]) == float(traj.energy.work[-1])


def test_failed_run_keeps_its_status(traj, tmp_path):
    broken = eqx.tree_at(
        lambda t: (t.status, t.q), traj, (jnp.asarray(2, jnp.int32), traj.q.at[3:].set(jnp.nan))
    )
    loaded = fx.load_trajectory(fx.save_trajectory(broken, tmp_path / "run.nc"))
    assert int(loaded.status) == 2 and not loaded.ok
    np.testing.assert_array_equal(loaded.q, broken.q)


def test_dataset_has_names_and_units(traj):
    data = fx.to_dataset(traj)
    np.testing.assert_array_equal(data["q"].sel(dof="elbow"), traj.q[:, 1])
    np.testing.assert_array_equal(
        data["frames"].sel(link="fore", pose=["x", "y", "z"]).isel(station=-1), traj.tip
    )
    assert list(data["dof_unit"].values) == ["rad", "rad"]
    assert all(
        "units" in data[name].attrs
        for name in ("time", "q", "frames", "strain", "energy_work", "tip")
    )
    assert 'name = "two-link"' in data.attrs["robot"]


def test_channels_as_csv_and_mat(traj, tmp_path):
    with open(fx.to_csv(traj, tmp_path / "run.csv"), newline="") as file:
        head, *rows = csv.reader(file)
    assert head == [
        "time [s]",
        "shoulder-angle [rad]",
        "elbow-angle [rad]",
        "root-strain [1]",
        "tip-y [m]",
    ]
    np.testing.assert_array_equal(np.array(rows, float)[:, 4], traj.tip[:, 1])
    mat = scipy.io.loadmat(fx.to_mat(traj, tmp_path / "run.mat"), simplify_cells=True)
    np.testing.assert_array_equal(mat["shoulder_angle"], traj.q[:, 0])
    assert mat["units"]["tip_y"] == "m"


def test_a_state_that_is_no_plain_data_is_left_out(traj, tmp_path):
    odd = eqx.tree_at(
        lambda t: t.final.mech, traj, lambda x: x, is_leaf=lambda x: x is traj.final.mech
    )
    loaded = fx.load_trajectory(fx.save_trajectory(odd, tmp_path / "run.nc"))
    assert loaded.final is None
    np.testing.assert_array_equal(loaded.q, traj.q)


def test_reading_builds_nothing_foreign(traj):
    arrays = []
    structure = flatten(traj.final, arrays)
    assert_same(restore(structure, [jnp.asarray(a) for a in arrays]), traj.final)
    for name in ("os:system", "flexjax.robot:load_robot", "equinox:Module"):
        with pytest.raises(ValueError, match="no class of flexjax"):
            restore({"class": name, "fields": {}}, [])


def test_errors_say_what_to_do(traj, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.nc"):
        fx.save_trajectory(traj, tmp_path / "run.xyz")
    with pytest.raises(FileNotFoundError, match="Make it first"):
        fx.save_trajectory(traj, tmp_path / "nowhere" / "run.nc")
    with pytest.raises(FileNotFoundError, match="no such file"):
        fx.load_trajectory(tmp_path / "run.nc")
    (tmp_path / "junk.nc").write_text("junk")
    with pytest.raises(ValueError, match="cannot be read"):
        fx.load_trajectory(tmp_path / "junk.nc")
    (tmp_path / "folder.zarr").mkdir()
    (tmp_path / "folder.zarr" / "mine.txt").write_text("keep")
    with pytest.raises(FileExistsError, match="something else"):
        fx.save_trajectory(traj, tmp_path / "folder.zarr")
    batch = jax.tree.map(lambda x: x[None], traj)
    with pytest.raises(ValueError, match="a batch"):
        fx.to_dataset(batch)
    with pytest.raises(ValueError, match="expected a Trajectory"):
        fx.to_dataset({"q": 1})
    bare = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    assert not bare.robot.sensors
    with pytest.raises(ValueError, match="no sensors"):
        fx.to_csv(eqx.tree_at(lambda t: t.robot, traj, bare.robot), tmp_path / "x.csv")
