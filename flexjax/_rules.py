"""Functions with rules of their own for derivatives and batches.

``jax.custom_jvp`` serves first derivatives only. Where a scan is differentiated in reverse mode and
then once more, jax 0.10 evaluates its body as if it were linear and drops the rule: the Hessian of
a function that contains an iteration is then wrong, without a message. The derivative of a
``jax.custom_batching.custom_vmap`` cannot be batched. A primitive keeps both rules to any order.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.core import Tracer
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree


class ruled:
    """A pure function of pytrees whose derivative and batching rules survive every transformation.

    It must not close over traced values. Arguments that are neither arrays nor floats are static.
    Without rules jax derives those of the function's body.
    """

    def __init__(self, fn: Callable[..., Any]):
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.vmap: Callable[..., Any] | None = None

    def def_jvp(self, rule: Callable[..., Any], *, symbolic_zeros: bool = False):
        """``rule(primals, tangents) -> (out, tangent_out)``. With ``symbolic_zeros`` a tangent that
        is zero is None. For a second derivative, the rule calls the function itself for ``out``."""
        self.jvp, self.symbolic_zeros = rule, symbolic_zeros
        return rule

    def def_vmap(self, rule: Callable[..., Any]):
        """``rule(size, batched, *args) -> out``: ``batched`` has a flag for every leaf of ``args``;
        every leaf of ``out`` has the batch in front."""
        self.vmap = rule
        return rule

    def __call__(self, *args: Any):
        arrays, static = eqx.partition(args, _is_dynamic)
        leaves, tree = jtu.tree_flatten(arrays)
        leaves = [jnp.asarray(x) for x in leaves]
        options, form = jtu.tree_flatten(static)
        plain = all(isinstance(x, int | str) for x in options)
        kept = _Static(form, tuple(options)) if plain else _AnyStatic(form, tuple(options))
        # What is traced for the same structure and shapes is traced once.
        flat = (_traceable_once if plain else _traceable)(self, tree, kept)
        traced = flat.trace(*leaves)
        outs = _call_p.bind(
            *leaves, rules=self, flat=flat, jaxpr=traced.jaxpr, tree=tree, static=kept
        )
        return jtu.tree_unflatten(jtu.tree_structure(traced.out_info), outs)


@dataclasses.dataclass(frozen=True)
class _Static:
    """Static arguments of a call."""

    form: Any
    options: tuple[Any, ...]

    @property
    def tree(self) -> Any:
        return jtu.tree_unflatten(self.form, self.options)


@dataclasses.dataclass(frozen=True, eq=False)
class _AnyStatic(_Static):
    """Compared by identity: some have no hash."""


def _is_dynamic(x) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic | float)


def _traceable(rules: ruled, tree: Any, static: _Static) -> Any:
    def flat(*leaves):
        return rules.fn(*eqx.combine(jtu.tree_unflatten(tree, leaves), static.tree))

    return jax.jit(flat)


_traceable_once = functools.lru_cache(1024)(_traceable)

_call_p = Primitive("ruled")
_call_p.multiple_results = True


@_call_p.def_impl
def _impl(*leaves, flat, jaxpr, **_):
    # Lowered once as a function, and called; what computes nothing is not worth a call.
    return jtu.tree_leaves(flat(*leaves)) if jaxpr.eqns else jaxpr_as_fun(jaxpr)(*leaves)


@_call_p.def_abstract_eval
def _abstract(*_, jaxpr, **__):
    return jaxpr.out_avals


mlir.register_lowering(_call_p, mlir.lower_fun(_impl, multiple_results=True))


def _is_zero(tangent) -> bool:
    return isinstance(tangent, ad.Zero) or tangent.dtype == jax.dtypes.float0


def _jvp(primals, tangents, *, rules, flat, jaxpr, tree, static):
    zero = [_is_zero(t) for t in tangents]
    if rules.jvp is None:
        outs, changes = _body_jvp(flat, primals, tangents, zero)
        return outs, [_tangent(x, dx) for x, dx in zip(outs, changes, strict=True)]

    def given(x, t, is_zero):
        if not is_zero:
            return t
        missing = rules.symbolic_zeros or not jnp.issubdtype(x.dtype, jnp.inexact)
        return None if missing else jnp.zeros_like(x)

    args = eqx.combine(jtu.tree_unflatten(tree, primals), static.tree)
    changes = [given(*x) for x in zip(primals, tangents, zero, strict=True)]
    out, changes = rules.jvp(args, jtu.tree_unflatten(tree, changes))
    outs, form = jtu.tree_flatten(out)
    changes = form.flatten_up_to(changes)
    return outs, [_tangent(x, dx) for x, dx in zip(outs, changes, strict=True)]


def _body_jvp(flat, primals, tangents, zero):
    """The derivative of the function as it is written."""

    def body(*moving):
        rest = iter(moving)
        given = (p if z else next(rest) for p, z in zip(primals, zero, strict=True))
        return jtu.tree_leaves(flat(*given))

    moving = [p for p, z in zip(primals, zero, strict=True) if not z]
    changes = [t for t, z in zip(tangents, zero, strict=True) if not z]
    return jax.jvp(body, moving, changes)


def _tangent(x, change):
    zero = change is None or change.dtype == jax.dtypes.float0
    return ad.Zero(jax.typeof(x).to_tangent_aval()) if zero else change


ad.primitive_jvps[_call_p] = _jvp


def _batch(leaves, dims, *, rules, tree, static, **_):
    batched = tuple(d is not batching.not_mapped for d in dims)
    size = next(x.shape[d] for x, d, here in zip(leaves, dims, batched, strict=True) if here)
    leaves = [
        jnp.moveaxis(x, d, 0) if here else x
        for x, d, here in zip(leaves, dims, batched, strict=True)
    ]
    make = _batched if isinstance(static, _AnyStatic) else _batched_once
    outs = jtu.tree_leaves(make(rules, size, batched, tree, static)(*leaves))
    return outs, [0] * len(outs)


def _batched(
    rules: ruled, size: int, batched: tuple[bool, ...], tree: Any, static: _Static
) -> ruled:
    """``rules`` as a function of its leaves, of which those marked have a batch in front."""
    axes = [0 if here else None for here in batched]

    def args(leaves):
        return eqx.combine(jtu.tree_unflatten(tree, leaves), static.tree)

    def fn(*leaves):
        if rules.vmap is not None:
            return rules.vmap(size, jtu.tree_unflatten(tree, batched), *args(leaves))
        return jax.vmap(lambda leaves: rules.fn(*args(leaves)), (axes,), axis_size=size)(
            list(leaves)
        )

    def jvp(leaves, changes):
        def one(leaves, changes):
            assert rules.jvp is not None  # set below only then
            return rules.jvp(args(leaves), jtu.tree_unflatten(tree, changes))

        moved = [None if dx is None else a for dx, a in zip(changes, axes, strict=True)]
        return jax.vmap(one, (axes, moved), axis_size=size)(list(leaves), list(changes))

    call = ruled(fn)
    if rules.jvp is not None:
        call.def_jvp(jvp, symbolic_zeros=rules.symbolic_zeros)
    return call


_batched_once = functools.lru_cache(1024)(_batched)
batching.primitive_batchers[_call_p] = _batch


_batch_size_p = Primitive("batch_size")
_batch_size_p.multiple_results = True
_batch_size_p.def_impl(lambda *_, **__: [])
_batch_size_p.def_abstract_eval(lambda *_, **__: [])
mlir.register_lowering(_batch_size_p, lambda *_, **__: [])


class _Sizes:
    """Sizes of batches, compared by identity."""

    def __init__(self):
        self.found: list[int] = []


def _batch_size_jvp(primals, _, **sizes):
    return _batch_size_p.bind(*primals, **sizes), []


def _batch_size_rule(leaves, dims, *, sizes):
    at, dim = next((x, d) for x, d in zip(leaves, dims, strict=True) if d is not None)
    sizes.found.append(at.shape[dim])
    return _batch_size_p.bind(*leaves, sizes=sizes), []


ad.primitive_jvps[_batch_size_p] = _batch_size_jvp
batching.primitive_batchers[_batch_size_p] = _batch_size_rule


def batch_size(tree: PyTree) -> int:
    """The number of runs for which a value is being computed at once: the product of the sizes of
    the ``vmap`` around this call. One inside a ``jit`` hides those around it."""
    leaves = [x for x in jtu.tree_leaves(tree) if isinstance(x, Tracer)]
    sizes = _Sizes()
    if leaves:
        _batch_size_p.bind(*leaves, sizes=sizes)
    return math.prod(sizes.found)


@ruled
def _gated(condition, leaves):
    return leaves


@functools.partial(_gated.def_jvp, symbolic_zeros=True)
def _gated_jvp(primals, tangents):
    condition, leaves = primals
    kept = jtu.tree_map(lambda dx: jnp.where(condition, dx, jnp.zeros_like(dx)), tangents[1])
    return _gated(condition, leaves), kept


def derivative_where(condition: Any, tree: PyTree):
    """``tree`` with derivatives only where ``condition`` holds. Elsewhere they are zero, even if a
    result has none (NaN), so that one run does not spoil a sum over a batch."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    leaves, form = jtu.tree_flatten(arrays)
    return eqx.combine(jtu.tree_unflatten(form, _gated(condition, leaves)), rest)


