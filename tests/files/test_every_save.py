"""Every function that saves a file: an end before the last step leaves the old file as it was."""

import pytest

import flexjax as fx
from flexjax._files import _write
from flexjax.viz import Report
from tests.fuzz.loaders import trajectory

SAVES = {
    "run.nc": lambda path: fx.save_trajectory(trajectory(), path),
    "run.zarr": lambda path: fx.save_trajectory(trajectory(), path),
    "run.csv": lambda path: fx.to_csv(trajectory(), path),
    "run.mat": lambda path: fx.to_mat(trajectory(), path),
    "arm.toml": lambda path: fx.save_robot(fx.load_robot("rigid-3r"), path),
    "arm.urdf": lambda path: fx.save_urdf(fx.load_robot("rigid-3r"), path),
    "run.glb": lambda path: fx.save_gltf(trajectory(), path),
    "view.html": lambda path: fx.animate(trajectory(), path),
    "film.gif": lambda path: fx.animate(trajectory(), path),
    "report.html": lambda path: Report("a", "b").text("c").save(path),
    "plot.png": lambda path: fx.plot(trajectory(), "joints").savefig(path),
}


def content(path):
    """Names and bytes of a file or a store."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [(p.relative_to(path), p.read_bytes()) for p in files]


SLOW = ("film.gif",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SAVES]
)
def test_a_save_that_ends_early_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    SAVES[name](path)
    before = content(path)
    assert before and all(len(x) for _, x in before)

    def killed(part):
        assert part != path and part.exists()  # complete, under another name
        raise KeyboardInterrupt

    monkeypatch.setattr(_write, "_sync", killed)
    with pytest.raises(KeyboardInterrupt):
        SAVES[name](path)
    assert content(path) == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_the_list_of_saves_is_complete():
    """Every public function whose name says that it saves is above, or has a test of its own."""
    own = {"to_fmu", "to_dataset", "to_exudyn"}  # tests/io/test_fmu.py; the others write no file
    names = {n for n in dir(fx) if n.startswith(("save_", "to_"))} - own
    used = {n for save in SAVES.values() for n in save.__code__.co_names}
    assert names <= used, names - used
