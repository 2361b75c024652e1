"""The derivative of a root, once for every implicit step.

Iterations are never differentiated. The derivative of the root follows from that of the residual,
in forward and reverse mode and to any order, at the cost of one linear solve with the exact
Jacobian. ``lax.custom_root`` is right in the first derivative only (see ``flexjax._rules``), and
it traces the linear solve even where nothing is differentiated: seconds of every first call.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from flexjax._rules import ruled


class AbstractJacobianSolve(eqx.Module):
    """Solves the linear system with the residual's Jacobian at the root. It is not differentiated.

    ``recompute``: reverse mode stores only the root and evaluates the residual once more, instead
    of storing intermediate values of every step. False where the whole step does so already.
    """

    recompute: ClassVar[bool]

    @abc.abstractmethod
    def __call__(
        self, root: Float[Array, " n"], jacobian: Callable[[Array], Array], b: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """x with ``jacobian(x) = b``, differentiable w.r.t. ``b`` and the closure of
        ``jacobian``."""


@ruled
def differentiable_root(
    residual: PyTree, solve: AbstractJacobianSolve, root: Float[Array, " n"]
) -> Float[Array, " n"]:
    """``root`` of ``residual``, a callable pytree, with derivatives w.r.t. the arrays in it."""
    return root


@functools.partial(differentiable_root.def_jvp, symbolic_zeros=True)
def _root_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    residual, solve, root = primals
    # Called again, so that a second derivative finds the root depending on the same parameters.
    root = differentiable_root(residual, solve, root)
    if not jtu.tree_leaves(tangents[0]):
        return root, None
    slope = eqx.filter_checkpoint(_slope, prevent_cse=False) if solve.recompute else _slope
    return root, slope(residual, solve, root, tangents[0])


def _slope(
    residual: PyTree, solve: AbstractJacobianSolve, root: Float[Array, " n"], tangent: PyTree
):
    """-J^-1 times the residual's own change."""
    _, change = eqx.filter_jvp(lambda f: f(root), (residual,), (tangent,))
    if change is None:  # what varies has no influence on the residual
        return jnp.zeros_like(root)
    _, jacobian = jax.linearize(residual, root)
    return solve(root, jacobian, -change)
