"""Poses and twists along the chain. Everything that depends on one stage only is computed outside the scans,
vectorised."""

from types import ModuleType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Coordinates
from flexjax.mechanism.chain._layout import Layout
from flexjax.mechanism.chain._links import AbstractLinks, Tip
from flexjax.mechanism.chain._parameters import Parameters
from flexjax.numerics.linalg import mtv, mv
from flexjax.numerics.screw import se3


class Kinematics(eqx.Module):
    """Stacked over stages: the pose of the body in the section that its joint hangs on, the inverse adjoint of that
    (section's twist -> body's twist),
    the tip sections of flexible links (None in a rigid chain) and the inverse adjoints of their poses, and both of the
    first two from the parent's frame.
    """

    local: se3.Pose
    X: Float[Array, "B dim dim"]
    tip: Tip | None
    Xt: Float[Array, "B dim dim"] | None
    outer: se3.Pose
    full: Float[Array, "B dim dim"]
    screw: Float[Array, "B dim k"]  # of the joints, in body axes
    along: Float[Array, "B dim"] | None = (
        None  # twist of a contact that slides along the link, per unit of its coordinate, in the contact's axes
    )

    @property
    def sections(self) -> tuple[Tip, Float[Array, "B dim dim"]]:
        """The tips of a chain with flexible links, and the inverse adjoints of their poses."""
        assert self.tip is not None and self.Xt is not None  # ``kinematics`` got links
        return self.tip, self.Xt


def behind(x: Float[Array, "B ..."], first: Array) -> Array:
    """What the stage before each one has; ``first`` for the first."""
    return jnp.concatenate([first[None], x[:-1]])


def _in_order(layout: Layout) -> bool:
    """Every stage has one joint coordinate, in robot order: no tables are needed, and traces stay short."""
    index, _ = layout.dof_table()
    return index.shape == (layout.dofs, 1) and bool(np.all(index[:, 0] == np.arange(layout.dofs)))


def pad(layout: Layout, v: Array) -> Array:
    """(B, width) rates of the joints, zero where padded."""
    index, _ = layout.dof_table()
    if _in_order(layout):
        return v[: layout.dofs, None]
    return jnp.concatenate([v, jnp.zeros(1, v.dtype)])[index]


def scatter(layout: Layout, padded: Array) -> Array:
    """(D,) in robot order, from (B, width)."""
    index, mask = layout.dof_table()
    if _in_order(layout):
        return padded[:, 0]
    return jnp.zeros(layout.dofs, padded.dtype).at[index[mask]].set(padded[mask])


def pad_shapes(layout: Layout, x: Array) -> Array:
    """(B, m) shape coordinates (or rates, forces) of the stages, from q or v; zero where padded."""
    index, _ = layout.shape_table()
    tail = x[x.shape[0] - sum(layout.shapes) :]
    if len(set(layout.shapes)) == 1 and not layout.extends:
        return tail.reshape(len(layout.stages), -1)
    parts = [tail, x[: layout.dofs]] if layout.extends else [tail]
    return jnp.concatenate([*parts, jnp.zeros(1, x.dtype)])[index]


def scatter_shapes(layout: Layout, padded: Array) -> Array:
    """(nv,) with the shape coordinates' numbers from (B, m), zero elsewhere."""
    index, mask = layout.shape_table()
    total = sum(layout.shapes)
    if not layout.extends:
        flat = (
            padded.reshape(-1)
            if len(set(layout.shapes)) == 1
            else padded.reshape(-1)[np.flatnonzero(mask)]
        )
        return jnp.pad(flat, (layout.nv - total, 0))
    where = np.where(index < total, index + layout.nv - total, index - total)
    return jnp.zeros(layout.nv, padded.dtype).at[where[mask]].set(padded[mask])


def contacts(
    layout: Layout, links: AbstractLinks, eta: Float[Array, "B m"], q: Coordinates
) -> tuple[Tip, Float[Array, "B dim"]]:
    """The sections that the next joints hang on, and ``along``. Where a joint slides along an
    elastic link, the section is its contact, elsewhere the tip."""
    index, sliding = layout.slide_table()
    station = jnp.where(sliding, q[index] / links.length, 1.0)
    per_length = jnp.where(sliding, 1.0 / links.length, 0.0)
    return links.contact(eta, station), per_length[:, None] * links.along(eta, station)


