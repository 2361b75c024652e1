"""The staggered element of a link: twists on nodes, strains and wrenches on elements, power-conserving because the same E appears twice.

    Q' = E+ V_b - E- V_a          E+- = 1 +- ad(kappa)/2          kappa = Q + n_hat l
    wrench on node a: E-^T w,     on node b: -E+^T w              (so that V_a f_a + V_b f_b = -w Q' for any w: eq. (20) and its adjoint)
Over a stage Q = Q* + h Q' is linear in Q for given twists: (1 + h ad(Vm)) kappa = kappa* + h (V_b - V_a), Vm the mean: solved in closed form.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian import _algebra
from flexjax.formulation.port_hamiltonian._lanes import ad, coad_of, eye_like, lanes, mm, mv, resolvent, transpose, unlanes

# Gauss points of the mean value of a nonlinear strain energy's gradient over a step: exact for polynomials up to degree 8.
_NODES, _WEIGHTS = (tuple(map(float, x)) for x in np.polynomial.legendre.leggauss(4))


class Elements(eqx.Module):
    """All elements of all links. ``stiffness`` is C^-1 / l, as its diagonal (L, N, d) or in full (L, N, d, d); ``density`` a nonlinear strain
    energy per length U(q, stiffness times l) or None."""

    length: Float[Array, " L"]
    rest: Float[Array, "L N d"]  # n_hat l
    stiffness: Array
    tau: Float[Array, " L"] | None  # strain-rate damping
    density: Callable | None = eqx.field(static=True)

    def kappa(self, start, h, V):
        """((1 + h ad(Vm))^-1, kappa, ad(kappa)/2) at a stage from Q* (L, N, d) and twists (L, K, d), components first. Forces and tangent both begin with it,
        in the same words, so that a Newton iteration computes it once."""
        twists = lanes(V)
        Va, Vb = twists[..., :-1], twists[..., 1:]
        inverse = resolvent(0.5 * h * (Va + Vb))
        kappa = mv(inverse, lanes(start + self.rest) + h * (Vb - Va))
        return inverse, kappa, 0.5 * ad(kappa)

    def _linear(self, Q):
        return self.stiffness * Q if self.stiffness.ndim == Q.ndim else _algebra.mv(self.stiffness, Q)

    def _energies(self, Q):
        """(L, N) strain energies of a nonlinear density."""
        l = self.length[:, None]
        per_length = l.reshape(l.shape + (1,) * (self.stiffness.ndim - 2)) * self.stiffness
        return l * jax.vmap(jax.vmap(self.density))(Q / l[..., None], per_length)

    def energy(self, Q):
        """Total strain energy."""
        if self.density is None:
            return 0.5 * jnp.sum(Q * self._linear(Q))
        return jnp.sum(self._energies(Q))

    def wrench(self, Q, start):
        """Elastic wrench at a stage that began at ``start``: C^-1 q, or the mean value of grad U over the midpoint step start .. 2 Q - start."""
        if self.density is None:
            return self._linear(Q)
        gradient = jax.grad(lambda q: jnp.sum(self._energies(q)))
        end = 2.0 * Q - start
        parts = [0.5 * w * gradient(start + 0.5 * (1 + x) * (end - start)) for x, w in zip(_NODES, _WEIGHTS, strict=True)]
        return sum(parts)

    def damping(self, rate):
        """Wrench of the strain-rate damping, C^-1 tau q'."""
        return self.tau[:, None, None] * self._linear(rate)

    def _wrenches(self, start, h, kappa):
        """(Q, wrench with damping components first, power dissipated)."""
        Q = unlanes(kappa) - self.rest
        w, loss = self.wrench(Q, start), jnp.zeros((), Q.dtype)
        if self.tau is not None:
            rate = (Q - start) / h
            damped = self.damping(rate)
            w, loss = w + damped, jnp.sum(damped * rate)
        return Q, lanes(w), loss

    def forces(self, start, h, V):
        """(wrenches on nodes a, wrenches on nodes b, Q, power dissipated)."""
        _, kappa, half = self.kappa(start, h, V)
        Q, w, loss = self._wrenches(start, h, kappa)
        turned = mv(transpose(half), w)
        return unlanes(w - turned), unlanes(-w - turned), Q, loss

    def tangent(self, start, h, V):
        """Blocks (d, d, L, N) of the derivative of (f_a, f_b) by (V_a, V_b)."""
        inverse, kappa, half = self.kappa(start, h, V)
        Q, w, _ = self._wrenches(start, h, kappa)
        eye = eye_like(half)
        plus, minus = transpose(eye + half), transpose(eye - half)
        factor = jnp.ones((1, 1, 1), Q.dtype) if self.tau is None else (1.0 + self.tau / h)[:, None, None]
        if self.density is None and self.stiffness.ndim == Q.ndim:
            k = lanes(factor * self.stiffness)[None]
            minus_K, plus_K = minus * k, plus * k
        else:
            K = lanes(self._slope(Q, start, factor), 2)
            minus_K, plus_K = mm(minus, K), mm(plus, K)
        W, G = 0.5 * coad_of(w), h * inverse
        Ga, Gb = mm(minus_K - W, G), mm(plus_K + W, G)
        Ha, Hb = mm(Ga, half), mm(Gb, half)
        return Ha - Ga, Ga + Ha, Gb - Hb, -Gb - Hb

    def _slope(self, Q, start, factor):
        """(L, N, d, d) derivative of the wrench by the strain."""
        if self.density is None:
            return factor[..., None] * self.stiffness
        # Each element's wrench depends on its own strain only: d columns for all elements at once.
        unit = np.eye(Q.shape[-1])
        columns = [jax.jvp(lambda q: self.wrench(q, start), (Q,), (jnp.broadcast_to(jnp.asarray(e, Q.dtype), Q.shape),))[1] for e in unit]
        K = jnp.stack(columns, -1)
        return K if self.tau is None else K + (factor[..., None] - 1.0) * self._full()

    def _full(self):
        s = self.stiffness
        return s if s.ndim == self.rest.ndim + 1 else s[..., None] * jnp.eye(s.shape[-1], dtype=s.dtype)[None, None]


def strain_rate(kappa, V):
    """Q' of the elements, (L, N, d)."""
    Va, Vb = V[:, :-1], V[:, 1:]
    return Vb - Va + 0.5 * _algebra.mv(_algebra.ad(kappa), Va + Vb)
