"""compare reports a formulation that fails, and goes on with the others."""

import json
from unittest import mock

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax._results import Status
from flexjax.cli._main import main
from flexjax.formulation import REGISTRY, ChainModel

TS = jnp.linspace(0.0, 0.1, 5)
ROBOT = fx.load_robot("rigid-3r")


class Stopping(ChainModel):
    """Fails in the middle of the run."""

    def failure(self, t, y, drive):
        failed = jnp.where(t > 0.06, int(Status.singular), 0)
        return failed.astype(jnp.int32), jnp.asarray(1, jnp.int32)


class Stops(fx.RigidArm):
    model: type = eqx.field(static=True, default=Stopping)

    def build(self, robot):
        made = super().build(robot)
        return self.model(made.robot, self, made.layout, made.parameters)


class StopsAtOnce(Stops):
    model: type = eqx.field(
        static=True,
        default=type(
            "AtOnce",
            (Stopping,),
            {
                "failure": lambda self, t, y, d: (
                    jnp.asarray(int(Status.singular), jnp.int32),
                    jnp.asarray(-1, jnp.int32),
                )
            },
        ),
    )


class Breaks(fx.RigidArm):
    def build(self, robot):
        raise ValueError("links.link1.length: 0.3; expected another number.")


class Bug(fx.RigidArm):
    def build(self, robot):
        raise TypeError("a fault of the program")


def compared(**formulations):
    return fx.compare(ROBOT, None, TS, dt=0.025, formulations=formulations)


@pytest.fixture(scope="module")
def result():
    return compared(sound=fx.RigidArm(), stops=Stops(), at_once=StopsAtOnce(), breaks=Breaks())


def test_rows_have_status_and_reason(result):
    rows = {row.name: row for row in result.rows}
    assert list(rows) == ["sound", "stops", "at_once", "breaks"]
    assert [rows[n].status for n in rows] == ["ok", "singular", "singular", "error"]
    assert rows["sound"].reason == "" and rows["sound"].tip == 0.0
    assert "t = 0.075 s" in rows["stops"].reason and "joint 'shoulder'" in rows["stops"].reason
    assert "links.link1.length: 0.3; expected another number." in rows["breaks"].reason
    assert np.isfinite(rows["stops"].tip) and np.isnan(rows["breaks"].tip)
    assert len(rows["stops"].frequencies) == len(rows["sound"].frequencies)
    assert result.reference == "sound"
    assert set(result.trajectories) == {"sound", "stops", "at_once"}
    text = str(result)
    assert "singular" in text and "breaks: error: " in text and "expected another number" in text


def test_figures_of_a_comparison_with_failures(result):
    for what in (None, "tip", "joints", "energy", "spectrum", "difference"):
        fx.plot(result, what).canvas.draw()
    assert "sound" in str(fx.animate(result))


def test_reference_and_total_failure(result):
    with pytest.raises(ValueError, match=r"reference: 'breaks'; expected one of sound\."):
        fx.compare(
            ROBOT,
            None,
            TS,
            dt=0.025,
            formulations={"sound": fx.RigidArm(), "breaks": Breaks()},
            reference="breaks",
        )
    none = compared(stops=Stops())
    assert none.reference == "stops" and none.rows[0].status == "singular"
    with pytest.raises(ValueError, match="expected another number"):
        compared(breaks=Breaks())
    with pytest.raises(TypeError, match="a fault of the program"):
        compared(sound=fx.RigidArm(), bug=Bug())
    with pytest.raises(fx.SimulationError):
        fx.compare(ROBOT, None, TS, dt=0.025, formulations={"stops": Stops()}, throw=True)


def test_command_line_reports_failures(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = {
        "RigidArm": f"{__name__}.RigidArm",
        "Stops": f"{__name__}.Stops",
        "Breaks": f"{__name__}.Breaks",
    }
    monkeypatch.setitem(globals(), "RigidArm", fx.RigidArm)
    args = ["compare", "rigid-3r", "--end", "0.1", "--outputs", "5", "--dt", "0.025", "--json"]
    with mock.patch.dict(REGISTRY, names, clear=True):
        assert main(args) == 0
    rows = {row["formulation"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert [rows[n]["status"] for n in names] == ["ok", "singular", "error"]
    assert "shoulder" in rows["Stops"]["reason"] and rows["Breaks"]["tip [m]"] is None
    page = (tmp_path / "compare.html").read_text()
    assert "singular" in page and "expected another number" in page
