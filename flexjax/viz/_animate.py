"""``animate``: a self-contained 3D page or a film of a trajectory."""

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
    """A 3D view of trajectories, which notebooks display.

    ``save`` writes an HTML page or a film; ``html`` is the text of the page.
    """

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
        """Write a page (``.html``) or a film (``.gif``, or ``.mp4``, which needs ffmpeg).

        Arguments:
            path: path of the file; the suffix selects the format.
            fps: frames per second of a film.
            speed: simulated seconds per second of film.

        Returns:
            The path.
        """
        if not fps > 0 or (speed is not None and not speed > 0):
            raise ValueError(
                f"fps, speed: {fps}, {speed}; expected positive numbers, e.g. fps=25, speed=0.25 "
                "for a film four times slower than the motion."
            )
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix in (".html", ".htm"):
            return write_whole(path, lambda part: part.write_text(self.html, encoding="utf-8"))
        if suffix in FILMS:
            return write_whole(path, lambda part: write_film(self.runs, part, fps, speed))
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .html, .gif or .mp4.")

    def frame(self, height: int = 520) -> str:
        """The page as an HTML frame, for another page."""
        page = html.escape(self.html, quote=True)
        look = f"width:100%;height:{height}px;border:1px solid #ccc"
        return f'<iframe srcdoc="{page}" style="{look}" title="3D view"></iframe>'

    def _repr_html_(self) -> str:
        return self.frame()

    def __repr__(self) -> str:
        return f"Animation({', '.join(self.runs)}; save('arm.html') writes the page)"


def animate(
    thing: Any, path: str | os.PathLike | None = None, *, fps: int = 25, speed: float | None = None
) -> Animation:
    """Show trajectories in an interactive 3D page, or write a film.

    The page has a time slider, a scale of the deformation, a rigid ghost, strain colours, and
    several trajectories side by side. It is one file below 2 MB and needs no network.

    Arguments:
        thing: a trajectory, a dict ``{name: trajectory}`` or a comparison.
        path: file to write as well: ``.html``, ``.gif`` or ``.mp4``.
        fps: frames per second of a film.
        speed: simulated seconds per second of film; by default 1, and less for trajectories
            shorter than two seconds.

    Returns:
        An :class:`Animation`, which notebooks display.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, fx.Drive(), jnp.linspace(0.0, 0.1, 3), dt=0.05)
    >>> fx.animate(traj, "arm.html")
    Animation(RigidArm; save('arm.html') writes the page)
    """
    animation = Animation(as_runs(thing, "animate"))
    if path is not None:
        animation.save(path, fps=fps, speed=speed)
    return animation
