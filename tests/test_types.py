"""What an editor knows of the public names: pyright reads the stub, and completes every one."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import flexjax as fx

PYRIGHT = Path(sys.executable).with_name("pyright")


@pytest.mark.slow
def test_every_public_name_has_a_type(tmp_path):
    pyright = str(PYRIGHT) if PYRIGHT.exists() else shutil.which("pyright")
    if pyright is None:
        pytest.skip("needs pyright: pip install 'flexjax[dev]'")
    names = [name for name in fx.__all__ if not name.startswith("__")]
    lines = ["import flexjax as fx", *(f"reveal_type(fx.{name})" for name in names)]
    lines += ["model = fx.RigidArm().bind(fx.load_robot('two-link'))"]
    # What a user writes first: results are completed as well.
    first = {
        "fx.simulate(model, None, [0.0, 0.1], dt=0.1).tip": "Array",
        "fx.simulate(model, None, [0.0, 0.1], dt=0.1)[-1]": "Snapshot",
        "fx.linearise(model).to_mat('a.mat')": "Path",
        "fx.stepper(model).reset()[0]": "StepperState",
        "fx.load_robot('two-link').links[0].length": "Array",
    }
    lines += [f"reveal_type({text})" for text in first]
    (tmp_path / "names.py").write_text("\n".join(lines) + "\n")
    root = str(Path(fx.__file__).resolve().parents[1])
    settings = {"extraPaths": [root], "venvPath": str(Path(sys.prefix).parent)}
    settings |= {"venv": Path(sys.prefix).name}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [pyright, "--outputjson", "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [d["message"] for d in found if d["severity"] == "error"] == []
    shown = [d["message"] for d in found if d["severity"] == "information"]
    assert len(shown) == len(names) + len(first)
    for name, message in zip([*names, *first], shown, strict=True):
        revealed = message.split('" is "')[1].rstrip('"')
        assert revealed not in ("Any", "Unknown"), message
        assert not re.search(r"(->|: )\s*Unknown\b|PathLike\[Unknown", revealed), message
        assert first.get(name, "") in revealed, message
