"""Poses and twists along the chain; what depends on one stage only is vectorised."""

from types import ModuleType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Coordinates
from flexjax.mechanism.chain.geometry._layout import Layout
from flexjax.mechanism.chain.geometry._links import (
    AbstractLinks,
    AbstractSlidingLinks,
    Tip,
    sliding_links,
)
from flexjax.mechanism.chain.geometry._parameters import Parameters
from flexjax.numerics.linalg import mtv, mv
from flexjax.numerics.screw import se3


class Kinematics(eqx.Module):
    """Kinematics, stacked over stages.

    ``local``: pose of the body in the section of its joint, and ``X`` its inverse adjoint (twist
    of the section -> twist of the body). ``tip``, ``Xt``: tip sections of flexible links and the
    inverse adjoints of their poses; None in a rigid chain. ``outer``, ``full``: as ``local`` and
    ``X``, from the parent's frame.
    """

    local: se3.Pose
    X: Float[Array, "B dim dim"]
    tip: Tip | None
    Xt: Float[Array, "B dim dim"] | None
    outer: se3.Pose
    full: Float[Array, "B dim dim"]
    screw: Float[Array, "B dim k"]  # of the joints, in body axes
    # Twist of a contact that slides along the link, per unit of its coordinate, in its own axes.
    along: Float[Array, "B dim"] | None = None

    @property
    def sections(self) -> tuple[Tip, Float[Array, "B dim dim"]]:
        """The tips of a chain with flexible links, and the inverse adjoints of their poses."""
        assert self.tip is not None and self.Xt is not None  # ``kinematics`` got links
        return self.tip, self.Xt


def behind(x: Float[Array, "B ..."], first: Array) -> Array:
    """Values of the previous stage; ``first`` for the first one."""
    return jnp.concatenate([first[None], x[:-1]])


def _in_order(layout: Layout) -> bool:
    """Whether stages and joint coordinates correspond one to one, so that no table is needed."""
    index, _ = layout.dof_table()
    return index.shape == (layout.dofs, 1) and bool(np.all(index[:, 0] == np.arange(layout.dofs)))


def to_joints(layout: Layout, v: Array) -> Array:
    """Rates (B, width) of the joints of each stage, zero where padded."""
    index, _ = layout.dof_table()
    if _in_order(layout):
        return v[: layout.dofs, None]
    return jnp.concatenate([v, jnp.zeros(1, v.dtype)])[index]


def from_joints(layout: Layout, padded: Array) -> Array:
    """Values (D,) in robot order, from (B, width)."""
    index, mask = layout.dof_table()
    if _in_order(layout):
        return padded[:, 0]
    return jnp.zeros(layout.dofs, padded.dtype).at[index[mask]].set(padded[mask])


def to_shapes(layout: Layout, x: Array) -> Array:
    """Shape coordinates (or rates, forces) (B, m) of the stages, from q or v; zero where padded."""
    index, _ = layout.shape_table()
    tail = x[x.shape[0] - sum(layout.shapes) :]
    if len(set(layout.shapes)) == 1 and not layout.extends:
        return tail.reshape(len(layout.stages), -1)
    parts = [tail, x[: layout.dofs]] if layout.extends else [tail]
    return jnp.concatenate([*parts, jnp.zeros(1, x.dtype)])[index]


def from_shapes(layout: Layout, padded: Array) -> Array:
    """(nv,) with the shape coordinates' values from (B, m), zero elsewhere."""
    index, mask = layout.shape_table()
    total = sum(layout.shapes)
    if not layout.extends:
        flat = padded.reshape(-1)
        flat = flat if len(set(layout.shapes)) == 1 else flat[np.flatnonzero(mask)]
        return jnp.pad(flat, (layout.nv - total, 0))
    where = np.where(index < total, index + layout.nv - total, index - total)
    return jnp.zeros(layout.nv, padded.dtype).at[where[mask]].set(padded[mask])


def contacts(
    layout: Layout, links: AbstractSlidingLinks, eta: Float[Array, "B m"], q: Coordinates
) -> tuple[Tip, Float[Array, "B dim"]]:
    """Sections to which the next joints are attached, and ``along``.

    The section is the contact of a joint that slides along an elastic link, otherwise the tip.
    """
    index, sliding = layout.slide_table()
    station = jnp.where(sliding, q[index] / links.length, 1.0)
    per_length = jnp.where(sliding, 1.0 / links.length, 0.0)
    return links.contact(eta, station), per_length[:, None] * links.along(eta, station)


