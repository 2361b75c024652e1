"""Reports: headings, text, tables, figures and 3D views in one self-contained HTML file."""

import datetime
import os
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from flexjax import __version__
from flexjax._files import write_whole
from flexjax.viz.figures._style import png
from flexjax.viz.report._markdown import to_html
from flexjax.viz.scene._animate import Animation
from flexjax.viz.scene._pages import data_url, embedded_json, render, viewer_page

SCENE = "@scene@"  # where a view puts its scene; report.html names it too


class Report:
    """A report, to which methods add parts. All text is escaped.

    >>> from flexjax.viz import Report
    >>> report = Report("A simulation").heading("Result").text("The tip settles in 0.8 s.")
    >>> report.save("report.html").name
    'report.html'
    """

    def __init__(self, title: str, about: str = ""):
        self.title, self.about = title, about
        self.parts: list[dict[str, Any]] = []

    def _add(self, kind: str, **values: Any) -> "Report":
        self.parts.append({"kind": kind, **values})
        return self

    def heading(self, text: str) -> "Report":
        return self._add("heading", text=text)

    def text(self, text: str) -> "Report":
        return self._add("text", text=text)

    def verdict(self, good: bool, text: str) -> "Report":
        """Add a check and its result."""
        return self._add("verdict", good=bool(good), text=text)

    def code(self, text: str) -> "Report":
        return self._add("code", text=text)

    def folded(self, summary: str, text: str) -> "Report":
        """Add long output that opens on a click."""
        return self._add("folded", summary=summary, text=text)

    def markdown(self, text: str) -> "Report":
        """Add Markdown (headings, lists, tables, code); links keep only their text."""
        return self._add("markdown", html=to_html(text))

    def contents(self) -> "Report":
        """Add links to all headings of the report, including later ones."""
        return self._add("contents")

    def table(self, head: list[str], rows: list[list[Any]]) -> "Report":
        """Add a table; floats have four digits."""
        return self._add(
            "table",
            head=head,
            rows=[[f"{c:.4g}" if isinstance(c, float) else str(c) for c in row] for row in rows],
        )

    def figure(self, figure: Figure, caption: str) -> "Report":
        return self._add("figure", source=data_url(png(figure)), text=caption)

    def image(self, data: bytes, caption: str) -> "Report":
        """Add the bytes of a PNG file as a figure."""
        return self._add("figure", source=data_url(data), text=caption)

    def view(self, animation: Animation, caption: str) -> "Report":
        """Add an interactive 3D view."""
        return self._add("frame", scene=embedded_json(animation.scene), text=caption)

    @property
    def html(self) -> str:
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        return render(
            "report.html",
            title=self.title,
            about=self.about,
            parts=self.parts,
            viewer=self._viewer(),
            version=__version__,
            date=date,
        )

    def _viewer(self) -> str | None:
        """The 3D page without its scene, which all views share, as JSON."""
        if not any(part["kind"] == "frame" for part in self.parts):
            return None
        return embedded_json(viewer_page("flexjax", SCENE))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML file; return its path."""
        return write_whole(Path(path), lambda part: part.write_text(self.html, encoding="utf-8"))
