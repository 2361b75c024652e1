"""The moving-roller cantilever of a measured record (dropbear8): what shortens is the length between clamp and roller, element by element.

The record is 14 s of an accelerometer on a clamped beam while a roller is moved in ten steps and held after each. Frequencies are read from the record
at the dwells. Two numbers of the roller's place (of the length, linear in the sensor's volts) and one of the beam are fitted to the way in, and judged on
the way back.
Mass and stiffness are MovingBeam's own element matrices as functions of the elements' lengths; the roller stands on a node and holds its uy.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.formulation.moving_beam._generator import tables
from flexjax.formulation.moving_beam._link import element_hessians, element_masses, element_unknowns
from flexjax.formulation.moving_beam._shapes import Shapes, field_rows
from flexjax.formulation.moving_beam._terms import LINEAR_TERMS

SHAPES = Shapes.of({}, planar=True)
INSIDE, OUTSIDE = 3, 5  # elements between clamp and roller, and beyond it


def frequencies(a):
    """First two of the clamped-roller-free beam, roller at ``a`` of the length, in units of sqrt(EI/rhoA)/L^2 / 2 pi."""
    n, width, node = INSIDE + OUTSIDE, SHAPES.node + SHAPES.own, SHAPES.node
    l = jnp.concatenate([jnp.full(INSIDE, a / INSIDE), jnp.full(OUTSIDE, (1 - a) / OUTSIDE)])
    M = element_masses(SHAPES, l, jnp.ones(n), jnp.zeros((n, 3)))
    K = element_hessians(
        tables(tuple(t for t in LINEAR_TERMS if t.planar), SHAPES),
        jnp.zeros((n, SHAPES.size)),
        l,
        jnp.ones((n, 4)),
    )[:, :-1, :-1]
    spread = jax.vmap(lambda e: element_unknowns(e, n, node), out_axes=2)(jnp.eye(n * width))
    bending = sorted(r - node for r in field_rows(SHAPES)["uy"] if node <= r < 2 * node)
    held = (INSIDE - 1) * width + bending[0]
    free = np.array([e * width + c for e in range(n) for c in bending if e * width + c != held])
    M, K = (jnp.einsum("eia,eij,ejb->ab", spread, E, spread)[np.ix_(free, free)] for E in (M, K))
    root = jnp.linalg.inv(jnp.linalg.cholesky(M))
    return jnp.sqrt(jnp.linalg.eigvalsh(root @ K @ root.T)[:2]) / (2 * jnp.pi)


def dwells(t, place):
    """(first, last + 1) of the stretches of half a second and more in which the roller stands (means of 0.1 s within 12 mV)."""
    n = int(round(0.1 / (t[1] - t[0])))
    mean = place[: len(place) // n * n].reshape(-1, n).mean(1)
    out, start = [], 0
    for k in range(1, len(mean) + 1):
        if k == len(mean) or abs(mean[k] - np.median(mean[start:k])) > 0.012:
            if k - start >= 5:
                out.append((start * n, k * n))
            start = k
    return out


def peak(x, dt, low, high):
    """Frequency of the highest peak of the spectrum between two limits."""
    f = np.fft.rfftfreq(2**18, dt)
    X = np.where(
        (f > low) & (f < high), np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(x)), 2**18)), 0.0
    )
    return float(f[np.argmax(X)])


def fit(V, measured):
    """Logarithms of the beam's number, of the roller's place at 1.2 V and of its way per volt, by Gauss-Newton on the logarithms of the frequencies."""

    def residual(p):
        return (jnp.log(predict(p, V)) - jnp.log(jnp.asarray(measured))).reshape(-1)

    p = jnp.log(jnp.array([44.0, 0.03, 0.12]))
    step = jax.jit(lambda p: p - jnp.linalg.lstsq(jax.jacfwd(residual)(p), residual(p))[0])
    for _ in range(15):
        p = step(p)
    return p


def predict(p, V):
    beam, place, way = jnp.exp(p)
    return beam * jax.vmap(frequencies)(place + way * (jnp.asarray(V) - 1.2))


def rms(predicted, measured):
    return float(np.sqrt(np.mean((np.asarray(predicted) / measured - 1) ** 2)))


def study(path: Path, c: dict) -> dict:
    t, x, _, place = np.loadtxt(path, delimiter=",", skiprows=1).T
    dt = float(t[1] - t[0])
    # Before the roller first moves nothing rings.
    at = [(i, j) for i, j in dwells(t, place) if i > 0]
    V = np.array([place[i:j].mean() for i, j in at])
    measured = np.array(
        [[peak(x[i:j], dt, *band) for band in (c["first"], c["second"])] for i, j in at]
    )
    top = int(np.argmax(V))
    p = fit(V[: top + 1], measured[: top + 1])
    fitted = np.asarray(predict(p, V))
    whole = fit(np.array(c["V"]), np.stack([c["f1"], c["f2"]], axis=1))
    published = rms(predict(whole, np.array(c["V"])), np.stack([c["f1"], c["f2"]], axis=1))
    # Short spectra of the record, and the model's frequencies at the roller's place of every moment.
    n, hop = 2048, 512
    starts = np.arange(0, len(x) - n, hop)
    spectra = np.stack(
        [
            np.abs(np.fft.rfft((x[k : k + n] - x[k : k + n].mean()) * np.hanning(n)))[
                : int(320 * n * dt)
            ]
            for k in starts
        ],
        axis=1,
    )
    moving = np.array([place[k : k + n].mean() for k in starts])
    return {
        "V": V.tolist(), "measured": measured.tolist(), "fitted": fitted.tolist(), "dwells": len(at), "way_in": top + 1,
        "rms_in": rms(fitted[: top + 1], measured[: top + 1]), "rms_back": rms(fitted[top + 1 :], measured[top + 1 :]), "rms": published,
        "place": np.exp(np.asarray(p)[1:]).tolist(), "times": (starts * dt + 0.5 * n * dt).tolist(), "ridges": np.asarray(predict(p, moving)).tolist(),
        "spectra": np.log10(spectra + 1e-6).round(2).tolist(), "resolution": 1 / (n * dt),
    }  # fmt: skip
