"""What is published: wheel and source archive are built, installed into empty environments, and the
example of the README runs there.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import flexjax as fx

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, **options) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(x) for x in command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Paths of the source archive and of the wheel."""
    pytest.importorskip("hatchling", reason="needs the extra [test]")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


def install(package: Path, folder: Path) -> Path:
    """The Python of an empty environment with the package alone. What it depends on is found in
    this environment, which has the package as editable: that is not found.
    """
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    library = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, "--no-index", "--no-build-isolation", package, cwd=folder)
    return python


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("flexjax/")}


@pytest.mark.docs
def test_wheel_has_the_package_and_nothing_else(built):
    source, wheel = built
    assert fx.__version__ in wheel.name and fx.__version__ in source.name
    tracked = (
        run("git", "ls-files", "flexjax", cwd=ROOT).split() if (ROOT / ".git").exists() else ()
    )
    names = names_in(wheel)
    assert names and (not tracked or set(tracked) <= names)
    assert not [name for name in names if "node_modules" in name or name.endswith(".pyc")]
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CITATION.cff", "Makefile", "tests/test_package.py"} <= inside


@pytest.mark.docs
def test_wheel_runs_the_example_of_the_readme(built, tmp_path):
    python = install(built[1], tmp_path / "empty")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", readme, re.S)[1]
    place = "import flexjax; print(flexjax.__file__, flexjax.__version__)\n"
    out = run(python, "-c", place + example, cwd=tmp_path)
    assert str(tmp_path / "empty") in out and fx.__version__ in out and "height 0.4" in out
    assert "simulate" in run(tmp_path / "empty" / "bin" / "flexjax", "--help", cwd=tmp_path)


@pytest.mark.docs
def test_source_archive_installs(built, tmp_path):
    python = install(built[0], tmp_path / "empty")
    code = "import flexjax as fx; print(fx.__file__, fx.load_robot('two-link').name)"
    out = run(python, "-c", code, cwd=tmp_path)
    assert str(tmp_path / "empty") in out and "two-link" in out


def test_versions_agree():
    """Package, citation and changelog name one version."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {fx.__version__}\n" in citation
    assert f'\nversion = "{fx.__version__}"\n' in project
    assert re.search(r"^## \[(\d[\d.]*)\]", changes, re.M)[1] == fx.__version__


def test_workflow_and_hooks_call_the_targets_of_make():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    run_here = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    wanted = set(re.findall(r"^make ([a-z-]+)$", run_here, re.M))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert wanted == {"lint", "test", "test-docs"} <= targets
    assert all(f"target: {name}" in workflow or f"[{name}]" in workflow for name in wanted)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"make ([a-z-]+)$", hooks, re.M)) <= targets
