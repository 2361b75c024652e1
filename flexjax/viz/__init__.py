"""Figures, 3D pages and reports."""

from flexjax.viz.figures._plot import plot as plot
from flexjax.viz.figures._style import style as plot_style  # noqa: F401  (public by this name)
from flexjax.viz.report._compare_models import comparison_report as comparison_report
from flexjax.viz.report._identify import identification_report as identification_report
from flexjax.viz.report._move import move_report as move_report
from flexjax.viz.report._report import Report as Report
from flexjax.viz.scene._animate import Animation as Animation, animate as animate, show as show
from flexjax.viz.scene._gltf import save_gltf as save_gltf
