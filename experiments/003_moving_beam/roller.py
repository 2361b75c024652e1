"""A cantilever with a moving roller, measured (dropbear8): the roller varies the element lengths.

The recording is 14 s of an accelerometer on a clamped beam while a roller moves in ten steps and
stops after each. The frequencies are estimated while the roller stands still. Two parameters of the
roller position (fractions of the length, linear in the sensor voltage) and one of the beam are
fitted to the motion towards the tip, and validated on the motion back. Mass and stiffness are
MovingBeam's element matrices as functions of the element lengths; the roller fixes uy at a node.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.formulation.moving_beam._link import element_masses, element_unknowns
from flexjax.formulation.moving_beam.beam._shapes import Shapes, field_rows
from flexjax.formulation.moving_beam.beam._strain import LINEAR_TERMS, element_hessians, tables

SHAPES = Shapes.of({}, planar=True)
INSIDE, OUTSIDE = 3, 5  # elements between clamp and roller, and beyond it


def frequencies(a):
    """First two frequencies of the clamped-roller-free beam with the roller at ``a`` L.

    The unit is sqrt(EI/rhoA) / L^2.
    """
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
    """Index ranges of at least half a second in which the roller stands still.

    Means over 0.1 s differ by at most 12 mV there.
    """
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
    size = np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(x)), 2**18))
    return float(f[np.argmax(np.where((f > low) & (f < high), size, 0.0))])


def fit(V, measured):
    """Fit the parameters by Gauss-Newton on the logarithms of the frequencies.

    They are the logarithms of the beam's frequency unit, of the roller position at 1.2 V and of
    its displacement per volt.
    """

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
    # The beam does not vibrate before the roller first moves.
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
    # Short-time spectra of the recording, and the model's frequencies at each roller position.
    n, hop = 2048, 512
    starts = np.arange(0, len(x) - n, hop)
    pieces = [x[k : k + n] for k in starts]
    spectra = [np.abs(np.fft.rfft((y - y.mean()) * np.hanning(n))) for y in pieces]
    spectra = np.stack(spectra, axis=1)[: int(320 * n * dt)]
    moving = np.array([place[k : k + n].mean() for k in starts])
    return {
        "V": V.tolist(),
        "measured": measured.tolist(),
        "fitted": fitted.tolist(),
        "dwells": len(at),
        "way_in": top + 1,
        "rms_in": rms(fitted[: top + 1], measured[: top + 1]),
        "rms_back": rms(fitted[top + 1 :], measured[top + 1 :]),
        "rms": published,
        "place": np.exp(np.asarray(p)[1:]).tolist(),
        "times": (starts * dt + 0.5 * n * dt).tolist(),
        "ridges": np.asarray(predict(p, moving)).tolist(),
        "spectra": np.log10(spectra + 1e-6).round(2).tolist(),
        "resolution": 1 / (n * dt),
    }
