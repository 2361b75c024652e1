"""The paper's element (Fig. 3) alone: N equal elements of one link, with ports at its ends.

    Q' = t_b - t_a + ad(kappa) e_p
    P' = w_b - w_a - ad(kappa)^T e_q + ad(e_p)^T P + F
    e_q = C^-1 Q / l = (1 - alpha) w_a + alpha w_b
    e_p = I^-1 P / l = alpha t_a + (1 - alpha) t_b

With the wrench known at one end and the twist at the other, both are found by marching.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.numerics.linalg._components_first import mtv, mv
from flexjax.numerics.screw._components_first import ad


def _march(alpha: Scalar, first: Array, efforts: Array, reverse: bool = False) -> Array:
    """Port variables behind ``first`` (d,) from the efforts (d, N) of the elements."""

    def step(port, e):
        port = (e - alpha * port) / (1 - alpha)
        return port, port

    return lax.scan(step, first, efforts.T, reverse=reverse)[1].T


class PaperElement(eqx.Module):
    """N equal elements of one link; twists and wrenches [linear; angular], components first."""

    length: Float[Array, ""]  # of one element
    rest: Float[Array, " d"]  # n_hat l
    compliance: Float[Array, "d d"]
    inertia: Float[Array, "d d"]
    alpha: Float[Array, ""]

    def efforts(
        self, Q: Float[Array, "d N"], P: Float[Array, "d N"]
    ) -> tuple[Float[Array, "d N"], Float[Array, "d N"]]:
        """(e_q, e_p) of the elements."""
        e_q = jnp.linalg.solve(self.compliance * self.length, Q)
        return e_q, jnp.linalg.solve(self.inertia * self.length, P)

    def energy(self, Q: Float[Array, "d N"], P: Float[Array, "d N"]) -> Scalar:
        e_q, e_p = self.efforts(Q, P)
        return 0.5 * jnp.sum(e_q * Q) + 0.5 * jnp.sum(e_p * P)

    def ports(
        self,
        Q: Float[Array, "d N"],
        P: Float[Array, "d N"],
        base_twist: Float[Array, " d"],
        tip_wrench: Float[Array, " d"],
    ) -> tuple[Float[Array, "d N+1"], Float[Array, "d N+1"]]:
        """Twists and wrenches of the ends, for a given twist of the base and a given wrench on the
        tip."""
        e_q, e_p = self.efforts(Q, P)
        twists = _march(self.alpha, base_twist, e_p)
        wrenches = _march(self.alpha, tip_wrench, e_q, reverse=True)
        return (
            jnp.concatenate([base_twist[:, None], twists], axis=1),
            jnp.concatenate([wrenches, tip_wrench[:, None]], axis=1),
        )

    def rates(
        self,
        Q: Float[Array, "d N"],
        P: Float[Array, "d N"],
        twists: Float[Array, "d N+1"],
        wrenches: Float[Array, "d N+1"],
        force: Float[Array, "d N"],
    ) -> tuple[Float[Array, "d N"], Float[Array, "d N"]]:
        """(Q', P') for the variables of the ports and the force on every element."""
        e_q, e_p = self.efforts(Q, P)
        cross = ad(Q + self.rest[:, None])
        Q_rate = twists[:, 1:] - twists[:, :-1] + mv(cross, e_p)
        across = wrenches[:, 1:] - wrenches[:, :-1]
        return Q_rate, across - mtv(cross, e_q) + mtv(ad(e_p), P) + force

    def clamped_frequencies(self, N: int) -> Float[Array, " n"]:
        """Circular frequencies of the link clamped at its base and free at its tip, ascending."""
        d = self.rest.shape[0]
        zero, still = jnp.zeros(d, self.rest.dtype), jnp.zeros((d, N), self.rest.dtype)

        def rate(z):
            Q, P = z.reshape(2, d, N)
            return jnp.stack(self.rates(Q, P, *self.ports(Q, P, zero, zero), still)).reshape(-1)

        # Eigenvalues are conjugate pairs.
        values = jnp.linalg.eigvals(jax.jacfwd(rate)(jnp.zeros(2 * N * d, self.rest.dtype)))
        return jnp.sort(jnp.abs(values.imag))[::2]
