"""Copies KaTeX into docs/katex, so that the pages show equations without a network.

The fonts are embedded in the style sheet: a browser does not let a page that was opened from disk
read font files of other folders.

npm pack katex@0.19.1 && tar xzf katex-0.19.1.tgz
python docs/katex/make.py package
"""

import base64
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def inlined(style: Path) -> str:
    """The style sheet with its fonts embedded as woff2, which every current browser reads."""

    def data(match: re.Match) -> str:
        font = base64.b64encode((style.parent / match[1]).read_bytes()).decode()
        return f'src:url(data:font/woff2;base64,{font}) format("woff2")'

    return re.sub(
        r"src:url\(([^)]+\.woff2)\) format\(\"woff2\"\)[^}]*",
        data,
        style.read_text(encoding="utf-8"),
    )


if __name__ == "__main__":
    package = Path(sys.argv[1])
    shutil.copy(package / "dist" / "katex.min.js", HERE)
    shutil.copy(package / "LICENSE", HERE / "LICENSE.txt")
    (HERE / "katex.min.css").write_text(
        inlined(package / "dist" / "katex.min.css"), encoding="utf-8"
    )
