"""The published product of transfer matrices."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.transfer_matrix.sweep._riccati import Elements, Solution, body_maps


def transfer_matrices(el: Elements) -> tuple[Float[Array, "n 7 7"], Float[Array, "n 7 7"]]:
    """(connections, bodies) as matrices on (e, f, 1), from the inboard to the outboard end. A hinge
    without any stiffness has none."""
    n, dtype = el.column.shape[0], el.column.dtype
    right, left = body_maps(el)
    eye = jnp.broadcast_to(jnp.eye(7, dtype=dtype), (n, 7, 7))
    # f_O = left^-1 (f_I - mass (e_I, 1)); left^-1 only changes the sign of its row.
    back = left.at[:, 2, :2].set(-el.row)
    body = eye.at[:, :3, :3].set(right[:, :3, :3]).at[:, :3, 6].set(right[:, :3, 3])
    inertial = jnp.sum(back[:, :, :, None] * el.mass[:, None], axis=2)
    body = (
        body.at[:, 3:6, 3:6]
        .set(back)
        .at[:, 3:6, :3]
        .set(-inertial[:, :, :3])
        .at[:, 3:6, 6]
        .set(-inertial[:, :, 3])
    )
    # D = (torque - n - coupling al) / stiffness with the torque n on the body: n_I less that of
    # the rotor.
    soft = el.free / jnp.where(el.free > 0, el.stiffness, 1.0)
    row = (
        jnp.zeros((n, 7), dtype)
        .at[:, 5]
        .set(-1.0)
        .at[:, 2]
        .set(el.inertia - el.coupling)
        .at[:, 6]
        .set(el.torque - el.rotor_torque)
    )
    D = row * (soft / (1 - soft * el.coupling))[:, None]
    D = D.at[:, 6].add(el.given)
    n_row = (
        jnp.zeros((n, 7), dtype)
        .at[:, 5]
        .set(1.0)
        .at[:, 2]
        .add(-el.inertia)
        .at[:, 6]
        .add(el.rotor_torque)
        - el.coupling[:, None] * D
    )
    return eye.at[:, 2].add(D).at[:, 5].set(n_row), body


def product(el: Elements, root: Float[Array, "3"]) -> Solution:
    """The published method: the product of all transfer matrices, a 3 x 3 system for f at the root,
    and multiplication outwards.

    It loses digits with e^Lam, Lam = L (rhoA / (EI beta dt^2))^(1/4) / sqrt 2, for any number of
    elements, and serves to show that.
    """
    conn, body = transfer_matrices(el)

    def mul(x, y):
        return jnp.sum(x[:, :, None] * y[None], axis=1)

    def gather(P, x):
        return mul(mul(x[1], x[0]), P), None

    P, _ = lax.scan(gather, jnp.eye(7, dtype=root.dtype), (conn, body))
    # With pivoting: the closed form would lose as many digits again.
    f = -jnp.linalg.solve(P[3:6, 3:6], P[3:6, :3] @ root + P[3:6, 6])
    z = jnp.concatenate([root, f, jnp.ones(1, root.dtype)])

    def outwards(z, x):
        behind = jnp.sum(x[0] * z[None], axis=1)
        return jnp.sum(x[1] * behind[None], axis=1), (behind, behind[2] - z[2])

    _, (behind, D) = lax.scan(outwards, z, (conn, body))
    return Solution(behind[:, :3], D, behind[:, 5])
