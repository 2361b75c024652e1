"""Is it cheaper to scale product integrals than to integrate? Strain forces and tangents of the moving beam (paper 003), one evaluation over all elements.

Three ways to the same numbers, all compiled and vectorised over the elements: dense tensors of eq. (14), the factored form that MovingBeam uses, and
Gauss points (as many as make the integral exact: 5 up to the fourth power of a slope). An implicit step needs the forces a few times at several points
and the tangent once. python -m benchmarks.moving_beam_assembly
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._harness import fresh_compilations, measure, row, save, show_environment

jax.config.update("jax_enable_x64", True)

from flexjax.formulation.moving_beam._generator import (
    LETTERS,
    dense_energy,
    letter_matrix,
    scaled,
    strain_energy,
    tables,
)
from flexjax.formulation.moving_beam._shapes import Shapes
from flexjax.formulation.moving_beam._terms import ORDERS, STIFFNESSES

REPEATS = 200  # evaluations inside one compiled program, so that dispatch does not drown the work


def gauss_energy(terms, y, l, stiffness, points=5):
    nodes, weights = np.polynomial.legendre.leggauss(points)
    xi = 0.5 * (nodes + 1)
    C = letter_matrix("".join(LETTERS), Shapes())
    at = np.einsum("url,lg->urg", C, np.stack([xi**k for k in range(C.shape[2])]))
    value = jnp.tensordot(scaled(Shapes(), y, l), jnp.asarray(at), 1)  # (n, letter, point)
    value = {x: value[:, i] / l[:, None] ** LETTERS[x][1] for i, x in enumerate(LETTERS)}
    total = 0.0
    for t in terms:
        product = float(t.factor) * (stiffness[:, STIFFNESSES.index(t.stiffness)] * l)[:, None]
        for x in t.letters:
            product = product * value[x]
        total = total + product
    return jnp.sum(total * jnp.asarray(0.5 * weights)[None, :])


def dense(terms, y, l, stiffness):
    return jnp.sum(jax.vmap(lambda y, l, k: dense_energy(terms, y, l, k))(y, l, stiffness))


def tangent(energy, y):
    """Second derivatives of every element, all directions at once: elements are not coupled."""
    push = jax.linearize(jax.grad(energy), y)[1]
    return jax.vmap(lambda e: push(jnp.broadcast_to(e[None], y.shape)))(jnp.eye(y.shape[1]))


def main():
    fresh_compilations()
    show_environment()
    key = jax.random.key(0)
    results = []
    quantities = {"forces": lambda energy, y: jax.grad(energy)(y), "tangent": tangent}
    for order in ("cubic", "complete", "consistent"):
        terms = ORDERS[order]
        for n in (5, 50):
            y = 1e-2 * jax.random.normal(key, (n, 14))
            l, k = jnp.full(n, 0.7), jnp.ones((n, 4)) * jnp.array([5.0, 0.6, 3.0, 1.0])
            ways = {
                "gauss": lambda y, terms=terms, l=l, k=k: gauss_energy(terms, y, l, k),
                "factored": lambda y, terms=terms, l=l, k=k: strain_energy(tables(terms), y, l, k),
                "dense": lambda y, terms=terms, l=l, k=k: dense(terms, y, l, k),
            }
            for what, of in quantities.items():
                cost, values = {}, {}
                for way, energy in ways.items():
                    if (what, way) == ("tangent", "dense"):
                        continue  # 4^4 products in 14 directions: compiles for a minute and says nothing new

                    def many(y, energy=energy, of=of):
                        # Every evaluation feeds the next, so that none is left out.
                        return jax.lax.fori_loop(
                            0, REPEATS, lambda i, y: y + 1e-30 * jnp.sum(of(energy, y)), y
                        )

                    values[way] = jax.jit(lambda y, energy=energy, of=of: of(energy, y))(y)
                    _, timing = measure(many, y)
                    gap = float(
                        jnp.max(jnp.abs(values[way] - values["gauss"]))
                        / jnp.max(jnp.abs(values["gauss"]))
                    )
                    cost[way] = 1e6 * timing.cpu / REPEATS
                    results.append(
                        row(
                            f"{order} {what} {way} {n}",
                            order=order,
                            way=way,
                            elements=n,
                            microseconds=cost[way],
                            gap=gap,
                            timing=timing,
                        )
                    )
                    told = f"{cost[way]:8.1f} us of CPU, {cost[way] / cost['gauss']:5.2f} of Gauss, compile {timing.compile:5.1f} s, gap {gap:.1e}"
                    print(f"{order:11s} {what:8s} {way:9s} {n:3d} elements: {told}", flush=True)
    print(save("moving_beam_assembly", results))


if __name__ == "__main__":
    main()
