"""The 3D page, films and reports: small, without network, drawn from the trajectory's data."""

import html
import json
import re

import equinox as eqx
import jax
import numpy as np
import pytest
from PIL import Image

import flexjax as fx
from flexjax.viz import Report
from flexjax.viz.scene._film import film_speed
from flexjax.viz.scene._scene import decode, half_sizes
from flexjax.viz.scene._scene_parts import joint_motion, joint_parts, up_and_floor
from tests._sample import sample_model, sample_trajectory

LIMIT = 2_000_000


def scene_of(page: str) -> dict:
    return json.loads(
        re.search(r'<script id="scene" type="application/json">(.*?)</script>', page, re.S)[1]
    )


def outside(page: str) -> list[str]:
    """Addresses and means to use the network; a W3C namespace is only a name."""
    found = [
        a
        for a in re.findall(r"(?:https?|wss?|ftp):?//[^\s\"'`<>)]*", page)
        if "www.w3.org/" not in a
    ]
    found += re.findall(
        r"\b(?:fetch|importScripts|sendBeacon)\(|XMLHttpRequest|WebSocket\(|EventSource\(", page
    )
    return found + re.findall(r"<(?:link|base)\b|<script[^>]+src=|@import|url\((?!data:)", page)


@pytest.fixture(scope="module")
def page():
    traj = sample_trajectory()
    return fx.animate({"one": traj, "</script><b>two": traj}).html


def test_page_is_small_and_alone(page, record_number):
    assert outside(page) == []
    assert "default-src 'none'" in page
    record_number("size of the 3D page of two runs [bytes]", len(page.encode()), LIMIT)
    assert outside('<script src="https://cdn.example/three.js"></script>') and outside(
        "fetch('x')"
    )  # the check finds faults


def test_scene_is_the_trajectory(page):
    traj = sample_trajectory()
    scene = scene_of(page)
    arm = scene["arms"][0]
    shape = tuple(arm["shape"])
    assert shape == traj.frames.shape[:3]
    np.testing.assert_array_equal(arm["times"], np.asarray(traj.ts).round(9))
    np.testing.assert_array_equal(
        decode(arm["frames"], (*shape, 7)), np.asarray(traj.frames, np.float32)
    )
    np.testing.assert_array_equal(
        decode(arm["deflection"], (*shape, 3)), np.asarray(traj.deflection, np.float32)
    )
    assert [link["parent"] for link in scene["links"]] == [-1, 0]
    assert [payload["link"] for payload in scene["payloads"]] == [1]
    curves = arm["curves"]
    groups = {c["group"] for c in curves["channels"]}
    names = [c["name"] for c in curves["channels"]]
    assert {
        "joints",
        "joint rates",
        "efforts",
        "tip",
        "deflections",
        "energies",
        "sensors",
    } == groups
    values = decode(curves["values"], (len(names), len(traj.ts)))
    np.testing.assert_array_equal(values[:2], np.asarray(traj.q.T, np.float32))


def test_a_name_cannot_break_the_page(page):
    assert "<b>two" not in page
    assert scene_of(page)["arms"][1]["name"] == "</script><b>two"


