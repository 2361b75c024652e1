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
from flexjax.viz._film import film_speed
from flexjax.viz._scene import decode, half_sizes
from tests._sample import sample_trajectory

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
    assert [link["payload"] for link in scene["links"]] == [False, True]


def test_a_name_cannot_break_the_page(page):
    assert "<b>two" not in page
    assert scene_of(page)["arms"][1]["name"] == "</script><b>two"


def test_long_runs_are_thinned_to_the_limit(record_number):
    traj = sample_trajectory()
    n = 5000

    def longer(x):
        return np.repeat(np.asarray(x), n // x.shape[0] + 1, axis=0)[:n]

    fields = ("frames", "deflection", "strain")
    wide = [np.repeat(longer(getattr(traj, k)), 7, axis=2) for k in fields]
    long = eqx.tree_at(
        lambda t: (t.ts, *(getattr(t, k) for k in fields), t.stations),
        traj,
        (np.linspace(0, 9, n), *wide, np.linspace(0, 1, 21)),
    )
    page = fx.animate({str(i): long for i in range(5)}).html
    record_number("size of the 3D page of five long runs [bytes]", len(page.encode()), LIMIT)
    arm = scene_of(page)["arms"][0]
    assert arm["times"][0] == 0 and arm["times"][-1] == 9


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
