"""The staggered element of a link: twists on nodes, strains and wrenches on elements,
power-conserving because the same E appears twice.

    Q' = E+ V_b - E- V_a          E+- = 1 +- ad(kappa)/2          kappa = Q + n_hat l
    wrench on node a: E-^T w,     on node b: -E+^T w

So V_a f_a + V_b f_b = -w Q' for any w: eq. (20) and its adjoint. Over a stage Q = Q* + h Q' is
linear in Q for given twists, (1 + h ad(Vm)) kappa = kappa* + h (V_b - V_a) with the mean twist Vm,
and is solved in closed form.
"""

import functools
import operator
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian import _algebra
from flexjax.formulation.port_hamiltonian._lanes import (
    ad,
    coad_of,
    eye_like,
    lanes,
    mm,
    mv,
    resolvent,
    transpose,
    unlanes,
)
from flexjax.numerics import linalg
from flexjax.numerics.linalg._batch_last import materialise

# Gauss points of the mean value of a nonlinear strain energy's gradient over a step: exact for
# polynomials up to degree 8.
_NODES, _WEIGHTS = (tuple(map(float, x)) for x in np.polynomial.legendre.leggauss(4))


class Elements(eqx.Module):
    """All elements of all links. ``stiffness`` is C^-1 / l, as its diagonal (L, N, d) or in full
    (L, N, d, d); ``density`` a nonlinear strain energy per length U(q, stiffness times l) or
    None."""

    length: Float[Array, " L"]
    # n_hat l, for curved links rotated so that an undeformed element carries twists as its arc does
    # (`_algebra.cayley_screw`).
    rest: Float[Array, "L N d"]
    shape: Float[Array, "L N d"]  # n_hat l
    stiffness: Array
    tau: Float[Array, " L"] | None  # strain-rate damping
    density: Callable | None = eqx.field(static=True)

    def _linear(self, Q):
        return self.stiffness * Q if self.stiffness.ndim == Q.ndim else linalg.mv(self.stiffness, Q)

    def _energies(self, Q):
        """(L, N) strain energies of a nonlinear density."""
        assert self.density is not None  # asked only where there is one
        l = self.length[:, None]
        per_length = l.reshape(l.shape + (1,) * (self.stiffness.ndim - 2)) * self.stiffness
        return l * jax.vmap(jax.vmap(self.density))(Q / l[..., None], per_length)

    def energy(self, Q):
        """Total strain energy."""
        if self.density is None:
            return 0.5 * jnp.sum(Q * self._linear(Q))
        return jnp.sum(self._energies(Q))

    def wrench(self, Q, start):
        """Elastic wrench at a stage that began at ``start``: C^-1 q, or the mean value of grad U
        over the midpoint step start .. 2 Q - start."""
        if self.density is None:
            return self._linear(Q)
        gradient = jax.grad(lambda q: jnp.sum(self._energies(q)))
        end = 2.0 * Q - start
        parts = [
            0.5 * w * gradient(start + 0.5 * (1 + x) * (end - start))
            for x, w in zip(_NODES, _WEIGHTS, strict=True)
        ]
        return functools.reduce(operator.add, parts)

    def damping(self, rate):
        """Wrench of the strain-rate damping, C^-1 tau q'."""
        assert self.tau is not None  # asked only of damped links
        return self.tau[:, None, None] * self._linear(rate)

    def slope(self, Q, start):
        """(L, N, d, d) derivative of the wrench by the strain, for a density."""
        # Each element's wrench depends on its own strain only: d columns for all elements at once.
        unit = np.eye(Q.shape[-1])
        columns = [
            jax.jvp(
                lambda q: self.wrench(q, start),
                (Q,),
                (jnp.broadcast_to(jnp.asarray(e, Q.dtype), Q.shape),),
            )[1]
            for e in unit
        ]
        return jnp.stack(columns, -1)

    def lanes(self) -> "LaneElements":
        tau = None if self.tau is None else self.tau[None, :, None]
        return LaneElements(
            lanes(self.rest),
            lanes(self.stiffness, self.stiffness.ndim - 2),
            tau,
            None if self.density is None else self,
        )


