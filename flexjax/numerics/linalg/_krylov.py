"""Generalised conjugate residuals, for an exact matrix as a function and an approximate inverse.

It is GMRES with the iterate at hand. References: Eisenstat, Elman, Schultz (1983); Jiránek,
Rozložník (2010) for the choice of the next direction, which avoids the breakdown of the former.
Not lineax: its GMRES tests the residual without the preconditioner, in the units of forces, and
only at restarts.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

# Stored directions. A system up to this size is solved within as many products, however poor the
# approximate inverse; in a larger one the newest direction replaces the oldest.
DIRECTIONS = 256
ROUNDS = 4
SHORT = 8


class _Search(eqx.Module):
    x: Float[Array, " n"]
    r: Float[Array, " n"]  # residual in the units of x; updated, not computed, between checks
    size: Float[Array, ""]  # of r
    p: Float[Array, " n"]  # next direction
    directions: Float[Array, "m n"]
    images: Float[Array, "m n"]  # orthonormal
    count: Int[Array, ""]  # of directions so far
    iterations: Int[Array, ""]
    goal: Float[Array, ""]  # size of ``r`` that is worth a check
    best: Float[Array, " n"]
    error: Float[Array, ""]  # size of the residual of ``best``
    going: Bool[Array, ""]


def _norm(x: Float[Array, " n"]) -> Float[Array, ""]:
    # dot is one kernel; a sum of more than 32 squares is three.
    return jnp.sqrt(jnp.dot(x, x))


def _orthogonal(
    s: _Search, p: Float[Array, " n"], q: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, ""]]:
    """Direction and image less their parts along the former ones, and the size of the image."""
    c = s.images @ q
    p, q = p - c @ s.directions, q - c @ s.images
    return p, q, _norm(q)


def residual_minimising(
    precondition: Callable[[Array], Array], matvec: Callable[[Array], Array], b: Float[Array, " n"]
) -> Float[Array, " n"]:
    """x with ``matvec(x) = b``, to round-off of ``precondition(b - matvec(x))`` (units of x).

    An iteration takes one product with the matrix: along a new direction or, after many, with x
    for the true residual. It ends where that is small, or no smaller than at the last check. The
    result is NaN if the residual is not small to half of the digits: a wrong derivative must not
    look right. This needs more than 256 unknowns and a preconditioner with which Newton fails too.
    """
    eps = jnp.finfo(b.dtype).eps
    rhs = precondition(b)
    size = _norm(rhs)
    n = b.shape[0]
    kept = min(n, DIRECTIONS)
    last = ROUNDS * kept - 1

    def iterate(s: _Search) -> _Search:
        # Over a few iterations the updated residual is accurate; after many it is checked.
        checking = (s.size <= s.goal) | (s.iterations == last)
        image = precondition(matvec(jnp.where(checking, s.x, s.p)))
        # Orthogonalise the image (or true residual), and the direction (or x) with it; twice if
        # the first pass removes much, because its rounding errors remain.
        p, q = jnp.where(checking, 0.0, s.p), jnp.where(checking, rhs - image, image)
        error = _norm(q)
        p, q, left = _orthogonal(s, p, q)
        p, q, left = lax.cond(
            left < 0.7 * error, _orthogonal, lambda s, p, q: (p, q, left), s, p, q
        )
        scale = jnp.where(checking | (left == 0), 1.0, 1 / left)
        p, q = scale * p, scale * q
        step = jnp.dot(q, s.r)
        x = jnp.where(checking, s.x - p, s.x + step * p)
        r = jnp.where(checking, q, s.r - step * q)
        now = _norm(r)
        # The residual is the best next direction while it falls; if it stalls, the newest image
        # still leads out of the space searched so far.
        ahead = jnp.where(checking | (now < 0.9 * s.size), r, q)
        better = checking & (error < s.error)
        # An iteration that removes 99 % of the residual removes as much of the error.
        quick = (now <= eps**0.75 * size) & (now < 0.01 * s.size)
        short = ~checking & ((now <= s.goal) | quick) & (s.iterations < SHORT)
        at = s.count % kept
        return _Search(
            x=x,
            r=r,
            size=now,
            p=ahead,
            # A check leaves its row to the next direction.
            directions=s.directions.at[at].set(jnp.where(checking, 0.0, p)),
            images=s.images.at[at].set(jnp.where(checking, 0.0, q)),
            count=jnp.where(checking, s.count, s.count + 1),
            iterations=s.iterations + 1,
            goal=jnp.where(checking, 0.01 * error, s.goal),
            best=jnp.where(short, x, jnp.where(better, s.x, s.best)),
            error=jnp.where(short, now, jnp.where(better, error, s.error)),
            going=jnp.where(
                checking, (error > 4096 * eps * size) & (error < 0.5 * s.error), ~short
            ),
        )

    none, zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros_like(b), jnp.zeros((kept, n), b.dtype)
    start = _Search(
        zero, rhs, size, rhs, zeros, zeros, none, none, 8 * eps * size, zero, size, size > 0
    )
    end = lax.while_loop(lambda s: s.going & (s.iterations <= last), iterate, start)
    return jnp.where(end.error <= eps**0.5 * size, end.best, jnp.nan)
