"""The page in a real browser: `make test-browser` (Chromium, playwright; not in `make test`)."""

import os
import shutil

import numpy as np
import pytest

import flexjax as fx
from flexjax.viz import Report
from tests._sample import sample_trajectory
from tests.test_docs import build_site

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    not os.environ.get("FLEXJAX_BROWSER"), reason="needs a browser: run `make test-browser`"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "no chromium: apt install chromium"
    with sync_playwright() as playwright:
        flags = [
            "--no-sandbox",
            "--use-gl=angle",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
        ]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open a file offline; the page must log nothing and request nothing else."""
    context = browser.new_context(viewport={"width": 1200, "height": 720}, offline=True)
    said, asked = [], []

    def go(path):
        page = context.new_page()
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: asked.append(r.url))
        page.goto(path.as_uri())
        page.wait_for_timeout(500)
        return page

    yield go
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
    context.close()


def set_slider(page, name, value):
    page.evaluate(
        """([id, v]) => {
            const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event('input'));
        }""",
        [name, value],
    )


def test_page_plays_and_the_slider_moves_the_arm(open_page, tmp_path):
    traj = sample_trajectory()
    fx.animate({"one": traj, "two": traj}, tmp_path / "arm.html")
    page = open_page(tmp_path / "arm.html")
    np.testing.assert_allclose(page.evaluate("flexjax.tip(0)"), traj.tip[0], atol=1e-6)
    set_slider(page, "time", float(traj.ts[-1]))
    np.testing.assert_allclose(page.evaluate("flexjax.tip(1)"), traj.tip[-1], atol=1e-6)
    set_slider(page, "scale", 0)  # a rigid arm is its own ghost
    np.testing.assert_allclose(page.evaluate("flexjax.tip(1)"), traj.tip[-1], atol=1e-5)
    before = page.screenshot()
    page.check("#ghost")
    page.check("#strain")
    page.uncheck("#beside")
    page.wait_for_timeout(200)
    assert page.screenshot() != before
    set_slider(page, "time", 0.0)
    page.evaluate("flexjax.view.speed = 0.01")
    page.click("#play")
    page.wait_for_timeout(400)
    assert page.evaluate("flexjax.view.time") > 0 and page.evaluate("flexjax.view.playing")


def test_report_opens_offline(open_page, tmp_path):
    report = (
        Report("Report")
        .figure(fx.plot(sample_trajectory()), "joints")
        .view(fx.animate(sample_trajectory()), "moving")
    )
    page = open_page(report.save(tmp_path / "report.html"))
    assert page.evaluate("document.images[0].naturalWidth") > 0
    frame = page.frames[1]
    assert frame.evaluate("flexjax.view.time") == 0


def test_documentation_reads_offline(open_page, tmp_path):
    """Every page opens from disk and shows every equation; KaTeX logs an error otherwise."""
    site = build_site(tmp_path)
    drawn = 0
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        page = open_page(path)
        equations, undrawn = page.evaluate(
            "['.arithmatex', '.arithmatex:not(:has(.katex))']"
            ".map(s => document.querySelectorAll(s).length)"
        )
        assert undrawn == 0, path.name
        drawn += equations
        page.close()
    assert drawn > 200