class LaneElements(eqx.Module):
    """The elements in a stage, components first (see _lanes); ``h`` and ``tau`` have the axes of a
    vector (1, 1 or L, 1)."""

    rest: Float[Array, "d L N *b"]
    stiffness: Array  # (d, L, N, ...) or (d, d, L, N, ...)
    tau: Float[Array, "1 L 1 *b"] | None
    nonlinear: Elements | None  # where there is a density: the elements it belongs to

    def begin(self, start, h, V):
        """((1 + h ad(Vm))^-1, kappa) at a stage from Q* (d, L, N) and twists (d, L, K), with which
        forces and tangent both begin."""

        def both():
            Va, Vb = V[:, :, :-1], V[:, :, 1:]
            inverse = resolvent(0.5 * h * (Va + Vb))
            return inverse, mv(inverse, start + self.rest + h * (Vb - Va))

        return materialise(jnp.ravel(h)[0], both) if V.ndim > 3 else both()

    def _linear(self, Q):
        return self.stiffness * Q if self.stiffness.ndim == Q.ndim else mv(self.stiffness, Q)

    def _wrenches(self, start, h, kappa):
        """(Q, wrench with damping, power dissipated)."""
        Q = kappa - self.rest
        w = (
            self._linear(Q)
            if self.nonlinear is None
            else lanes(self.nonlinear.wrench(unlanes(Q), unlanes(start)))
        )
        if self.tau is None:
            return Q, w, jnp.zeros(Q.shape[3:], Q.dtype)
        rate = (Q - start) / h
        damped = self.tau * self._linear(rate)
        return Q, w + damped, jnp.sum(damped * rate, axis=(0, 1, 2))

    def forces(self, start, h, begun):
        """(wrenches on nodes a, wrenches on nodes b, Q, power dissipated)."""
        kappa = begun[1]
        half = 0.5 * ad(kappa)
        Q, w, loss = self._wrenches(start, h, kappa)
        turned = mv(transpose(half), w)
        return w - turned, -w - turned, Q, loss

    def tangent(self, start, h, begun):
        """Blocks (d, d, L, N) of the derivative of (f_a, f_b) by (V_a, V_b)."""
        inverse, kappa = begun
        half = 0.5 * ad(kappa)
        Q, w, _ = self._wrenches(start, h, kappa)
        eye = eye_like(half)
        plus, minus = transpose(eye + half), transpose(eye - half)
        if self.nonlinear is None and self.stiffness.ndim == Q.ndim:
            k = self.stiffness if self.tau is None else (1.0 + self.tau / h) * self.stiffness
            minus_K, plus_K = minus * k[None], plus * k[None]
        else:
            K = self._slope(Q, start, h)
            minus_K, plus_K = mm(minus, K), mm(plus, K)
        W, G = 0.5 * coad_of(w), h[None] * inverse
        Ga, Gb = mm(minus_K - W, G), mm(plus_K + W, G)
        Ha, Hb = mm(Ga, half), mm(Gb, half)
        return Ha - Ga, Ga + Ha, Gb - Hb, -Gb - Hb

    def _slope(self, Q, start, h):
        """(d, d, L, N) derivative of the wrench with damping by the strain."""
        full = (
            self.stiffness
            if self.stiffness.ndim > Q.ndim
            else eye_like(self.stiffness[:, None]) * self.stiffness[None]
        )
        K = (
            full
            if self.nonlinear is None
            else lanes(self.nonlinear.slope(unlanes(Q), unlanes(start)), 2)
        )
        return K if self.tau is None else K + (self.tau / h)[None] * full


def strain_rate(kappa, V):
    """Q' of the elements, (L, N, d)."""
    Va, Vb = V[:, :-1], V[:, 1:]
    return Vb - Va + 0.5 * linalg.mv(_algebra.ad(kappa), Va + Vb)
