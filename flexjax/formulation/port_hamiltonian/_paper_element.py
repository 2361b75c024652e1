"""The paper's own element: strain and momentum both on the element, ports at its ends, a free
parameter alpha (Fig. 3 of the paper).

    Q' = t_b - t_a + ad(kappa) e_p
    P' = w_b - w_a - ad(kappa)^T e_q + ad(e_p)^T P + F
    e_q = C^-1 Q / l = (1 - alpha) w_a + alpha w_b
    e_p = I^-1 P / l = alpha t_a + (1 - alpha) t_b

Power balances for any alpha: e_q Q' + e_p P' = w_b t_b - w_a t_a + e_p F. A chain of N elements has
the port variables of its N + 1 ends as algebraic unknowns. With the wrench known at one end and the
twist at the other, both are found by marching.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import ad
from flexjax.numerics.linalg import mv, transpose


class PaperElement(eqx.Module):
    """N equal elements of one link; twists and wrenches [linear; angular]."""

    length: Float[Array, ""]  # of one element
    rest: Float[Array, " d"]  # n_hat l
    compliance: Float[Array, "d d"]
    inertia: Float[Array, "d d"]
    alpha: Float[Array, ""]

    def efforts(self, Q: Float[Array, "N d"], P: Float[Array, "N d"]):
        """(e_q, e_p) of the elements."""
        e_q = jnp.linalg.solve(self.compliance * self.length, Q.T).T
        return e_q, jnp.linalg.solve(self.inertia * self.length, P.T).T

    def energy(self, Q, P):
        e_q, e_p = self.efforts(Q, P)
        return 0.5 * jnp.sum(e_q * Q) + 0.5 * jnp.sum(e_p * P)

    def ports(self, Q, P, base_twist: Float[Array, " d"], tip_wrench: Float[Array, " d"]):
        """Twists and wrenches (N + 1, d) of the ends, for a given twist of the base and a given
        wrench on the tip."""
        e_q, e_p = self.efforts(Q, P)
        a = self.alpha

        def outwards(t, e):
            t = (e - a * t) / (1 - a)
            return t, t

        def inwards(w, e):
            w = (e - a * w) / (1 - a)
            return w, w

        twists = lax.scan(outwards, base_twist, e_p)[1]
        wrenches = lax.scan(inwards, tip_wrench, e_q, reverse=True)[1]
        return jnp.concatenate([base_twist[None], twists]), jnp.concatenate(
            [wrenches, tip_wrench[None]]
        )

    def rates(self, Q, P, twists, wrenches, force):
        """(Q', P') (N, d) for the variables of the ports and the force on every element."""
        e_q, e_p = self.efforts(Q, P)
        turn = ad(Q + self.rest[None])
        Q_rate = twists[1:] - twists[:-1] + mv(turn, e_p)
        P_rate = (
            wrenches[1:]
            - wrenches[:-1]
            - mv(transpose(turn), e_q)
            + mv(transpose(ad(e_p)), P)
            + force
        )
        return Q_rate, P_rate

    def clamped_frequencies(self, N: int) -> Array:
        """Circular frequencies of the link clamped at its base and free at its tip, ascending (2 N
        d eigenvalues in conjugate pairs)."""
        d = self.rest.shape[0]
        zero = jnp.zeros(d, self.rest.dtype)

        def rate(z):
            Q, P = z[: N * d].reshape(N, d), z[N * d :].reshape(N, d)
            t, w = self.ports(Q, P, zero, zero)
            return jnp.concatenate(
                [x.reshape(-1) for x in self.rates(Q, P, t, w, jnp.zeros((N, d), z.dtype))]
            )

        A = jax.jacfwd(rate)(jnp.zeros(2 * N * d, self.rest.dtype))
        values = jnp.linalg.eigvals(A)
        return jnp.sort(jnp.abs(values.imag))[::2]
