"""A joint as a power-conserving interconnection of two ports: V_child = X V_parent + A y, and back
X^T F to the parent, A^T F to the actuators.

X and A are those of a whole step from R*, q* by 2 h. Products of rotations and levers change by the
product rule, D(ab) = Da mean(b) + mean(a) Db, exactly. A rotation that moves by 2 h w about its
middle R changes by 2 h sinc(h w) R w^. So the child's base ends on its joint to rounding, in
position and in orientation, and X^T, A^T return exactly the power that X, A take.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax._types import Scalar
from flexjax.numerics.linalg._components_first import mm, mtv, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import coad, orientation_matrix, rotate_by, sinc
from flexjax.numerics.screw._stumpff import stumpff

Twist = Float[Array, " d"]
Matrix = Float[Array, "D D"]


class JointParameters(eqx.Module):
    """One joint, or all of them stacked over the links.

    Placement in the axes of the parent's attachment node, rotation axes in child axes, shifts in
    placement axes (columns), columns of a ball; rotor inertia, the gear ratios of the unknowns that
    move it, and its axis in the parent's axes.
    """

    rotation: Matrix
    offset: Float[Array, " D"]
    first: Float[Array, " a"]
    second: Float[Array, " a"]
    shift: Float[Array, "D k"]
    ball: Float[Array, "a k"]
    rotor: Float[Array, ""]
    gears: Float[Array, " n"]
    rotor_axis: Float[Array, " a"]

    def rotor_screw(self) -> Twist:
        """The axis of the rotor as a twist [0; axis]."""
        return jnp.concatenate([jnp.zeros_like(self.offset), self.rotor_axis])


class JointStage(eqx.Module):
    """Start of a stage: plain coordinates (padded), rotation of the ball, rotations of the parent's
    node and of the child's base node, angular momentum of the rotor."""

    q: Float[Array, " k"]
    ball: Matrix
    parent: Matrix
    child: Matrix
    spin: Float[Array, ""]


def _rotation(j: JointParameters, q: Float[Array, " k"], ball: Matrix) -> Matrix:
    """Rotation from parent to child in space at coordinates q."""
    if q.shape[0] == 1:
        return mm(j.rotation, mm(se3.rotation_exp(j.first * q[0]), ball))
    (first, second), _ = _exponentials(jnp.stack([j.first * q[0], j.second * q[1]]))
    return mm(j.rotation, mm(first, mm(second, ball)))


_HATS = np.stack([np.cross(e, np.eye(3)).T for e in np.eye(3)])  # of the unit vectors


def _axial(m: Float[Array, "n 3 3"]) -> Float[Array, "3 n"]:
    """Axial vectors of the skew parts of matrices."""
    return 0.5 * jnp.stack(
        [m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]]
    )


def _between(left: Matrix, axes: Float[Array, "3 n"], right: Matrix) -> Float[Array, "n 3 3"]:
    """left a^ right for the columns a of ``axes``."""
    hats = jnp.sum(jnp.asarray(_HATS, axes.dtype)[:, :, :, None] * axes[:, None, None, :], axis=0)
    return jnp.einsum("ij,jkn,kl->nil", left, hats, right)


def _exponentials(w: Float[Array, "n 3"]) -> tuple[Float[Array, "n 3 3"], Float[Array, " n"]]:
    """(exp(w), sin|w|/|w|) of rotation vectors, in one call that is traced and compiled once."""

    def one(w):
        c0, c1, c2 = stumpff(jnp.sum(w * w), 2)
        return c0 * jnp.eye(3, dtype=w.dtype) + c1 * se3.skew(w) + c2 * w[:, None] * w[None], c1

    return jax.vmap(one)(w)