def _screw_poses(
    space: ModuleType, screws: Float[Array, "B dim k"], x: Float[Array, "B k"]
) -> se3.Pose:
    """exp of the joints' screws. A screw here turns about one unit axis (its first column) or only shifts, so
    Rodrigues' formula with the axis as it is
    serves: no series, and no more than a sine and a cosine to differentiate."""
    shift = mv(screws[:, : space.LIN], x)
    if space.LIN == 2:
        turn = screws[:, 2, 0] * x[:, 0]
        c, s = jnp.cos(turn), jnp.sin(turn)
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
    layout: Layout, par: Parameters, q: Coordinates, links: AbstractLinks | None = None
) -> Kinematics:
    space = par.space
    coordinates = np.full((len(layout.stages), layout.width), layout.nq)
    for i, s in enumerate(layout.stages):
        if s.kind == "screw":
            coordinates[i, : s.dofs] = np.arange(s.q_start, s.q_start + s.dofs)
    plain = _in_order(layout) and np.array_equal(coordinates[:, 0], np.arange(layout.dofs))
    padded = (
        q[: layout.dofs, None]
        if plain
        else jnp.concatenate([q, jnp.zeros(1, q.dtype)])[coordinates]
    )
    middle = _screw_poses(space, par.joint_screw, padded)
    for i, s in enumerate(layout.stages):
        if s.kind == "ball":
            middle = eqx.tree_at(
                lambda m: m.rotation,
                middle,
                middle.rotation.at[i].set(se3.quat_to_matrix(q[s.q_start : s.q_start + 4])),
            )
    local = jax.vmap(lambda a, b, c: space.compose(space.compose(a, b), c))(
        par.before, middle, par.after
    )
    X = jax.vmap(space.adjoint_inverse)(local)
    if links is None:
        return Kinematics(local, X, None, None, local, X, par.screw)
    eta = pad_shapes(layout, q)
    tip, along = contacts(layout, links, eta, q) if layout.slides else (links.tip(eta), None)
    Xt = jax.vmap(space.adjoint_inverse)(tip.pose)
    carrier = jax.tree_util.tree_map(behind, tip.pose, space.identity(q.dtype))
    outer = jax.vmap(space.compose)(carrier, local)
    screw = par.screw
    if along is not None:
        screw = screw.at[:, :, 0].add(mv(X, behind(along, jnp.zeros_like(along[0]))))
    return Kinematics(
        local, X, tip, Xt, outer, jax.vmap(space.adjoint_inverse)(outer), screw, along
    )


def poses(par: Parameters, kin: Kinematics, base: se3.Pose) -> se3.Pose:
    """World poses of the bodies, stacked."""

    def outwards(pose, local):
        new = par.space.compose(pose, local)
        return new, new

    return lax.scan(outwards, base, kin.outer)[1]


def at_tip(kin: Kinematics, z: Float[Array, "B dim"], shape: Float[Array, "B dim"]) -> Array:
    """Twists (or accelerations) of the sections that joints hang on: X_t z + shape, where ``shape`` is what the
    deformation adds there."""
    return z if kin.Xt is None else mv(kin.Xt, z) + shape


def onto_next(kin: Kinematics, shape: Float[Array, "B dim"]) -> Array:
    """What the deformation of a stage adds to the twist of the next one."""
    return (
        jnp.zeros_like(shape)
        if kin.tip is None
        else mv(kin.X, behind(shape, jnp.zeros_like(shape[0])))
    )


def tip_wrench(
    kin: Kinematics, W: Float[Array, "B dim"], rotors: Float[Array, "B dim"] | None
) -> Array:
    """What each body's tip section must give to the next stage and to the rotor that sits on it."""
    handed = mtv(kin.X, W) if rotors is None else mtv(kin.X, W) + rotors
    return jnp.concatenate([handed[1:], jnp.zeros_like(handed[:1])])


def spread(kin: Kinematics, start: Array, own: Float[Array, "B dim"]) -> Array:
    """The recursion z = X z_parent + own from ``start`` outwards, stacked."""

    def outwards(z, row):
        X, add = row
        z = jnp.sum(X * z[None, :], axis=1) + add
        return z, z

    return lax.scan(outwards, start, (kin.full, own))[1]


def gather(
    kin: Kinematics, own: Float[Array, "B dim"], rotors: Float[Array, "B dim"] | None
) -> tuple[Array, Array]:
    """The recursion W = own + (what the child hands over), tip to base: (W stacked, what the ground receives).

    A stage hands X^T W + ``rotors`` to the section that it hangs on."""
    if rotors is not None and kin.Xt is not None:
        rotors = mtv(behind(kin.Xt, jnp.eye(own.shape[1], dtype=own.dtype)), rotors)

    def inwards(carry, row):
        X, add, rotor = row
        W = carry + add
        handed = jnp.sum(X * W[:, None], axis=0)
        return handed if rotor is None else handed + rotor, W

    ground, W = lax.scan(inwards, jnp.zeros_like(own[0]), (kin.full, own, rotors), reverse=True)
    return W, ground