@ruled
def _moving(leaves, causes):
    return leaves


@functools.partial(_moving.def_jvp, symbolic_zeros=True)
def _moving_jvp(primals, tangents):
    leaves, causes = primals
    given = next(dx for changes in tangents for dx in changes if dx is not None)
    # jax takes a constant for no derivative, so a zero has to depend on one that is given.
    zero = jnp.where(jnp.zeros((), bool), jnp.ravel(given)[0], 0.0)
    changes = [
        jnp.full(x.shape, zero.astype(x.dtype)) if dx is None else dx
        for x, dx in zip(leaves, tangents[0], strict=True)
    ]
    return _moving(leaves, causes), changes


def moving(tree: PyTree, causes: PyTree):
    """``tree`` with a derivative in every leaf, zeros if need be, where it or ``causes`` have any.

    For the start of a scan whose steps depend on ``causes`` in every leaf. Where a leaf starts
    without a derivative, jax finds out by tracing that of a step, and traces it once more.
    """
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    leaves, form = jtu.tree_flatten(arrays)
    if not leaves:
        return tree
    others = [x for x in jtu.tree_leaves(causes) if eqx.is_inexact_array(x) and x.size]
    return eqx.combine(jtu.tree_unflatten(form, _moving(leaves, others)), rest)


def stop(tree: PyTree):
    """``tree`` without derivatives, for Newton matrices and first guesses."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jtu.tree_map(jax.lax.stop_gradient, arrays), rest)