def _angular_maps(
    j: JointParameters, s: JointStage, h: Scalar, wp: Array, rates: Float[Array, " k"]
) -> tuple[Matrix, Float[Array, "3 k"], Matrix, Scalar]:
    """Maps to the child's angular velocity over the step, in space: from that of the parent (3, 3)
    and from the joint's rates (3, k); rotation of the parent in half of the step, and its sinc."""
    k = rates.shape[0]
    unit = jnp.eye(k, dtype=rates.dtype)
    wb = mv(j.ball, rates)
    axes = [(j.second, 1), (j.first, 0)][-min(k, 2) :]
    # Rotations of the joint's axes at the start, and by half of the step.
    E, c = _exponentials(
        jnp.stack([h * wp, h * wb, *(v * axis for axis, i in axes for v in (s.q[i], h * rates[i]))])
    )
    # The factors of the joint's rotation, from the child's end: value at both ends of the step,
    # and change with each rate per time.
    ball = mm(s.ball, E[1])
    late0, late1 = s.ball, mm(ball, E[1])
    change = _between(c[1] * ball, j.ball, jnp.eye(3, dtype=wb.dtype))
    for n, (axis, i) in enumerate(axes):
        a0, half = E[2 + 2 * n], E[3 + 2 * n]
        middle = mm(a0, half)
        a1, own = mm(middle, half), c[3 + 2 * n] * middle
        mean = 0.5 * (late0 + late1)
        change = jnp.einsum("ij,njk->nik", 0.5 * (a0 + a1), change) + _between(
            own, axis[:, None] * unit[i][None], mean
        )
        late0, late1 = mm(a0, late0), mm(a1, late1)
    # The parent's rotation in front. The child's middle is half way along its own rotation.
    joint0, joint1 = mm(j.rotation, late0), mm(j.rotation, late1)
    eye, parent = jnp.eye(3, dtype=wp.dtype), E[0]
    parent1 = mm(parent, parent)
    (way,), (shrink,) = _exponentials(
        0.5 * se3.rotation_log(mm(joint0.T, mm(parent1, joint1)))[None]
    )
    back = mm(joint0, way).T / shrink
    from_parent = _axial(_between(mm(back, c[0] * parent), eye, 0.5 * (joint0 + joint1)))
    from_rates = _axial(
        jnp.einsum("ij,njk->nik", mm(back, mm(0.5 * (eye + parent1), j.rotation)), change)
    )
    return from_parent, from_rates, parent, c[0]


@jax.jit
def maps(
    j: JointParameters, s: JointStage, h: Scalar | None, Vp: Twist, y: Float[Array, " n"]
) -> tuple[Float[Array, "d d"], Float[Array, "d k"]]:
    """(X, A) of the stage, for the parent's twist Vp (d,) and the joint's unknowns y (n,); those
    of an instant without ``h``."""
    k, lin = j.shift.shape[1], j.offset.shape[0]
    if h is None and lin == 2:
        return _planar_maps(j, s)
    h = jnp.zeros((), y.dtype) if h is None else h
    rates = y[:k]
    wp = Vp[lin:]
    if lin == 2:
        relative, columns = (
            jnp.ones((1, 1), y.dtype),
            j.first[:, None] * jnp.eye(k, dtype=y.dtype)[:1],
        )
        step, shrink = rotate_by(jnp.eye(lin, dtype=y.dtype), h * wp), sinc(h * wp)[0]
        parent = rotate_by(s.parent, h * wp)
    else:
        relative, columns, step, shrink = _angular_maps(j, s, h, wp, rates)
        parent = mm(s.parent, step)
    wc = mv(relative, wp) + mv(columns, rates)
    across = mm(rotate_by(s.child, h * wc).T, parent)
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * rates)
    A = jnp.concatenate([mm(across, mm(0.5 * (step + step.T), shift)), columns], axis=0)
    return _carried(across, shrink * lever, relative), A


def _planar_maps(
    j: JointParameters, s: JointStage
) -> tuple[Float[Array, "d d"], Float[Array, "d k"]]:
    """:func:`maps` of an instant in the plane."""
    across, shift = mm(s.child.T, s.parent), mm(j.rotation, j.shift)
    columns = j.first[:, None] * jnp.eye(shift.shape[1], dtype=shift.dtype)[:1]
    A = jnp.concatenate([mm(across, shift), columns], axis=0)
    lever = j.offset + mv(shift, s.q)
    return _carried(across, lever, jnp.ones((1, 1), lever.dtype)), A


def _carried(
    across: Matrix, lever: Float[Array, " D"], relative: Float[Array, "a a"]
) -> Float[Array, "d d"]:
    """The map of the parent's twist to a point at ``lever``, in the child's axes."""
    below = jnp.zeros((relative.shape[0], lever.shape[0]), lever.dtype)
    upper = jnp.concatenate([across, -mm(across, _cross_matrix(lever))], axis=1)
    return jnp.concatenate([upper, jnp.concatenate([below, relative], axis=1)], axis=0)


def _cross_matrix(o: Float[Array, " D"]) -> Float[Array, "D a"]:
    """The matrix of o x w as a function of w."""
    if o.shape[0] == 2:
        return jnp.stack([o[1], -o[0]])[:, None]
    return jax.vmap(lambda e: jnp.cross(o, e))(jnp.eye(3, dtype=o.dtype)).T