def test_long_runs_are_thinned_to_the_limit(record_number):
    traj = sample_trajectory()
    n = 5000

    def longer(x):
        return np.repeat(np.asarray(x), n // x.shape[0] + 1, axis=0)[:n]

    fields = ("frames", "velocity", "acceleration", "deflection", "strain")
    wide = [np.repeat(longer(getattr(traj, k)), 7, axis=2) for k in fields]
    others = ("q", "qd", "motor", "effort", "energy")
    rest = [jax.tree.map(longer, getattr(traj, k)) for k in others]
    long = eqx.tree_at(
        lambda t: (t.ts, *(getattr(t, k) for k in (*fields, *others)), t.stations),
        traj,
        (np.linspace(0, 9, n), *wide, *rest, np.linspace(0, 1, 21)),
    )
    page = fx.animate({str(i): long for i in range(5)}).html
    record_number("size of the 3D page of five long runs [bytes]", len(page.encode()), LIMIT)
    arm = scene_of(page)["arms"][0]
    assert arm["times"][0] == 0 and arm["times"][-1] == 9


def test_joints_by_kind_and_moving_seats():
    """A telescope is where its child passes the joint; the seat of a revolute joint is the base."""
    robot = fx.load_robot("my-rpb")
    kinds = [part["kind"] for part in joint_parts(robot)]
    assert kinds == ["revolute", "telescope"]
    arm, pick = with_base(), np.arange(6)
    seat = decode(joint_motion(arm, pick)[0]["seat"], (6, 7))
    motion = BASE.motion
    for t, row in zip(arm.ts, seat, strict=True):
        pose, _, _ = motion(t)
        np.testing.assert_allclose(row[:3], pose.position, atol=1e-6)
        np.testing.assert_allclose(2 * np.arctan2(row[6], row[3]), BASE.angle(t), atol=1e-6)
    assert len(decode(joint_motion(sample_trajectory(), pick)[0]["seat"], (1, 7))) == 1


BASE = fx.Base(
    translation=fx.stack([fx.sine(0.1, 2.0), fx.constant(0.0), fx.constant(0.0)]),
    angle=fx.sine(0.3, 1.0),
)


def with_base():
    return fx.simulate(
        sample_model(), fx.Drive(base=BASE), np.linspace(0.0, 0.1, 6), dt=5e-3, stations=3
    )


def test_loads_of_a_drive():
    wrench = fx.stack([fx.ramp(2.0, duration=0.1), *[fx.constant(0.0)] * 5])
    drive = fx.Drive(loads=(fx.Load("upper", wrench, s=0.5, frame="section"),))
    traj = sample_trajectory()
    (load,) = fx.animate(traj, drive=drive).scene["arms"][0]["loads"]
    assert (load["link"], load["s"], load["follows"]) == (0, 0.5, True)
    shown = decode(load["wrench"], (6, 6))
    np.testing.assert_allclose(shown[:, 0], np.asarray(wrench(traj.ts))[:, 0], atol=1e-6)
    with pytest.raises(ValueError, match="drive: 'two'; expected names of RigidArm"):
        fx.animate(traj, drive={"two": drive})
    with pytest.raises(ValueError, match="drive: a str; expected a Drive"):
        fx.animate(traj, drive="drive.toml")
    with pytest.raises(ValueError, match="loads.0.link: 'hand'"):
        fx.animate(traj, drive=fx.Drive(loads=(fx.Load("hand", wrench),)))


@pytest.mark.parametrize(
    ("gravity", "up", "floor"),
    [
        ([0.0, -9.81, 0.0], [0, 1, 0], [0, 1, 0]),
        ([0.0, 0.0, 0.0], [0, 1, 0], [0, 0, 1]),
        ([-9.81, 0.0, 0.0], [1, 0, 0], [1, 0, 0]),
    ],
)
def test_gravity_points_to_the_floor(gravity, up, floor):
    robot = fx.load_robot("two-link").replace("gravity", gravity)
    found = up_and_floor(robot)
    np.testing.assert_allclose(found, (up, floor), atol=1e-12)


def test_show_opens_the_page(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    traj = sample_trajectory()
    shown = fx.show(traj, tmp_path / "arm.html")
    assert opened == [(tmp_path / "arm.html").as_uri()]
    assert (tmp_path / "arm.html").read_text() == shown.html
    fx.show(traj)
    assert opened[1].endswith("/arm.html")
    fx.show(traj, tmp_path / "arm.html", open=False)
    monkeypatch.setattr("flexjax.viz.scene._animate.in_notebook", lambda: True)
    assert "<iframe srcdoc=" in fx.show(traj)._repr_html_()
    assert len(opened) == 2
    with pytest.raises(ValueError, match="fx.animate writes films"):
        fx.show(traj, tmp_path / "arm.gif")


def test_failed_outputs_are_left_out():
    traj = sample_trajectory()
    broken = eqx.tree_at(lambda t: t.frames, traj, traj.frames.at[4:].set(np.nan))
    assert len(fx.animate(broken).scene["arms"][0]["times"]) == 4
    with pytest.raises(ValueError, match="no finite output"):
        fx.animate(eqx.tree_at(lambda t: t.frames, traj, traj.frames * np.nan))


def test_half_sizes_follow_the_section():
    robot = fx.load_robot("two-link")
    np.testing.assert_allclose(
        half_sizes(robot.links[0], np.array([0.0, 1.0])), [[0.0025, 0.015]] * 2
    )
    taper = fx.Link(
        "l", 1.0, fx.Circle(0.02), fx.Material.named("steel"), section_end=fx.Circle(0.01)
    )
    np.testing.assert_allclose(
        half_sizes(taper, np.array([0.0, 0.5, 1.0]))[:, 0], [0.01, 0.0075, 0.005]
    )


def test_files_and_notebooks(tmp_path):
    traj = sample_trajectory()
    animation = fx.animate(traj, tmp_path / "arm.html")
    assert (tmp_path / "arm.html").read_text() == animation.html
    assert (
        html.unescape(re.search(r'srcdoc="(.*?)" style', animation._repr_html_(), re.S)[1])
        == animation.html
    )
    fx.animate(traj, tmp_path / "arm.gif", fps=4)
    duration = float(traj.ts[-1] - traj.ts[0])
    assert (
        duration / film_speed(duration) >= 2 and film_speed(5.0) == 1
    )  # a short run is slowed down
    with Image.open(tmp_path / "arm.gif") as film:
        assert film.format == "GIF" and film.n_frames == round(4 * duration / film_speed(duration))
    with pytest.raises(ValueError, match="expected positive numbers"):
        fx.animate(traj, tmp_path / "arm.gif", speed=0.0)
    with pytest.raises(ValueError, match=r"ends in \.html"):
        fx.animate(traj, tmp_path / "arm.txt")
    with pytest.raises(ValueError, match="a batch"):
        fx.animate(jax.tree.map(lambda x: x[None], traj))


def test_report_is_one_file_and_escapes(tmp_path):
    report = (
        Report("A <b>", "about").heading("H").text("1 < 2").verdict(False, "it holds").code("x & y")
    )
    report.table(["name", "value"], [["a", 1.23456], ["<i>", 2]])
    report.figure(fx.plot(sample_trajectory()), "joints").view(
        fx.animate(sample_trajectory()), "moving"
    )
    text = report.save(tmp_path / "report.html").read_text()
    assert outside(html.unescape(text)) == []
    assert (
        "1 &lt; 2" in text
        and "x &amp; y" in text
        and "&lt;i&gt;" in text
        and "1.235" in text
        and "NOT passed" in text
    )
    assert "<b>" not in text.split("<figure>")[0]
    assert text.count("data:image/png;base64,") == 1
