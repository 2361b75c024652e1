"""Poses and twists along the chain. Everything that depends on one stage only is computed outside the scans, vectorised."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.chain._layout import Layout
from flexjax.chain._parameters import Parameters
from flexjax.screw import se3


class Kinematics(eqx.Module):
    """Local poses and their inverse adjoints (parent body twist -> own body twist), stacked over stages."""

    local: se3.Pose
    X: Float[Array, "B dim dim"]


def pad(layout: Layout, v: Array) -> Array:
    """(B, width) rates of the stages, zero where padded."""
    index, _ = layout.dof_table()
    return jnp.concatenate([v, jnp.zeros(1, v.dtype)])[index]


def scatter(layout: Layout, padded: Array) -> Array:
    """(D,) in robot order, from (B, width)."""
    index, mask = layout.dof_table()
    return jnp.zeros(layout.dofs, padded.dtype).at[index[mask]].set(padded[mask])


def kinematics(layout: Layout, par: Parameters, q: Float[Array, " nq"]) -> Kinematics:
    space = par.space
    coordinates = np.full((len(layout.stages), layout.width), layout.nq)
    for i, s in enumerate(layout.stages):
        if s.kind == "screw":
            coordinates[i, : s.dofs] = np.arange(s.q_start, s.q_start + s.dofs)
    padded = jnp.concatenate([q, jnp.zeros(1, q.dtype)])[coordinates]
    middle = jax.vmap(lambda A, x: space.exp(jnp.sum(A * x[None, :], axis=1)))(par.joint_screw, padded)
    for i, s in enumerate(layout.stages):
        if s.kind == "ball":
            middle = eqx.tree_at(lambda m: m.rotation, middle, middle.rotation.at[i].set(se3.quat_to_matrix(q[s.q_start : s.q_start + 4])))
    local = jax.vmap(lambda a, b, c: space.compose(space.compose(a, b), c))(par.before, middle, par.after)
    return Kinematics(local, jax.vmap(space.adjoint_inverse)(local))


def poses(par: Parameters, kin: Kinematics, base: se3.Pose) -> se3.Pose:
    """World poses of the bodies, stacked."""

    def outwards(pose, local):
        new = par.space.compose(pose, local)
        return new, new

    return lax.scan(outwards, base, kin.local)[1]


def spread(kin: Kinematics, start: Array, own: Float[Array, "B dim"]) -> tuple[Array, Array]:
    """The recursion z = X z_parent + own from ``start`` outwards: (what arrives from the parent, z), stacked."""

    def outwards(z, row):
        X, add = row
        arriving = jnp.sum(X * z[None, :], axis=1)
        return arriving + add, (arriving, arriving + add)

    return lax.scan(outwards, start, (kin.X, own))[1]


def gather(kin: Kinematics, own: Float[Array, "B dim"], behind: Float[Array, "B dim"]) -> tuple[Array, Array]:
    """The recursion W = own + (what the child hands over), tip to base: (W stacked, what the ground receives).

    A stage hands X^T W + ``behind`` to its parent; ``behind`` sits in the parent body's axes (rotors)."""

    def inwards(carry, row):
        X, add, rotor = row
        W = carry + add
        return jnp.sum(X * W[:, None], axis=0) + rotor, W

    ground, W = lax.scan(inwards, jnp.zeros_like(own[0]), (kin.X, own, behind), reverse=True)
    return W, ground