def spin_of(j: JointParameters, Vp: Twist, y: Float[Array, " n"]) -> Scalar:
    """Angular momentum of the rotor about its axis."""
    return j.rotor * (jnp.sum(j.rotor_axis * Vp[j.offset.shape[0] :]) + jnp.sum(j.gears * y))


def transmit(
    j: JointParameters,
    s: JointStage,
    h: Scalar,
    Vp: Twist,
    y: Float[Array, " n"],
    F: Twist,
    rotors: bool,
) -> tuple[Twist, Twist, Float[Array, " n"]]:
    """(V_0, wrench of the parent on the joint, generalised forces on the joint's unknowns (n,)) for
    the wrench F on the child."""
    X, A = maps(j, s, h, Vp, y)
    return mv(X, Vp) + mv(A, y[: A.shape[1]]), *joint_wrenches(j, s, h, Vp, y, F, (X, A), rotors)


def joint_wrenches(
    j: JointParameters,
    s: JointStage,
    h: Scalar,
    Vp: Twist,
    y: Float[Array, " n"],
    F: Twist,
    XA: tuple[Array, Array],
    rotors: bool,
) -> tuple[Twist, Float[Array, " n"]]:
    """The wrench and the generalised forces of :func:`transmit` for known maps (X, A)."""
    X, A = XA
    k = A.shape[1]
    on_parent = mtv(X, F)
    on_joint = jnp.concatenate([mtv(A, F), jnp.zeros(y.shape[0] - k, F.dtype)])
    if rotors:
        spin = spin_of(j, Vp, y)
        rate = (spin - s.spin) / h
        axis = j.rotor_screw()
        on_parent = on_parent + rate * axis - mv(coad(spin * axis), Vp)
        on_joint = on_joint + j.gears * rate
    return on_parent, on_joint


