"""Strain forces and tangents of the moving beam (paper 003): product integrals or quadrature?

    python -m benchmarks.moving_beam_assembly

Three ways give the same values, compiled and vectorised over the elements: dense tensors of
eq. (14), their factored form, and the Gauss points that MovingBeam uses (5 are exact up to the
fourth power of a slope). An implicit step evaluates the forces several times and the tangent once.
"""

import jax
import jax.numpy as jnp

from benchmarks._harness import fresh_compilations, measure, row, save, show_environment

jax.config.update("jax_enable_x64", True)

from flexjax.formulation.moving_beam._paper import dense_energy
from flexjax.formulation.moving_beam.beam._strain import (
    ORDERS,
    coefficients,
    plus,
    scaled,
    strain_energy,
    tables,
    times,
)

REPEATS = 200  # evaluations in one compiled program, so that dispatch is negligible


def factored_energy(table, y, l, stiffness):
    """D_ijkl = sum_mn Q_ijm H_mn Q_kln, where Q multiplies two polynomials and
    H_mn = 1/(m + n + 1), coefficient by coefficient."""
    f = coefficients(table.letters, table.shapes, scaled(table.shapes, y, l))
    f |= {pair: times(f[pair[0]], f[pair[1]]) for pair in table.pairs}
    total = jnp.zeros_like(l)
    for (k, derivatives), products in zip(table.groups, table.products, strict=True):
        density = jnp.zeros_like(l)
        for first, seconds in products:
            second = []
            for name, factor, _ in seconds:
                second = plus(second, [factor * x for x in f[name]])
            for m, a in enumerate(f[first]):
                density = density + a * sum(b * (1 / (m + n + 1)) for n, b in enumerate(second))
        total = total + stiffness[:, k] * l ** (1 - derivatives) * density
    return jnp.sum(total)


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
                "gauss": lambda y, terms=terms, l=l, k=k: strain_energy(tables(terms), y, l, k),
                "factored": lambda y, terms=terms, l=l, k=k: factored_energy(
                    tables(terms), y, l, k
                ),
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
