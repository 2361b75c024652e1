"""animate: the moving arm as one self-contained 3D page, or as a film."""

import html
import os
from pathlib import Path
from typing import Any

from flexjax._files import write_whole
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz._film import write_film
from flexjax.viz._pages import asset, embedded_json, render
from flexjax.viz._plot import as_runs
from flexjax.viz._scene import scene

FILMS = (".gif", ".mp4")


class Animation:
    """A 3D view: ``save`` writes an HTML page (or a gif or mp4 film), ``html`` is the page; shows itself in notebooks."""

    def __init__(self, runs: dict[str, Trajectory]):
        self.runs = runs
        self.scene = scene(runs)

    @property
    def html(self) -> str:
        return render(
            "viewer.html",
            title=f"{self.scene['robot']} - flexjax",
            scene=embedded_json(self.scene),
            script=asset("viewer.min.js"),
        )

    def save(self, path: str | os.PathLike, *, fps: int = 25, speed: float | None = None) -> Path:
        """Write ``.html``, ``.gif`` or ``.mp4`` (mp4 needs ffmpeg). ``fps`` and ``speed`` are those of a film."""
        if not fps > 0 or (speed is not None and not speed > 0):
            raise ValueError(
                f"fps, speed: {fps}, {speed}; expected positive numbers, e.g. fps=25, speed=0.25 for a film four times slower than the run."
            )
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix in (".html", ".htm"):
            return write_whole(path, lambda part: part.write_text(self.html, encoding="utf-8"))
        if suffix in FILMS:
            return write_whole(path, lambda part: write_film(self.runs, part, fps, speed))
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .html, .gif or .mp4.")

    def frame(self, height: int = 520) -> str:
        """The page inside another page."""
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:{height}px;border:1px solid #ccc" title="3D view"></iframe>'

    def _repr_html_(self) -> str:
        return self.frame()

    def __repr__(self) -> str:
        return f"Animation({', '.join(self.runs)}; save('arm.html') writes the page)"


def animate(
    thing: Any, path: str | os.PathLike | None = None, *, fps: int = 25, speed: float | None = None
) -> Animation:
    """An interactive 3D view of a trajectory, of ``{name: trajectory}`` or of a comparison: time slider, deformation scale, rigid ghost, strain
    colours, several runs side by side. The page is one file below 2 MB that needs no network.

    ``path`` (``.html``, ``.gif`` or ``.mp4``) also writes it; ``fps`` is the rate of a film and ``speed`` its seconds of the run per second
    (by default 1, less for runs of less than two seconds).

    >>> fx.animate(traj, "arm.html")  # doctest: +SKIP
    """
    animation = Animation(as_runs(thing, "animate"))
    if path is not None:
        animation.save(path, fps=fps, speed=speed)
    return animation