def derivatives(
    j: JointParameters,
    s: JointStage,
    h: Scalar,
    Vp: Twist,
    y: Float[Array, " n"],
    F: Twist,
    rotors: bool,
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Derivatives of :func:`transmit` with respect to (Vp, y, F): ((X, B), (E, Z, Y), (S, T, A)).

    In space by forward mode; in the plane written out, because seven tangents of a dozen small
    operations would be most of the program.
    """
    if j.offset.shape[0] == 2:
        return _planar_derivatives(j, s, h, Vp, y, F, rotors)
    (X, B, _), on_parent, on_joint = jax.jacfwd(
        lambda Vp, y, F: transmit(j, s, h, Vp, y, F, rotors), argnums=(0, 1, 2)
    )(Vp, y, F)
    return (X, B), on_parent, on_joint


def _planar_derivatives(
    j: JointParameters,
    s: JointStage,
    h: Scalar,
    Vp: Twist,
    y: Float[Array, " n"],
    F: Twist,
    rotors: bool,
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    n, k = y.shape[0], j.shift.shape[1]
    plain, A = maps(j, s, h, Vp, y)
    C, wp, rotates = plain[:2, :2], Vp[2:], j.first[0]
    factor, slope = jax.jvp(lambda w: sinc(h * w)[0], (wp,), (jnp.ones_like(wp),))
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * y[:k])
    side, shifted = _quarter(lever), _quarter(shift)
    # Mean of the parent's rotation over the step, and its slope.
    mean, mean_slope = jnp.cos(h * wp[0]), -h * jnp.sin(h * wp[0])
    sliding = mv(shift, y[:k])
    moving = Vp[:2] + factor * wp * side + mean * sliding
    first = jnp.eye(n, dtype=y.dtype)[:1]
    wide = ((0, 0), (0, n - k))
    # The angle between the two sides changes with the rate of rotation only:
    # d across = -h rotates J across dy.
    linear = mm(C, ((factor + slope * wp[0]) * side + mean_slope * sliding)[:, None])
    X = jnp.concatenate([jnp.concatenate([C, linear], axis=1), plain[2:]], axis=0)
    from_shift = jnp.pad(mm(C, mean * shift + h * factor * wp[0] * shifted), wide)
    sideways = h * rotates * _quarter(mv(C, moving))[:, None] * first
    B = jnp.concatenate([from_shift - sideways, rotates * first], axis=0)
    force = mtv(C, F[:2])
    Y = plain.T
    E = jnp.zeros((3, 3), y.dtype).at[2, 2].set(slope * jnp.sum(side * force))
    swing = h * rotates * _quarter(force)
    last = (
        jnp.pad((factor * h * mtv(shifted, force))[None], wide)
        + factor * jnp.sum(side * swing) * first
    )
    Z = jnp.concatenate([swing[:, None] * first, last], axis=0)
    T = jnp.pad(mean * mtv(shift, swing)[:, None] * first, ((0, n - k), (0, 0)))
    S = jnp.zeros((n, 3), y.dtype).at[:k, 2].set(mean_slope * mtv(shift, force))
    A = jnp.pad(A.T, ((0, n - k), (0, 0)))
    if rotors:
        axis, gears, inertia = j.rotor_screw(), j.gears, j.rotor / h
        E = E + inertia * axis[:, None] * axis[None]
        Z = Z + inertia * axis[:, None] * gears[None]
        S = S + inertia * gears[:, None] * axis[None]
        T = T + inertia * gears[:, None] * gears[None]
    return (X, B), (E, Z, Y), (S, T, A)


def _quarter(p: Float[Array, "2 *n"]) -> Float[Array, "2 *n"]:
    """Vectors rotated by a quarter of a revolution."""
    return jnp.stack([-p[1], p[0]])


def base_twist(
    j: JointParameters, s: JointStage, h: Scalar | None, Vp: Twist, y: Float[Array, " n"]
) -> Twist:
    """Twist of the child's base node."""
    X, A = maps(j, s, h, Vp, y)
    return mv(X, Vp) + mv(A, y[: A.shape[1]])


def outward(
    parents: tuple[int, ...],
    order: tuple[int, ...],
    rigid: tuple[bool, ...],
    j: JointParameters,
    s: JointStage,
    h: Scalar | None,
    ground: Twist,
    y: Float[Array, "L n"],
    tip: Callable[..., Twist],
    *rows: Array,
) -> tuple[Float[Array, "d L"], Float[Array, "d L"]]:
    """(twists of the base nodes, twists of the parents' attachment nodes), from the ground on.

    The children of link i move with ``tip(V_0, whether the link is rigid, *rows[i])``.
    """
    if ground.shape[0] == 3:
        # Joints in the plane are a few operations, which XLA fuses. In space they are hundreds; a
        # loop is compiled once.
        base: dict[int, Array] = {}
        ends: dict[int, Array] = {}
        below: dict[int, Array] = {}
        for i in order:
            below[i] = ground if parents[i] < 0 else ends[parents[i]]
            own, stage = pick((j, s), i)
            base[i] = base_twist(own, stage, h, below[i], y[i])
            ends[i] = tip(base[i], rigid[i], *(x[i] for x in rows))
        return stack_links(base), stack_links(below)
    links, places = len(parents), np.array(order)
    from_links = np.array([links if parents[i] < 0 else parents[i] for i in order])

    def step(tips, row):
        i, parent, is_rigid, j, s, y, *rest = row
        Vp = tips[parent]
        V0 = base_twist(j, s, h, Vp, y)
        return tips.at[i].set(tip(V0, is_rigid, *rest)), (V0, Vp)

    start = jnp.zeros((links + 1, ground.shape[0]), ground.dtype).at[-1].set(ground)
    static = (jnp.asarray(places), jnp.asarray(from_links), jnp.asarray(np.array(rigid)[places]))
    traced = jax.tree.map(lambda x: x[places], (j, s, y, *rows))
    V0, Vp = lax.scan(step, start, (*static, *traced))[1]
    back = np.argsort(places)
    return V0[back].T, Vp[back].T


def stack_links(by_link: dict[int, Array]) -> Array:
    """Arrays of the links in robot order, along the last axis."""
    return jnp.stack([by_link[i] for i in range(len(by_link))], axis=-1)


def pick(tree: PyTree, i: int | slice):
    """Entry ``i``, or the entries of a slice, of stacked records."""
    return jax.tree.map(lambda x: x[i], tree)


@jax.jit
def relative(
    j: JointParameters, q: Float[Array, " k"], ball: Matrix
) -> tuple[Matrix, Float[Array, " D"]]:
    """(rotation, position) of the child's base in the axes of the parent's node."""
    x = j.offset + mv(mm(j.rotation, j.shift), q)
    if j.offset.shape[0] == 2:
        return mm(j.rotation, orientation_matrix(j.first[:1] * q[:1])), x
    return _rotation(j, q, ball), x


def place(
    j: JointParameters, q: Float[Array, " k"], ball: Matrix, R: Matrix, x: Float[Array, " D"]
) -> tuple[Matrix, Float[Array, " D"]]:
    """(rotation, position) of the child's base, from those of the parent's node."""
    rotation, lever = relative(j, q, ball)
    return mm(R, rotation), x + mv(R, lever)
