"""Figures, 3D pages and reports."""

from flexjax.viz._animate import Animation as Animation, animate as animate, show as show
from flexjax.viz._gltf import save_gltf as save_gltf
from flexjax.viz._identify import identification_report as identification_report
from flexjax.viz._move import move_report as move_report
from flexjax.viz._plot import plot as plot
from flexjax.viz._report import Report as Report
from flexjax.viz._style import style as plot_style  # noqa: F401  (public by this name)
