"""The sample element of the reference file, and the same energy integrated by Gauss points: a
second way to every number of the generator.
"""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from flexjax.formulation.moving_beam.beam._strain import LETTERS, STIFFNESSES

REFERENCE = json.loads(
    (Path(__file__).parent.parent / "reference" / "003_moving_beam.json").read_text()
)
SAMPLE = REFERENCE["element_sample"]
# Reference order per node: ux, ux', alpha, uy, uy', uz, uz'. Here: inner node, outer node (ux,
# alpha, uy, uy', uz, uz'), axial slopes.
ORDER = np.array([0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 1, 8])


def unknowns(name: str):
    return jnp.asarray(np.array(SAMPLE[name])[ORDER])


STIFFNESS = jnp.asarray([SAMPLE["EA"], SAMPLE["GJ"], SAMPLE["EIy_int_z2"], SAMPLE["EIz_int_y2"]])


def hermite(y0, s0, y1, s1, l, x):
    """Cubic with given ends and slopes, with its first two derivatives in x."""
    c = np.array([[1, 0, -3, 2], [0, 1, -2, 1], [0, 0, 3, -2], [0, 0, -1, 1]], float)
    k = y0 * c[0] + l * s0 * c[1] + y1 * c[2] + l * s1 * c[3]
    z = x / l
    return (
        k[0] + k[1] * z + k[2] * z**2 + k[3] * z**3,
        (k[1] + 2 * k[2] * z + 3 * k[3] * z**2) / l,
        (2 * k[2] + 6 * k[3] * z) / l**2,
    )


def letters(y, l, x):
    """The letters at a point of an element with 14 unknowns."""
    i, o, s = y[:6], y[6:12], y[12:]
    _, a, b = hermite(i[0], s[0], o[0], s[1], l, x)
    _, c, d = hermite(i[2], i[3], o[2], o[3], l, x)
    _, e, f = hermite(i[4], i[5], o[4], o[5], l, x)
    return {
        "a": a,
        "b": b,
        "c": c,
        "d": d,
        "e": e,
        "f": f,
        "s": i[1] + (o[1] - i[1]) * x / l,
        "p": (o[1] - i[1]) / l,
    }


def gauss_energies(terms, y, l, stiffness, points=8):
    """Energy of each term alone."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    value = letters(y, l, 0.5 * (jnp.asarray(nodes) + 1) * l)
    ones = jnp.ones(points)
    rows = []
    for t in terms:
        product = (
            0.5
            * jnp.asarray(weights)
            * l
            * float(t.factor)
            * stiffness[STIFFNESSES.index(t.stiffness)]
        )
        for x in t.letters:
            product = product * value[x] * ones
        rows.append(jnp.sum(product))
    return jnp.stack(rows)


assert set(LETTERS) == set("abcdefsp")
