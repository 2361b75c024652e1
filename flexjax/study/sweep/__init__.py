"""Many runs of one robot: designs, chunks on all devices, a store that is never half."""

from flexjax.study.sweep._design import (
    Design as Design,
    grid as grid,
    latin_hypercube as latin_hypercube,
    saltelli as saltelli,
    sobol as sobol,
)
from flexjax.study.sweep._indices import sobol_indices as sobol_indices
from flexjax.study.sweep._result import Sweep as Sweep
from flexjax.study.sweep._sweep import sweep as sweep
