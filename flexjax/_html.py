"""What notebooks show of an object: its text, and small pictures as SVG. All text is escaped.

Pictures are written here and not by matplotlib, because a robot knows nothing of the layers that
draw figures, and a cell that ends with a robot must answer at once.
"""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 180, 58, 34, 10


def block(text: str, *pictures: str) -> str:
    """The HTML of an object: its text in fixed width, pictures below."""
    shown = f'<pre style="line-height:1.3">{escape(text)}</pre>'
    return shown + "".join(f'<div style="display:inline-block">{x}</div>' for x in pictures if x)


def curves(
    x: Sequence[float] | np.ndarray,
    ys: Mapping[str, np.ndarray],
    xlabel: str,
    ylabel: str,
    *,
    logarithmic: bool = False,
    equal: bool = False,
) -> str:
    """Curves over one axis as SVG; "" if nothing is finite. ``equal``: one scale on both axes.

    ``ys`` has one curve per label, or a pair (x, y) for a curve with its own x.
    """
    pairs = {k: _points(x, y, logarithmic) for k, y in ys.items()}
    pairs = {k: p for k, p in pairs.items() if len(p)}
    if not pairs:
        return ""
    every = np.concatenate(list(pairs.values()))
    low, high = _limits(every[:, 0]), _limits(every[:, 1])
    size = np.array([WIDTH - LEFT - 12, HEIGHT - BOTTOM - TOP])
    if equal:
        unit = max((low[1] - low[0]) / size[0], (high[1] - high[0]) / size[1])
        low, high = (
            (np.mean(r) - unit * n / 2, np.mean(r) + unit * n / 2)
            for r, n in zip((low, high), size, strict=True)
        )
    origin, scale = np.array([low[0], high[0]]), size / [low[1] - low[0], high[1] - high[0]]
    lines = [_frame(low, high, xlabel, ylabel, logarithmic)]
    for i, (label, points) in enumerate(pairs.items()):
        place = (points - origin) * scale
        path = " ".join(f"{LEFT + a:.1f},{HEIGHT - BOTTOM - b:.1f}" for a, b in place)
        colour = COLOURS[i % len(COLOURS)]
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6">'
            f"<title>{escape(label)}</title></polyline>"
        )
        if len(pairs) > 1 and i < len(COLOURS):
            row = f'x="{WIDTH - 6}" y="{TOP + 10 + 13 * i}" fill="{colour}"'
            lines.append(f'<text {row} font-size="10">{escape(label[:28])}</text>')
    # Names are on the right of the frame, where they hide no curve.
    wide = WIDTH + (6 * max(len(label[:28]) for label in pairs) if len(pairs) > 1 else 0)
    style = 'style="background:#fff;font-family:sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{HEIGHT}" {style}>'
    return head + "".join(lines) + "</svg>"


def _points(x: Sequence[float] | np.ndarray, y: np.ndarray, logarithmic: bool) -> np.ndarray:
    """At most 200 finite points of a curve."""
    y = np.asarray(y, float)
    points = y if y.ndim == 2 else np.stack([np.asarray(x, float), y], axis=1)
    if logarithmic:
        with np.errstate(divide="ignore", invalid="ignore"):
            points = np.log10(points)
    points = points[np.isfinite(points).all(axis=1)]
    return points[:: max(1, -(-len(points) // 200))]


def _limits(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    spread = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-12)
    return low - 0.05 * spread, high + 0.05 * spread


def _frame(
    low: tuple[float, float],
    high: tuple[float, float],
    xlabel: str,
    ylabel: str,
    logarithmic: bool,
) -> str:
    """Axes with the numbers at their ends, and their names."""
    right, floor = WIDTH - 12, HEIGHT - BOTTOM
    shown = (lambda v: f"{10**v:.3g}") if logarithmic else (lambda v: f"{v:.3g}")
    texts = [
        (LEFT, floor + 13, "start", shown(low[0])),
        (right, floor + 13, "end", shown(low[1])),
        ((LEFT + right) / 2, HEIGHT - 6, "middle", xlabel),
        (LEFT - 4, floor, "end", shown(high[0])),
        (LEFT - 4, TOP + 9, "end", shown(high[1])),
    ]
    words = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="10">{escape(text)}</text>'
        for x, y, anchor, text in texts
    )
    middle = (TOP + floor) / 2
    name = (
        f'<text transform="translate(12,{middle}) rotate(-90)" text-anchor="middle" '
        f'font-size="10">{escape(ylabel)}</text>'
    )
    box = f'x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{floor - TOP}"'
    return f'<rect {box} fill="none" stroke="#999"/>{words}{name}'


def bars(values: Mapping[str, float], label: str) -> str:
    """Horizontal bars as SVG, the first twelve finite ones; "" if there are none."""
    shown = {k: float(v) for k, v in values.items() if np.isfinite(v)}
    shown = dict(list(shown.items())[:12])
    if not shown:
        return ""
    low, high = min(0.0, *shown.values()), max(0.0, *shown.values())
    left, row, room = 130, 18, WIDTH - 130 - 60
    unit = room / ((high - low) or 1.0)
    lines = []
    for i, (name, value) in enumerate(shown.items()):
        y = TOP + row * i
        begin, width = left + (min(value, 0.0) - low) * unit, max(abs(value) * unit, 0.5)
        lines += [
            f'<text x="{left - 5}" y="{y + 12}" text-anchor="end" font-size="10">'
            f"{escape(name[-22:])}</text>",
            f'<rect x="{begin:.1f}" y="{y + 2}" width="{width:.1f}" height="{row - 5}" '
            f'fill="{COLOURS[0]}"/>',
            f'<text x="{begin + width + 4:.1f}" y="{y + 12}" font-size="10">{value:.3g}</text>',
        ]
    height = TOP + row * len(shown) + 22
    lines.append(
        f'<text x="{left + room / 2}" y="{height - 6}" text-anchor="middle" font-size="10">'
        f"{escape(label)}</text>"
    )
    style = 'style="background:#fff;font-family:sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" {style}>'
    return head + "".join(lines) + "</svg>"
