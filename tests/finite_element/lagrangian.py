"""An independent statement of the paper's mechanics, to check the chain against: dense, by
differentiation of energies, in absolute coordinates.

Frames: phi_i = phi_{i-1} + w'(contact) + angle_i, P_i = P_{i-1} + R(phi_{i-1}) (chi_i, w(contact))
(eqs. 1-6 and Table 2 with the corrections of PAPER.md). Kinetic energy with time derivatives at
fixed material points X. Nothing of flexjax.mechanism.chain or of the links' banded matrices is
used.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclasses.dataclass(frozen=True)
class Piece:
    """One link: joint kind ("R", "Pa", "Pb"), angle gamma, length, mass per length, EI, elements,
    shape function w(xi, coefficients), and rotary inertia of sections per length.
    """

    kind: str
    gamma: float
    length: float
    mu: float
    EI: float
    elements: int
    size: int
    shape: Callable
    payload: tuple[float, float, float, float] = (
        0.0,
        0.0,
        0.0,
        0.0,
    )  # mass, moment of inertia, offset x, y
    rhoI: float = 0.0


def from_table(cubics):
    """w(xi, coefficients) of a table of element polynomials."""

    def shape(xi, c):
        n = cubics.elements
        e = jnp.clip(jnp.floor(xi * n), 0, n - 1).astype(int)
        x = xi * n - e
        local = jnp.concatenate([c, jnp.zeros(1)])[jnp.asarray(cubics.index)[e]]
        return jnp.array([1.0, x, x**2, x**3]) @ (jnp.asarray(cubics.powers)[e] @ local)

    return shape


class Arm:
    """Coordinates: joints first, then the coefficients of the links in order."""

    def __init__(self, pieces, gravity=(0.0, 0.0)):
        self.pieces, self.gravity = pieces, jnp.array(gravity)
        self.size = len(pieces) + sum(p.size for p in pieces)

    def parts(self, q):
        joints, at, out = q[: len(self.pieces)], len(self.pieces), []
        for i, p in enumerate(self.pieces):
            out.append((joints[i], q[at : at + p.size]))
            at += p.size
        return out

    def local(self, i, q, X):
        """(position in the link's frame, slope) of the material point X of link i."""
        p, (d, c) = self.pieces[i], self.parts(q)[i]
        L = d if p.kind == "Pb" else p.length
        s = X + L - p.length
        if p.size == 0:
            return jnp.stack([s, jnp.zeros_like(s)]), jnp.zeros_like(s)

        def w(s):
            return p.shape(s / L, c)

        inside = s > 0
        safe = jnp.where(inside, s, 0.5 * L)
        return jnp.stack([s, jnp.where(inside, w(safe), 0.0)]), jnp.where(
            inside, jax.grad(w)(safe), 0.0
        )

    def frames(self, q):
        out, phi, P = [], jnp.zeros(()), jnp.zeros(2)
        for i, p in enumerate(self.pieces):
            joint = self.parts(q)[i][0]
            if i == 0:
                at, slope = (
                    jnp.stack([joint if p.kind == "Pa" else jnp.zeros(()), jnp.zeros(())]),
                    0.0,
                )
            else:
                at, slope = self.local(
                    i - 1, q, joint if p.kind == "Pa" else jnp.asarray(self.pieces[i - 1].length)
                )
            P = P + turn(phi) @ at
            phi = phi + slope + (joint if p.kind == "R" else p.gamma)
            out.append((P, phi))
        return out

    def point(self, i, q, X, offset=(0.0, 0.0)):
        """(position, angle) of the material point X of link i, world."""
        P, phi = self.frames(q)[i]
        r, slope = self.local(i, q, X)
        return P + turn(phi) @ (r + turn(slope) @ jnp.array(offset)), phi + slope

    def quadrature(self, i, q):
        """Material points and weights: the elements of the free length, and the tail."""
        p, (d, _) = self.pieces[i], self.parts(q)[i]
        L = d if p.kind == "Pb" else jnp.asarray(p.length)
        n = max(p.elements, 1)
        edges = p.length - L + L * jnp.arange(n + 1) / n
        if p.kind == "Pb":
            edges = jnp.concatenate([jnp.zeros(1), edges])
        span = jnp.diff(edges)
        X = edges[:-1, None] + span[:, None] * jnp.asarray(0.5 * (NODES + 1))[None]
        return X.reshape(-1), (span[:, None] * jnp.asarray(0.5 * WEIGHTS)[None]).reshape(-1), L

    def kinetic(self, q, v):
        total = 0.0
        for i, p in enumerate(self.pieces):
            X, w, _ = self.quadrature(i, q)

            def motion(X, i=i):
                return jax.jvp(lambda q: self.point(i, q, X), (q,), (v,))[1]

            speed, spin = jax.vmap(motion)(X)
            total += 0.5 * p.mu * jnp.sum(w[:, None] * speed**2)
            total += 0.5 * p.rhoI * jnp.sum(w * spin**2)
            m, J, *offset = p.payload
            if m:
                end = jnp.asarray(p.length)
                r, spin = jax.jvp(
                    lambda q, i=i, end=end, offset=offset: self.point(i, q, end, offset), (q,), (v,)
                )[1]
                total += 0.5 * m * jnp.sum(r**2) + 0.5 * J * spin**2
        return total

    def momentum(self, i, q, v):
        """Linear momentum (2,) of link i with its payload, and their mass."""
        p, (X, w, _) = self.pieces[i], self.quadrature(i, q)
        speeds = jax.vmap(lambda X: jax.jvp(lambda q: self.point(i, q, X)[0], (q,), (v,))[1])(X)
        m, _, *offset = p.payload
        load = jax.jvp(lambda q: self.point(i, q, jnp.asarray(p.length), offset)[0], (q,), (v,))[1]
        return p.mu * jnp.sum(w[:, None] * speeds, axis=0) + m * load, p.mu * p.length + m

    def potential(self, q):
        total = 0.0
        for i, p in enumerate(self.pieces):
            X, w, L = self.quadrature(i, q)
            heights = jax.vmap(lambda X, i=i: self.point(i, q, X)[0])(X)
            total -= p.mu * jnp.sum(w[:, None] * heights * self.gravity[None])
            m, _, *offset = p.payload
            if m:
                total -= m * jnp.sum(
                    self.point(i, q, jnp.asarray(p.length), offset)[0] * self.gravity
                )
            if p.size:
                c = self.parts(q)[i][1]
                xi = (
                    jnp.arange(p.elements)[:, None] + jnp.asarray(0.5 * (NODES + 1))[None]
                ).reshape(-1) / p.elements
                weights = jnp.tile(jnp.asarray(0.5 * WEIGHTS), p.elements) / p.elements
                bend = jax.vmap(lambda x, p=p, c=c: jax.grad(jax.grad(p.shape))(x, c))(xi)
                total += 0.5 * p.EI * jnp.sum(weights * bend**2) / L**3
        return total

    def mass(self, q, v):
        return jax.jacfwd(jax.grad(self.kinetic, argnums=1), argnums=1)(q, v)

    def bias(self, q, v):
        """Christoffel terms and potential forces: M a + bias = F."""
        transport = jax.jvp(lambda q: jax.grad(self.kinetic, argnums=1)(q, v), (q,), (v,))[1]
        return transport - jax.grad(self.kinetic)(q, v) + jax.grad(self.potential)(q)

    def accelerate(self, q, v, force):
        return jnp.linalg.solve(self.mass(q, v), force - self.bias(q, v))


def turn(angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])
