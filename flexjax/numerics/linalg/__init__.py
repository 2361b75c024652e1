"""Structured linear algebra: small matrices, blocks along a chain, Krylov iterations, batches."""

from flexjax.numerics.linalg._element_chain import (
    ElementChainFactors as ElementChainFactors,
    factor_elements as factor_elements,
    solve_elements as solve_elements,
)
from flexjax.numerics.linalg._small import (
    gauss_jordan as gauss_jordan,
    inverse2 as inverse2,
    inverse3 as inverse3,
    mm as mm,
    mtv as mtv,
    mv as mv,
    small_cholesky as small_cholesky,
    small_inverse as small_inverse,
    transpose as transpose,
)
