"""Takes screenshots of a 3D page and of the tour's report: docs/images/page.png and report.png.

Chromium runs without a network. Requires `pip install 'flexjax[browser]'`
and `apt install chromium`.

make demo
python docs/images/make_pages.py [folder of the tour]
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
DEMO = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE.parent.parent / "out" / "demo"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def make_page(path: Path) -> None:
    """A fast move of two flexible links beside the same move of rigid ones, on a moving base."""
    import jax
    import jax.numpy as jnp

    import flexjax as fx

    jax.config.update("jax_enable_x64", True)
    zero = fx.constant(0.0)
    push = fx.stack([zero, fx.sine(6.0, 2.0), zero, zero, zero, fx.sine(0.5, 1.0)])
    drive = fx.Drive(
        joints={
            "shoulder": fx.Motion(fx.quintic(0.0, 1.2, 0.6)),
            "elbow": fx.Motion(fx.quintic(-0.5, 0.6, 0.8)),
        },
        loads=(fx.Load("fore", push),),
        base=fx.Base(fx.stack([fx.sine(0.1, 1.0), zero, zero]), fx.sine(0.2, 0.5)),
    )
    robot, ts = fx.load_robot("two-link"), jnp.linspace(0.0, 1.0, 201)
    kinds = (fx.FiniteElement(elements=2), fx.RigidArm())
    runs = {
        type(kind).__name__: fx.simulate(kind.bind(robot), drive, ts, dt=2e-3) for kind in kinds
    }
    fx.animate(runs, path, drive=drive)


if __name__ == "__main__":
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    messages = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        with tempfile.TemporaryDirectory() as folder:
            make_page(Path(folder) / "arm.html")
            shots = (
                (Path(folder) / "arm.html", "page.png", (1100, 680)),
                (DEMO / "report.html", "report.png", (1100, 1400)),
            )
            for source, target, size in shots:
                page = browser.new_context(
                    viewport=dict(zip(("width", "height"), size, strict=True)), offline=True
                ).new_page()
                page.on("console", lambda m: messages.append(m.text))
                page.on("pageerror", lambda e: messages.append(str(e)))
                page.goto(source.as_uri())
                page.wait_for_timeout(1500)
                if target == "page.png":
                    page.evaluate("flexjax.seek(0.5)")
                    page.check("#ghost")
                    page.select_option("#group", "deflections")
                    page.wait_for_timeout(500)
                page.screenshot(path=HERE / target)
        browser.close()
    sys.exit(f"messages on the console: {messages}" if messages else 0)
