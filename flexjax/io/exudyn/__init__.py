"""The same mechanism in Exudyn, an independent code, to compare results with."""

from flexjax.io.exudyn._export import (
    ExudynModel as ExudynModel,
    ExudynRun as ExudynRun,
    to_exudyn as to_exudyn,
)
