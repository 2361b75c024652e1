"""Strain forces and tangents of the moving beam (paper 003): product integrals or quadrature?

    python -m benchmarks.moving_beam_assembly

Three ways give the same values, compiled and vectorised over the elements: dense tensors of
eq. (14), the factored form that MovingBeam uses, and Gauss quadrature (5 points are exact up to the
fourth power of a slope). An implicit step evaluates the forces several times and the tangent once.
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._harness import fresh_compilations, measure, row, save, show_environment

jax.config.update("jax_enable_x64", True)

from flexjax.formulation.moving_beam._paper import dense_energy
from flexjax.formulation.moving_beam._shapes import Shapes
from flexjax.formulation.moving_beam._strain import (
    LETTERS,
    ORDERS,
    STIFFNESSES,
    letter_matrix,
    scaled,
    strain_energy,
    tables,
)

REPEATS = 200  # evaluations in one compiled program, so that dispatch is negligible


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
    """Second derivatives of every element; elements are uncoupled, so one pass per direction."""
    jvp = jax.linearize(jax.grad(energy), y)[1]
    return jax.vmap(lambda e: jvp(jnp.broadcast_to(e[None], y.shape)))(jnp.eye(y.shape[1]))


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
                        continue  # 4^4 products in 14 directions compile for a minute

                    def many(y, energy=energy, of=of):
                        # Each evaluation depends on the previous one, so that XLA removes none.
                        return jax.lax.fori_loop(
                            0, REPEATS, lambda i, y: y + 1e-30 * jnp.sum(of(energy, y)), y
                        )

                    values[way] = jax.jit(lambda y, energy=energy, of=of: of(energy, y))(y)
                    _, timing = measure(many, y)
                    reference = values["gauss"]
                    gap = jnp.max(jnp.abs(values[way] - reference)) / jnp.max(jnp.abs(reference))
                    gap = float(gap)
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
                    print(
                        f"{order:11s} {what:8s} {way:9s} {n:3d} elements: {cost[way]:8.1f} us of "
                        f"CPU, {cost[way] / cost['gauss']:5.2f} of Gauss, "
                        f"compile {timing.compile:5.1f} s, gap {gap:.1e}",
                        flush=True,
                    )
    print(save("moving_beam_assembly", results))


if __name__ == "__main__":
    main()
