"""The page in a real browser: `make test-browser` (Chromium, playwright; not in `make test`)."""

import os
import re
import shutil

import numpy as np
import pytest
from PIL import Image

import flexjax as fx
from flexjax.viz import Report
from tests._sample import sample_model, sample_trajectory
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
    contexts, said, asked = [], [], []

    def go(path, **options):
        view = {"width": 1200, "height": 720}
        context = browser.new_context(**({"viewport": view, "offline": True} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: said.append(f"{path.name}: {m.text}"))
        page.on("pageerror", lambda e: said.append(f"{path.name}: {e}"))
        page.on("request", lambda r: asked.append(r.url))
        page.goto(path.as_uri())
        page.wait_for_timeout(500)
        return page

    yield go
    for context in contexts:
        context.close()
    # The browser's remark about the search field of the site's theme, which takes the focus itself.
    said = [text for text in said if "Autofocus processing was blocked" not in text]
    assert said == []
    allowed = ("file:", "data:", "about:", "blob:")
    assert [url for url in asked if not url.startswith(allowed)] == []


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
        .view(fx.animate({"one": sample_trajectory(), "two": sample_trajectory()}), "twice")
    )
    path = report.save(tmp_path / "report.html")
    assert path.stat().st_size < 1_000_000  # both views share one viewer
    page = open_page(path)
    assert page.evaluate("document.images[0].naturalWidth") > 0
    _, first, second = page.frames
    assert first.evaluate("[flexjax.view.time, flexjax.arms.length]") == [0, 1]
    assert second.evaluate("[flexjax.view.time, flexjax.arms.length]") == [0, 2]