def _screw_poses(
    space: ModuleType, screws: Float[Array, "B dim k"], x: Float[Array, "B k"]
) -> se3.Pose:
    """Exponentials of the joints' screws.

    A screw rotates about one unit axis (its first column) or only translates, so Rodrigues'
    formula needs no series.
    """
    shift = mv(screws[:, : space.LIN], x)
    if space.LIN == 2:
        angle = screws[:, 2, 0] * x[:, 0]
        c, s = jnp.cos(angle), jnp.sin(angle)
        return se3.Pose(jnp.stack([jnp.stack([c, -s], 1), jnp.stack([s, c], 1)], 1), shift)
    ax, ay, az = screws[:, 3:, 0].T
    zero = jnp.zeros_like(ax)
    K = jnp.stack(
        [
            jnp.stack([zero, -az, ay], 1),
            jnp.stack([az, zero, -ax], 1),
            jnp.stack([-ay, ax, zero], 1),
        ],
        1,
    )
    K2 = jnp.sum(K[:, :, :, None] * K[:, None, :, :], axis=2)
    s, c = jnp.sin(x[:, 0])[:, None, None], jnp.cos(x[:, 0])[:, None, None]
    return se3.Pose(jnp.eye(3, dtype=x.dtype)[None] + s * K + (1 - c) * K2, shift)


def kinematics(
    layout: Layout, parameters: Parameters, q: Coordinates, links: AbstractLinks | None = None
) -> Kinematics:
    space = parameters.space
    coordinates = np.full((len(layout.stages), layout.width), layout.nq)
    for i, s in enumerate(layout.stages):
        if s.kind == "screw":
            coordinates[i, : s.dofs] = np.arange(s.q_start, s.q_start + s.dofs)
    plain = _in_order(layout) and np.array_equal(coordinates[:, 0], np.arange(layout.dofs))
    if plain:
        padded = q[: layout.dofs, None]
    else:
        padded = jnp.concatenate([q, jnp.zeros(1, q.dtype)])[coordinates]
    middle = _screw_poses(space, parameters.joint_screw, padded)
    for i, s in enumerate(layout.stages):
        if s.kind == "ball":
            rotation = se3.quat_to_matrix(q[s.q_start : s.q_start + 4])
            middle = se3.Pose(middle.rotation.at[i].set(rotation), middle.position)
    compose = jax.vmap(space.compose)
    local = compose(compose(parameters.before, middle), parameters.after)
    X = jax.vmap(space.adjoint_inverse)(local)
    if links is None:
        return Kinematics(local, X, None, None, local, X, parameters.screw)
    eta = to_shapes(layout, q)
    tip, along = (
        contacts(layout, sliding_links(links), eta, q) if layout.slides else (links.tip(eta), None)
    )
    Xt = jax.vmap(space.adjoint_inverse)(tip.pose)
    carrier = jax.tree_util.tree_map(behind, tip.pose, space.identity(q.dtype))
    outer = jax.vmap(space.compose)(carrier, local)
    screw = parameters.screw
    if along is not None:
        screw = screw.at[:, :, 0].add(mv(X, behind(along, jnp.zeros_like(along[0]))))
    full = jax.vmap(space.adjoint_inverse)(outer)
    return Kinematics(local, X, tip, Xt, outer, full, screw, along)


def poses(parameters: Parameters, kin: Kinematics, base: se3.Pose) -> se3.Pose:
    """World poses of the bodies, stacked."""

    def outwards(pose, local):
        new = parameters.space.compose(pose, local)
        return new, new

    return lax.scan(outwards, base, kin.outer)[1]


def at_tip(kin: Kinematics, z: Float[Array, "B dim"], shape: Float[Array, "B dim"]) -> Array:
    """Twists (or accelerations) of joints' sections: X_t z plus ``shape`` of the deformation."""
    return z if kin.Xt is None else mv(kin.Xt, z) + shape


def onto_next(kin: Kinematics, shape: Float[Array, "B dim"]) -> Array:
    """What the deformation of a stage adds to the twist of the next one."""
    if kin.tip is None:
        return jnp.zeros_like(shape)
    return mv(kin.X, behind(shape, jnp.zeros_like(shape[0])))


def tip_wrench(
    kin: Kinematics, W: Float[Array, "B dim"], rotors: Float[Array, "B dim"] | None
) -> Array:
    """Wrench of each body's tip section on the next stage and on the rotor at the tip."""
    passed_on = mtv(kin.X, W) if rotors is None else mtv(kin.X, W) + rotors
    return jnp.concatenate([passed_on[1:], jnp.zeros_like(passed_on[:1])])


def outward(kin: Kinematics, start: Array, own: Float[Array, "B dim"]) -> Array:
    """The recursion z = X z_parent + own from ``start`` outwards, stacked."""

    def outwards(z, row):
        X, add = row
        z = mv(X, z) + add
        return z, z

    return lax.scan(outwards, start, (kin.full, own))[1]


def inward(
    kin: Kinematics, own: Float[Array, "B dim"], rotors: Float[Array, "B dim"] | None
) -> tuple[Array, Array]:
    """The recursion W = own + (wrench from the child), tip to base; and the wrench on the ground.

    A stage passes X^T W + ``rotors`` to the section of its joint.
    """
    if rotors is not None and kin.Xt is not None:
        rotors = mtv(behind(kin.Xt, jnp.eye(own.shape[1], dtype=own.dtype)), rotors)

    def inwards(carry, row):
        X, add, rotor = row
        W = carry + add
        passed = mtv(X, W)
        return passed if rotor is None else passed + rotor, W

    ground, W = lax.scan(inwards, jnp.zeros_like(own[0]), (kin.full, own, rotors), reverse=True)
    return W, ground
