"""Draws docs/images/moves.gif: one arm, two moves of the same duration, the rigid arm in grey.

Left the usual quintic, right the move that `fx.optimise` finds. Takes two minutes:

python docs/images/make_moves.py
"""

import io
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import flexjax as fx

jax.config.update("jax_enable_x64", True)
GOAL = {"shoulder": 1.0, "elbow": 0.6}
FRAMES, SLOWER = 25, 2  # per second of film; the motion is shown at half speed


def runs():
    """Both moves, flexible and rigid, and the duration of the moves."""
    model = fx.TransferMatrix(segments=4).bind(fx.load_robot("two-link"))
    period = 1 / float(fx.modes(model, at=GOAL, n=1).frequencies[0])
    found = fx.optimise(model, goal=GOAL, duration=1.5 * period, steps=80, knots=6)
    after = 2.2 - found.duration
    table = {}
    for title, move in (("quintic polynomial", "quintic"), ("fx.optimise", "optimised")):
        flexible = found.replay(move=move, after=after)
        rigid = found.replay(fx.RigidArm(), move=move, after=after)
        table[title] = flexible, rigid
    return table, found.duration


def at(traj, time):
    """Points of all links at a time, one behind the other."""
    frames = np.asarray(traj.frames)[..., :2]
    k = int(np.argmin(np.abs(np.asarray(traj.ts) - time)))
    return frames[k].reshape(-1, 2)


def draw(table, duration, time):
    figure = plt.figure(figsize=(8.0, 4.6), dpi=100)
    grid = figure.add_gridspec(2, 2, height_ratios=(3.2, 1), left=0.09, right=0.98, bottom=0.13)
    for n, (title, (flexible, rigid)) in enumerate(table.items()):
        ts, colour = np.asarray(flexible.ts), f"C{1 - n}"
        gap = 1e3 * np.linalg.norm(np.asarray(flexible.tip) - np.asarray(rigid.tip), axis=1)
        shown = ts <= time
        top = figure.add_subplot(grid[0, n])
        top.plot(*at(rigid, time).T, color="#aaaaaa", linewidth=5, solid_capstyle="round")
        top.plot(*at(flexible, time).T, color=colour, linewidth=3, solid_capstyle="round")
        tip = np.asarray(flexible.tip)[shown, :2]
        top.plot(*tip.T, color=colour, linewidth=0.8, alpha=0.7)
        top.plot(0, 0, "o", color="#333333", markersize=9)
        top.set(xlim=(-0.3, 1.05), ylim=(-0.36, 0.95), aspect="equal", xticks=[], yticks=[])
        top.set_title(f"{title}, {duration:.2f} s", fontsize=11)
        below = figure.add_subplot(grid[1, n])
        below.axvspan(0, duration, color="#eeeeee")
        below.plot(ts[shown], gap[shown], color=colour, linewidth=1.4)
        below.set(xlim=(0, ts[-1]), ylim=(0, 280), yticks=[0, 100, 200])
        below.set_xlabel("time [s]; grey: the move", fontsize=9)
        if n == 0:
            below.set_ylabel("tip, from the\nrigid arm [mm]", fontsize=9)
        below.tick_params(labelsize=8)
        for axis in (top, below):
            axis.spines[["top", "right"]].set_visible(axis is not below)
    data = io.BytesIO()
    figure.savefig(data, format="png")
    plt.close(figure)
    return Image.open(data).convert("RGB")


if __name__ == "__main__":
    table, duration = runs()
    end = float(next(iter(table.values()))[0].ts[-1])
    with fx.plot_style():
        pictures = [
            draw(table, duration, time)
            for time in np.linspace(0.0, end, int(end * SLOWER * FRAMES))
        ]
    palette = pictures[-1].quantize(48, method=Image.Quantize.MEDIANCUT)
    frames = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    times = [1000 // FRAMES] * (len(frames) - 1) + [1200]
    target = Path(__file__).with_name("moves.gif")
    frames[0].save(
        target, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True
    )
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {len(frames)} frames")
