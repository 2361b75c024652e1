"""The style of all figures: safe for colour-blind readers and for print, units on every axis.

Global settings of matplotlib stay unchanged.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import LogFormatterSciNotation
from PIL import Image

from flexjax._files import write_whole

# Okabe and Ito's colours without yellow, which is invisible on paper, and a line style for each.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (9, 2)))
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.5,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "axes.prop_cycle": cycler(color=COLOURS),
    "figure.dpi": 110.0,
    "savefig.dpi": 150.0,
    "figure.constrained_layout.use": True,
}
# Of flexjax's own figures: the name of a robot or sensor may contain dollars.
OWN_STYLE: dict[Any, Any] = {**STYLE, "text.parse_math": False}

RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


class Powers(LogFormatterSciNotation):
    """Labels of logarithmic axes without mathtext: 10\u207b\u00b2."""

    def __call__(self, x: float, pos: Any = None) -> str:
        text = super().__call__(x, pos)
        found = re.fullmatch(r"\$\\mathdefault\{(.*)\}\$", text)
        if found is None:
            return text
        inner = found[1].replace(r"\times", "\u00d7")
        return re.sub(r"\^\{(-?\d+)\}", lambda m: m[1].translate(RAISED), inner)


class Picture(Figure):
    """A matplotlib figure without pyplot: it needs no display, and notebooks show it."""

    def _repr_png_(self) -> bytes:
        return png(self)

    def draw(self, renderer: Any) -> None:
        for axis in (axis for axes in self.axes for axis in (axes.xaxis, axes.yaxis)):
            for get, put in (
                (axis.get_major_formatter, axis.set_major_formatter),
                (axis.get_minor_formatter, axis.set_minor_formatter),
            ):
                now = get()
                if type(now) is LogFormatterSciNotation:
                    put(Powers(labelOnlyBase=now.labelOnlyBase))
        super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """As in matplotlib, but the write is atomic."""
        if not isinstance(fname, str | os.PathLike):
            super().savefig(fname, **options)
            return
        path = Path(fname)
        if not path.suffix:  # matplotlib appends the format to a bare name
            form = options.get("format") or matplotlib.rcParams["savefig.format"]
            path = path.with_name(f"{path.name}.{form}")
        save = super().savefig
        write_whole(path, lambda part: save(part, **options))


@contextmanager
def style() -> Iterator[None]:
    """Use the style of :func:`flexjax.plot` for your own figures, inside a ``with`` block.

    Returns:
        A context manager; matplotlib's settings are restored at its end.

    >>> import flexjax as fx
    >>> import matplotlib.pyplot as plt
    >>> with fx.plot_style():
    ...     figure, axis = plt.subplots()
    """
    with matplotlib.rc_context(STYLE):
        yield


@contextmanager
def own_style() -> Iterator[None]:
    """The style of flexjax's own figures, which contain names as they are."""
    with matplotlib.rc_context(OWN_STYLE):
        yield


def new_figure(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float] | None = None, **options: Any
) -> tuple[Picture, list[Axes]]:
    """A figure and the list of its axes, row by row. Call it inside :func:`own_style`."""
    figure = Picture(
        figsize=size or (6.4 * columns if columns == 1 else 4.6 * columns, 1.2 + 2.2 * rows)
    )
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def legend_above(figure: Figure, axis: Axes) -> None:
    """Put the legend of an axis above all axes of the figure, in rows of equal length."""
    handles, names = axis.get_legend_handles_labels()
    wide = 0.7 + 0.075 * max(map(len, names), default=0)  # inches: a line and the longest name
    most = max(1, min(len(names), int(figure.get_figwidth() / wide)))
    rows = -(-len(names) // most)
    figure.legend(handles, names, loc="outside upper center", ncols=-(-len(names) // rows))


def curve_style(i: int) -> dict:
    """Colour and line style of curve ``i``; after seven curves a colour has another line style."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": LINES[(i + i // len(COLOURS)) % len(LINES)],
    }


def png(figure: Figure, dpi: int = 130) -> bytes:
    """A PNG with a palette of 256 colours, which is a third as large as one without."""
    drawn, small = io.BytesIO(), io.BytesIO()
    with own_style():
        figure.savefig(drawn, format="png", dpi=dpi, transparent=False)
    with Image.open(drawn) as picture:
        flat = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    flat.save(small, format="PNG", optimize=True)
    return small.getvalue()