def pressed(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(50)


def test_keyboard(open_page, tmp_path):
    traj = sample_trajectory()
    fx.animate({"one": traj, "two": traj}, tmp_path / "arm.html")
    page = open_page(tmp_path / "arm.html")
    state = lambda name: page.evaluate(f"flexjax.view.{name}")
    pressed(page, "End")
    np.testing.assert_allclose(page.evaluate("flexjax.tip(0)"), traj.tip[-1], atol=1e-6)
    pressed(page, "ArrowLeft", "Shift+ArrowLeft")
    assert state("time") == pytest.approx(0.1 * (1 - 0.11))
    pressed(page, "Home", "ArrowRight")
    assert state("time") == pytest.approx(0.001)
    for key, name in (("g", "ghost"), ("s", "strain"), ("t", "trace"), ("l", "loop")):
        before = state(name)
        pressed(page, key)
        assert state(name) is not before
    before = state("speed")
    pressed(page, "ArrowUp")
    assert state("speed") > before
    dark = page.evaluate("flexjax.theme.dark")
    pressed(page, "d")
    assert page.evaluate("flexjax.theme.dark") is not dark
    pressed(page, "?")
    assert page.locator("#help").is_visible()
    pressed(page, "Escape")
    assert not page.locator("#help").is_visible()
    pressed(page, "Space")
    assert state("playing")
    pressed(page, "Space")
    assert not state("playing")
    # Every control is reached by the tabulator, and a focused slider keeps its keys.
    page.focus("#picture")
    reached = []
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert {"play", "time", "speed", "scale", "ghost", "group", "theme"} <= set(reached)
    page.focus("#scale")
    pressed(page, "ArrowRight")
    assert state("scale") == pytest.approx(21 / 20, rel=0.06)


def test_curves_are_linked_to_the_time(open_page, tmp_path):
    traj = sample_trajectory()
    fx.animate(traj, tmp_path / "arm.html")
    page = open_page(tmp_path / "arm.html")
    box = page.locator("#plot").bounding_box()
    x = lambda share: box["x"] + 62 + share * (box["width"] - 62 - 24)
    page.mouse.click(x(0.6), box["y"] + 20)
    assert page.evaluate("flexjax.view.time") == pytest.approx(0.06, abs=2e-4)
    np.testing.assert_allclose(page.evaluate("flexjax.tip(0)"), traj.tip[3], atol=1e-3)
    for group in page.evaluate("flexjax.plot.groups"):
        page.select_option("#group", group)
        assert page.evaluate("flexjax.plot.chosen().length") > 0, group
    page.select_option("#group", "joints")
    page.click(".chip >> nth=0")
    assert page.evaluate("flexjax.plot.chosen().map(c => c.name)") == ["elbow"]
    page.select_option("#group", "")
    assert not page.locator("#plot").is_visible()


def loaded(tmp_path):
    """A page with loads and a base that moves."""
    zero = fx.constant(0.0)
    push = fx.stack([zero, fx.sine(2.0, 5.0), zero, zero, zero, fx.constant(0.1)])
    base = fx.Base(translation=fx.stack([fx.sine(0.3, 2.0), zero, zero]))
    drive = fx.Drive(loads=(fx.Load("fore", push),), base=base)
    traj = fx.simulate(sample_model(), drive, np.linspace(0.0, 0.2, 41), dt=5e-3, stations=3)
    fx.animate(traj, tmp_path / "arm.html", drive=drive)
    return traj


SIZES = {"wide": (1200, 720), "narrow": (390, 780), "low": (700, 400)}


@pytest.mark.parametrize("size", SIZES)
def test_the_camera_shows_the_whole_motion(size, open_page, tmp_path):
    traj = loaded(tmp_path)
    width, height = SIZES[size]
    page = open_page(tmp_path / "arm.html", viewport={"width": width, "height": height})
    points = np.asarray(traj.frames)[:, :, :, :3].reshape(-1, 3).tolist()
    seen = np.array(page.evaluate("ps => ps.map(p => flexjax.seen(0, p))", points))
    assert np.abs(seen[:, :2]).max() < 1
    assert np.ptp(seen[:, 0]) > 0.7 or np.ptp(seen[:, 1]) > 0.7  # and not from afar
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("play", "time", "group", "picture"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, name


def test_loads_and_the_moving_base(open_page, tmp_path):
    loaded(tmp_path)
    page = open_page(tmp_path / "arm.html")
    page.evaluate("flexjax.seek(0.05)")
    base = "flexjax.arms[0].joints[0].base.position.toArray()"
    forces = "flexjax.arms[0].loads.map(l => [l.force.visible, l.moment.visible])"
    first = page.evaluate(base)
    assert page.evaluate(forces) == [[True, True]]
    page.evaluate("flexjax.seek(0.1)")
    second = page.evaluate(base)
    moved = 0.3 * (np.sin(2 * np.pi * 2 * 0.1) - np.sin(2 * np.pi * 2 * 0.05))
    np.testing.assert_allclose(second[0] - first[0], moved, atol=1e-3)
    page.uncheck("#loads")
    assert page.evaluate(forces) == [[False, False]]


def test_picture_and_video(open_page, tmp_path):
    fx.animate(sample_trajectory(), tmp_path / "arm.html")
    page = open_page(tmp_path / "arm.html")
    with page.expect_download() as picture:
        page.click("#picture")
    picture.value.save_as(tmp_path / "arm.png")
    with Image.open(tmp_path / "arm.png") as image:
        colours = image.convert("RGB").getcolors(1 << 22)
        assert image.width >= 1200 and image.height > 500 and len(colours) > 50
    with page.expect_download(timeout=20000) as video:
        page.click("#video")
    assert video.value.suggested_filename in ("two-link.webm", "two-link.mp4")
    video.value.save_as(tmp_path / "arm.film")
    assert (tmp_path / "arm.film").stat().st_size > 5000
    assert page.inner_text("#video") == "Video" and not page.evaluate("flexjax.view.playing")


def test_touch(browser, open_page, tmp_path):
    """One finger rotates the view, a tap on the curves moves in time, buttons are large enough."""
    fx.animate(sample_trajectory(), tmp_path / "arm.html")
    page = open_page(
        tmp_path / "arm.html",
        viewport={"width": 390, "height": 780},
        has_touch=True,
        is_mobile=True,
    )
    before = page.evaluate("flexjax.camera.position.toArray()")
    box = page.locator("#canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for kind, dx in (("touchStart", 0), ("touchMove", 40), ("touchMove", 80), ("touchEnd", None)):
        points = [] if dx is None else [{"x": x + dx, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    after = page.evaluate("flexjax.camera.position.toArray()")
    assert np.linalg.norm(np.subtract(after, before)) > 0.05
    plot = page.locator("#plot").bounding_box()
    page.touchscreen.tap(plot["x"] + plot["width"] - 26, plot["y"] + 20)
    assert page.evaluate("flexjax.view.time") > 0.09
    page.tap("#play")
    assert page.evaluate("flexjax.view.playing")
    page.tap("#theme")
    assert page.locator("#play").bounding_box()["height"] >= 34


def test_the_theme_is_that_of_the_system(open_page, tmp_path):
    fx.animate(sample_trajectory(), tmp_path / "arm.html")
    for scheme in ("light", "dark"):
        page = open_page(tmp_path / "arm.html", color_scheme=scheme)
        assert page.evaluate("flexjax.theme.dark") is (scheme == "dark")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        bright = np.mean([int(x) for x in re.findall(r"\d+", colour)[:3]])
        assert bool(bright > 200) is (scheme == "light")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"))


def test_documentation_reads_offline(open_page, site):
    """Every page opens from disk and shows every equation; KaTeX logs an error otherwise."""
    drawn = 0
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        assert path.stat().st_size < 2_000_000, path.name
        page = open_page(path)
        equations, undrawn = page.evaluate(
            "['.arithmatex', '.arithmatex:not(:has(.katex))']"
            ".map(s => document.querySelectorAll(s).length)"
        )
        assert undrawn == 0, path.name
        drawn += equations
        page.context.close()
    assert drawn > 200


def test_documentation_by_keyboard_and_touch(open_page, site):
    """The search finds an option, by keys alone; on a phone the menu opens and leads on."""
    page = open_page(site / "quickstart.html")
    pressed(page, "Control+k")
    page.keyboard.type("stepper")
    found = page.locator("a:has(mark)").first
    found.wait_for(timeout=30000)
    page.wait_for_timeout(500)  # results are listed while the word is typed
    pressed(page, "Enter")
    page.wait_for_url(lambda url: "quickstart" not in url, timeout=30000, wait_until="commit")
    page.wait_for_load_state("domcontentloaded")
    assert "stepper" in page.inner_text("body")
    pressed(page, "Tab")
    assert page.evaluate("document.activeElement.tagName") in ("A", "BUTTON", "INPUT", "LABEL")

    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    page = open_page(site / "quickstart.html", **phone)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.tap("label.md-header__button[for=__drawer]")
    page.wait_for_timeout(500)
    page.locator(".md-nav--primary label:has-text('Explanation')").first.tap()
    page.locator("nav a:visible:has-text('Concepts')").first.tap()
    page.wait_for_url(re.compile("concepts"), timeout=10000)


def test_report_is_readable_in_every_theme(open_page, tmp_path):
    report = Report("Report").text("text").table(["name", "value"], [["a", 1.0]])
    path = report.figure(fx.plot(sample_trajectory()), "joints").save(tmp_path / "report.html")
    for scheme, width in (("light", 1200), ("dark", 390)):
        page = open_page(path, color_scheme=scheme, viewport={"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        colours = page.evaluate(
            "['color', 'backgroundColor'].map(k => getComputedStyle(document.body)[k])"
        )
        text, back = (np.mean([int(x) for x in re.findall(r"\d+", c)[:3]]) for c in colours)
        assert abs(text - back) > 150 and bool(back > text) is (scheme == "light")
