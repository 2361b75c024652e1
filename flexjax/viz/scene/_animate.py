"""``animate``: a self-contained 3D page or a film of a trajectory."""

import html
import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from flexjax._files import write_whole
from flexjax.drive import Drive
from flexjax.simulate.trajectory import Trajectory
from flexjax.viz.figures._plot import as_runs
from flexjax.viz.scene._film import write_film
from flexjax.viz.scene._pages import embedded_json, viewer_page
from flexjax.viz.scene._scene import scene

PAGES = (".html", ".htm")
FILMS = (".gif", ".mp4")


class Animation:
    """A 3D view of trajectories, which notebooks display.

    ``save`` writes an HTML page or a film; ``html`` is the text of the page.
    """

    def __init__(self, runs: dict[str, Trajectory], drives: dict[str, Drive] | None = None):
        self.runs = runs
        self.scene = scene(runs, drives=drives)

    @property
    def html(self) -> str:
        return viewer_page(f"{self.scene['robot']} - flexjax", embedded_json(self.scene))

    def save(
        self, path: str | os.PathLike[str], *, fps: int = 25, speed: float | None = None
    ) -> Path:
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
        if suffix in PAGES:
            return write_whole(path, lambda part: part.write_text(self.html, encoding="utf-8"))
        if suffix in FILMS:
            return write_whole(path, lambda part: write_film(self.runs, part, fps, speed))
        raise ValueError(f"path: {str(path)!r}; expected a name that ends in .html, .gif or .mp4.")

    def frame(self, height: int = 620) -> str:
        """The page as an HTML frame, for another page."""
        page = html.escape(self.html, quote=True)
        look = f"width:100%;height:{height}px;border:1px solid #ccc"
        return f'<iframe srcdoc="{page}" style="{look}" title="3D view"></iframe>'

    def _repr_html_(self) -> str:
        return self.frame()

    def __repr__(self) -> str:
        return f"Animation({', '.join(self.runs)}; save('arm.html') writes the page)"


def animate(
    thing: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    drive: Drive | dict[str, Drive] | None = None,
    fps: int = 25,
    speed: float | None = None,
) -> Animation:
    """Show trajectories in an interactive 3D page, or write a film.

    The page shows joints, payloads, the moving base, the path of the tip and curves over time that
    are linked to its time slider. It has a scale of the deformation, a rigid ghost, strain colours,
    several trajectories side by side, and saves pictures and videos. It is one file below 2 MB and
    needs no network.

    Arguments:
        thing: a trajectory, a dict ``{name: trajectory}`` or a comparison.
        path: file to write as well: ``.html``, ``.gif`` or ``.mp4``.
        drive: the drive of the run, or a dict ``{name: drive}``; the page shows its loads as
            arrows, because a trajectory does not contain them.
        fps: frames per second of a film.
        speed: simulated seconds per second of film; by default 1, and less for trajectories
            shorter than two seconds.

    Returns:
        An :class:`Animation`, which notebooks display.

    Raises:
        ValueError: the argument is not a trajectory, or the path has another suffix.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, fx.Drive(), jnp.linspace(0.0, 0.1, 3), dt=0.05)
    >>> fx.animate(traj, "arm.html")
    Animation(RigidArm; save('arm.html') writes the page)
    """
    runs = as_runs(thing, "animate")
    animation = Animation(runs, _drives(drive, runs))
    if path is not None:
        animation.save(path, fps=fps, speed=speed)
    return animation


def _drives(
    drive: Drive | dict[str, Drive] | None, runs: dict[str, Trajectory]
) -> dict[str, Drive]:
    """The drive of each run, checked against its robot."""
    if drive is None:
        return {}
    named = drive if isinstance(drive, dict) else dict.fromkeys(runs, drive)
    for name, given in named.items():
        if name not in runs:
            raise ValueError(f"drive: {name!r}; expected names of {', '.join(runs)}.")
        if not isinstance(given, Drive):
            kind = type(given).__name__
            raise ValueError(f"drive: a {kind}; expected a Drive, or a dict of them by name.")
        given.check(runs[name].robot)
    return named


def show(
    thing: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    drive: Drive | dict[str, Drive] | None = None,
    open: bool = True,
) -> Animation:
    """Open trajectories as a 3D page: in the notebook, elsewhere in the browser.

    Arguments:
        thing: a trajectory, a dict ``{name: trajectory}`` or a comparison.
        path: where to keep the page (``.html``); by default a temporary file.
        drive: the drive of the run, or a dict ``{name: drive}``, for arrows at its loads.
        open: False writes the page only.

    Returns:
        An :class:`Animation`; as the last value of a cell, a notebook shows the page.

    Raises:
        ValueError: the argument is not a trajectory, or the path does not end in .html.

    >>> import flexjax as fx, jax.numpy as jnp
    >>> model = fx.RigidArm().bind(fx.load_robot("rigid-3r"))
    >>> traj = fx.simulate(model, fx.Drive(), jnp.linspace(0.0, 0.1, 3), dt=0.05)
    >>> fx.show(traj, "arm.html", open=False)
    Animation(RigidArm; save('arm.html') writes the page)
    """
    if path is not None and Path(path).suffix.lower() not in PAGES:
        raise ValueError(
            f"path: {str(path)!r}; expected a name that ends in .html. fx.animate writes films."
        )
    animation = animate(thing, drive=drive)
    if in_notebook():
        if path is not None:
            animation.save(path)
        return animation
    if path is None:
        folder = Path(tempfile.mkdtemp(prefix="flexjax-"))
        path = folder / "arm.html"
    page = animation.save(path)
    if open and not webbrowser.open(page.resolve().as_uri()):
        print(f"no browser found; open {page.resolve()}", file=sys.stderr)  # noqa: T201
    return animation


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code, which displays the last value of a cell."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
