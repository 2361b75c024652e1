"""Solutions of a planar chain of elements for its accelerations, one method per file."""

from flexjax.formulation.transfer_matrix.sweep._parallel import parallel as parallel
from flexjax.formulation.transfer_matrix.sweep._product import product as product
from flexjax.formulation.transfer_matrix.sweep._riccati import (
    KEPT as KEPT,
    Elements as Elements,
    Solution as Solution,
    riccati as riccati,
)
from flexjax.formulation.transfer_matrix.sweep._segments import (
    Segments as Segments,
    cos_sin as cos_sin,
    riccati_segments as riccati_segments,
)

SWEEPS = {"riccati": riccati, "parallel": parallel, "product": product}
