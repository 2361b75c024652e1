"""Labels of logarithmic axes are readable although flexjax's figures parse no mathtext."""

import pytest

from flexjax.viz.figures._style import new_figure, own_style


@pytest.mark.parametrize(("values", "expected"), [((1e-6, 1e2), "10⁻²"), ((11.0, 88.0), "2×10¹")])
def test_powers_are_text(values, expected):
    with own_style():
        figure, (axis,) = new_figure()
        axis.semilogy([0.0, 1.0], values, label="$a$ and $b$")
        figure.canvas.draw()
        texts = [label.get_text() for label in axis.get_yticklabels(which="both")]
    shown = [text for text in texts if text]
    assert expected in shown, shown
    assert not any("$" in text or "\\" in text for text in shown)
