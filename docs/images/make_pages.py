"""Takes screenshots of the tour's 3D page and report: docs/images/page.png and report.png.

Chromium runs without a network. Requires `pip install 'flexjax[browser]'`
and `apt install chromium`.

make demo
python docs/images/make_pages.py [folder of the tour]
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
DEMO = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE.parent.parent / "out" / "demo"
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
SET = """([id, v]) => {
    const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event('input'));
}"""

if __name__ == "__main__":
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    messages = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for source, target, size in (
            ("arm.html", "page.png", (1100, 620)),
            ("report.html", "report.png", (1100, 1400)),
        ):
            page = browser.new_context(
                viewport=dict(zip(("width", "height"), size, strict=True)), offline=True
            ).new_page()
            page.on("console", lambda m: messages.append(m.text))
            page.on("pageerror", lambda e: messages.append(str(e)))
            page.goto((DEMO / source).as_uri())
            page.wait_for_timeout(1500)
            if source == "arm.html":
                page.evaluate(SET, ["time", "0.12"])
                page.evaluate(SET, ["scale", "60"])
                page.check("#ghost")
                page.wait_for_timeout(500)
            page.screenshot(path=HERE / target)
        browser.close()
    sys.exit(f"messages on the console: {messages}" if messages else 0)
