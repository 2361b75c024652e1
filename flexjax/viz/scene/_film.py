"""Writes trajectories as gif or mp4 films with matplotlib."""

from pathlib import Path

import numpy as np
from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from mpl_toolkits.mplot3d.art3d import Line3D

from flexjax.simulate.trajectory import Trajectory
from flexjax.viz.figures._style import Picture, curve_style, own_style

SPEEDS = (1.0, 0.5, 0.25, 0.1, 0.05)


def film_speed(duration: float) -> float:
    """The default speed of the 3D page: real time, slowed down to at least two seconds."""
    return next((s for s in SPEEDS if duration / s >= 2), SPEEDS[-1])


def write_film(
    runs: dict[str, Trajectory], path: Path, fps: int, speed: float | None = None
) -> None:
    """Write a film with ``fps`` frames and ``speed`` simulated seconds per second."""
    mp4 = path.suffix.lower() == ".mp4"
    if mp4 and not FFMpegWriter.isAvailable():
        raise ValueError(
            f"path: {str(path)!r}; expected ffmpeg, which writes .mp4, to be installed. "
            "Install ffmpeg, or choose .gif or .html."
        )
    points = {name: np.asarray(traj.frames)[..., :3] for name, traj in runs.items()}
    begin = min(float(traj.ts[0]) for traj in runs.values())
    end = max(float(traj.ts[-1]) for traj in runs.values())
    speed = film_speed(end - begin) if speed is None else speed
    times = np.linspace(begin, end, int(np.clip(round((end - begin) / speed * fps), 2, 600)))
    slowed = "" if speed == 1 else f" ({speed:g}x)"
    with own_style():
        figure, axis = _axes(np.concatenate([p.reshape(-1, 3) for p in points.values()]))
        flat = axis.name != "3d"
        curves = {
            (name, link): axis.plot(
                *([[]] * (2 if flat else 3)),
                label=name if link == 0 else None,
                **curve_style(i),
                linewidth=2.5,
            )[0]
            for i, name in enumerate(runs)
            for link in range(points[name].shape[1])
        }
        clock = axis.set_title("")
        if len(runs) > 1:
            axis.legend(loc="upper left")

        def draw(time: float):
            for (name, link), curve in curves.items():
                ts = np.asarray(runs[name].ts)
                k = min(int(np.searchsorted(ts, time, side="right")) - 1, len(ts) - 1)
                p = points[name][max(k, 0), link]
                curve.set_data(p[:, 0], p[:, 1])
                if isinstance(curve, Line3D):
                    curve.set_3d_properties(p[:, 2])
            clock.set_text(f"{time:.{2 if end - begin > 2 else 3}f} s{slowed}")
            return [*curves.values(), clock]

        film = FuncAnimation(figure, draw, frames=times, blit=False, cache_frame_data=False)
        film.save(
            str(path), writer=FFMpegWriter(fps=fps) if mp4 else PillowWriter(fps=fps), dpi=100
        )


def _axes(points: np.ndarray) -> tuple[Picture, Axes]:
    """A figure with axes around the points (n, 3), in the plane if they are."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    flat = high[2] - low[2] < 1e-9
    margin = 0.08 * max(float(np.max(high - low)), 1e-9)
    # A fixed layout: solving it for every frame takes most of the time.
    figure = Picture(figsize=(6.4, 4.8))
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot(projection=None if flat else "3d")
    axis.set(
        xlabel="x [m]",
        ylabel="y [m]",
        xlim=(low[0] - margin, high[0] + margin),
        ylim=(low[1] - margin, high[1] + margin),
    )
    if not flat:
        axis.set(zlabel="z [m]", zlim=(low[2] - margin, high[2] + margin))
    axis.set_aspect("equal")
    return figure, axis
