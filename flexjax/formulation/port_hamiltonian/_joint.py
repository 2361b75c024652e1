"""A joint as a power-conserving interconnection of two ports: V_child = X V_parent + A y, and back
X^T F to the parent, A^T F to the actuators.

X and A are those of a whole step from R*, q* by 2 h: products of rotations and levers change by the
product rule, D(ab) = Da mean(b) + mean(a) Db, exactly, and a rotation that turns by 2 h w about its
middle R changes by 2 h sinc(h w) R w^. So the child's base arrives where the joint puts it, to
rounding, in position and in orientation, and X^T, A^T give back exactly the power that X, A take.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import coad_of, rotate_by, sinc, turn_matrix
from flexjax.formulation.port_hamiltonian._structure import Structure, stacked
from flexjax.numerics.linalg import mm, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._stumpff import stumpff


class JointNumbers(eqx.Module):
    """One joint (or all of them, stacked): placement in the axes of the parent's attachment node,
    axes of its turns in child axes, its shifts in placement axes (columns), columns of a ball;
    rotor inertia, which unknown turns it and how fast, and its axis in the parent's axes."""

    rotation: Float[Array, "D D"]
    offset: Float[Array, " D"]
    first: Float[Array, " a"]
    second: Float[Array, " a"]
    shift: Float[Array, "D k"]
    ball: Float[Array, "a k"]
    rotor: Float[Array, ""]
    gears: Float[Array, " n"]
    rotor_axis: Float[Array, " a"]


class JointStage(eqx.Module):
    """What a stage starts from: plain coordinates (padded), the ball's rotation, rotations of the
    parent's node and of the child's base node, and the rotor's momentum."""

    q: Float[Array, " k"]
    ball: Float[Array, "D D"]
    parent: Float[Array, "D D"]
    child: Float[Array, "D D"]
    spin: Float[Array, ""]


def _rotation(j: JointNumbers, q, ball):
    """Rotation parent -> child (in space) at coordinates q."""
    if q.shape[0] == 1:
        return mm(j.rotation, mm(se3.rotation_exp(j.first * q[0]), ball))
    (first, second), _ = _turns(jnp.stack([j.first * q[0], j.second * q[1]]))
    return mm(j.rotation, mm(first, mm(second, ball)))


_HATS = np.stack([np.cross(e, np.eye(3)).T for e in np.eye(3)])  # of the unit vectors


def _axial(m):
    """Axial vectors (3, n) of the skew parts of matrices (n, 3, 3)."""
    return 0.5 * jnp.stack(
        [m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]]
    )


def _between(left, axes, right):
    """(n, 3, 3): left a^ right for the columns a of ``axes`` (3, n)."""
    hats = jnp.sum(jnp.asarray(_HATS, axes.dtype)[:, :, :, None] * axes[:, None, None, :], axis=0)
    return jnp.einsum("ij,jkn,kl->nil", left, hats, right)


def _turns(w):
    """(exp(w) (n, 3, 3), sin|w|/|w| (n,)) of rotation vectors (n, 3): all that can be known at once
    in one call, which is traced and compiled once."""

    def one(w):
        c0, c1, c2 = stumpff(jnp.sum(w * w), 2)
        return c0 * jnp.eye(3, dtype=w.dtype) + c1 * se3.skew(w) + c2 * w[:, None] * w[None], c1

    return jax.vmap(one)(w)


def _turning(j: JointNumbers, s: JointStage, h, wp, rates):
    """(3, 3) and (3, k): angular velocity of the child over the step from that of the parent and
    from the joint's rates, in space; and how the parent turns in half of the step, (its rotation,
    its sinc)."""
    k = rates.shape[0]
    unit = jnp.eye(k, dtype=rates.dtype)
    wb = mv(j.ball, rates)
    axes = [(j.second, 1), (j.first, 0)][-min(k, 2) :]
    # Where the joint's turns begin, and how far they go in half of the step.
    E, c = _turns(
        jnp.stack([h * wp, h * wb, *(v * axis for axis, i in axes for v in (s.q[i], h * rates[i]))])
    )
    # One factor of the joint's rotation after the other, from the child's end: its two ends, its
    # change by each rate, per time.
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
    # The parent's own turn in front; the child's middle is half way along its own turn.
    joint0, joint1 = mm(j.rotation, late0), mm(j.rotation, late1)
    eye, parent = jnp.eye(3, dtype=wp.dtype), E[0]
    parent1 = mm(parent, parent)
    (way,), (shrink,) = _turns(0.5 * se3.rotation_log(mm(joint0.T, mm(parent1, joint1)))[None])
    back = mm(joint0, way).T / shrink
    by_parent = _axial(_between(mm(back, c[0] * parent), eye, 0.5 * (joint0 + joint1)))
    by_rates = _axial(
        jnp.einsum("ij,njk->nik", mm(back, mm(0.5 * (eye + parent1), j.rotation)), change)
    )
    return by_parent, by_rates, parent, c[0]


def maps(j: JointNumbers, s: JointStage, h, Vp, y):
    """(X, A) of the stage, for the parent's twist Vp (d,) and the joint's unknowns y (n,)."""
    k, lin = j.shift.shape[1], j.offset.shape[0]
    rates = y[:k]
    wp = Vp[lin:]
    if lin == 2:
        relative, columns = (
            jnp.ones((1, 1), y.dtype),
            j.first[:, None] * jnp.eye(k, dtype=y.dtype)[:1],
        )
        step, shrink = rotate_by(jnp.eye(lin, dtype=y.dtype), h * wp), sinc(h * wp)
        parent = rotate_by(s.parent, h * wp)
    else:
        relative, columns, step, shrink = _turning(j, s, h, wp, rates)
        parent = mm(s.parent, step)
    wc = mv(relative, wp) + mv(columns, rates)
    across = mm(rotate_by(s.child, h * wc).T, parent)
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * rates)
    arm = shrink * _cross_matrix(lever)
    X = jnp.concatenate(
        [
            jnp.concatenate([across, -mm(across, arm)], axis=1),
            jnp.concatenate([jnp.zeros((relative.shape[0], lin), y.dtype), relative], axis=1),
        ],
        axis=0,
    )
    A = jnp.concatenate([mm(across, mm(0.5 * (step + step.T), shift)), columns], axis=0)
    return X, A


def _cross_matrix(o):
    """(lin, a): the matrix of o x w as a function of w."""
    if o.shape[0] == 2:
        return jnp.stack([o[1], -o[0]])[:, None]
    return jax.vmap(lambda e: jnp.cross(o, e))(jnp.eye(3, dtype=o.dtype)).T


def spin_of(j: JointNumbers, Vp, y):
    """Angular momentum of the rotor about its axis."""
    return j.rotor * (jnp.sum(j.rotor_axis * Vp[j.offset.shape[0] :]) + jnp.sum(j.gears * y))


def transmit(j: JointNumbers, s: JointStage, h, Vp, y, F, rotors: bool):
    """(V_0, wrench that the parent gives away (d,), generalised forces that the joint's unknowns
    take (n,)) for the wrench F on the child."""
    X, A = maps(j, s, h, Vp, y)
    return mv(X, Vp) + mv(A, y[: A.shape[1]]), *hand_on(j, s, h, Vp, y, F, (X, A), rotors)


def hand_on(j: JointNumbers, s: JointStage, h, Vp, y, F, ways, rotors: bool):
    """The wrench and the generalised forces of :func:`transmit`, where the maps ``ways`` = (X, A)
    are known."""
    X, A = ways
    k = A.shape[1]
    given = mv(X.T, F)
    taken = jnp.concatenate([mv(A.T, F), jnp.zeros(y.shape[0] - k, F.dtype)])
    if rotors:
        spin = spin_of(j, Vp, y)
        rate = (spin - s.spin) / h
        axis = jnp.concatenate([jnp.zeros(j.offset.shape[0], F.dtype), j.rotor_axis])
        given = given + rate * axis - mv(coad_of(spin * axis), Vp)
        taken = taken + j.gears * rate
    return given, taken


def derivatives(j: JointNumbers, s: JointStage, h, Vp, y, F, rotors: bool):
    """The derivatives of :func:`transmit` by (Vp, y, F), as ((X, B), (E, Z, Y), (S, T, A)). In the
    plane written out (seven tangents of a dozen small operations would be most of the program); in
    space by forward mode."""
    if j.offset.shape[0] == 3:
        (X, B, _), given, taken = jax.jacfwd(
            lambda Vp, y, F: transmit(j, s, h, Vp, y, F, rotors), argnums=(0, 1, 2)
        )(Vp, y, F)
        return (X, B), given, taken
    n, k = y.shape[0], j.shift.shape[1]
    plain, A = maps(j, s, h, Vp, y)
    C, wp, turning = plain[:2, :2], Vp[2:], j.first[0]
    factor, slope = jax.jvp(lambda w: sinc(h * w), (wp,), (jnp.ones_like(wp),))
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * y[:k])
    side, shifted = _turned(lever), jax.vmap(_turned, in_axes=1, out_axes=1)(shift)
    mean, mean_slope = (
        jnp.cos(h * wp[0]),
        -h * jnp.sin(h * wp[0]),
    )  # of the parent's rotation over the step
    sliding = mv(shift, y[:k])
    moving = Vp[:2] + factor * wp * side + mean * sliding
    first = jnp.eye(n, dtype=y.dtype)[:1]
    wide = ((0, 0), (0, n - k))
    # The angle between the two sides changes with the turning rate only: d across = -h turning J
    # across dy.
    linear = mm(C, ((factor + slope * wp[0]) * side + mean_slope * sliding)[:, None])
    X = jnp.concatenate([jnp.concatenate([C, linear], axis=1), plain[2:]], axis=0)
    by_shift = jnp.pad(mm(C, mean * shift + h * factor * wp[0] * shifted), wide)
    B = jnp.concatenate(
        [by_shift - h * turning * _turned(mv(C, moving))[:, None] * first, turning * first], axis=0
    )
    force = mv(C.T, F[:2])
    Y = plain.T
    E = jnp.zeros((3, 3), y.dtype).at[2, 2].set(slope * jnp.sum(side * force))
    swing = h * turning * _turned(force)
    last = (
        jnp.pad((factor * h * mv(shifted.T, force))[None], wide)
        + factor * jnp.sum(side * swing) * first
    )
    Z = jnp.concatenate([swing[:, None] * first, last], axis=0)
    T = jnp.pad(mean * mv(shift.T, swing)[:, None] * first, ((0, n - k), (0, 0)))
    S = jnp.zeros((n, 3), y.dtype).at[:k, 2].set(mean_slope * mv(shift.T, force))
    A = jnp.pad(A.T, ((0, n - k), (0, 0)))
    if rotors:
        axis = jnp.concatenate([jnp.zeros(2, y.dtype), j.rotor_axis])
        inertia = j.rotor / h
        E, Z = E + inertia * axis[:, None] * axis[None], Z + inertia * axis[:, None] * j.gears[None]
        S, T = (
            S + inertia * j.gears[:, None] * axis[None],
            T + inertia * j.gears[:, None] * j.gears[None],
        )
    return (X, B), (E, Z, Y), (S, T, A)


def _turned(p):
    return jnp.stack([-p[1], p[0]])


def base_twist(j: JointNumbers, s: JointStage, h, Vp, y):
    X, A = maps(j, s, h, Vp, y)
    return mv(X, Vp) + mv(A, y[: A.shape[1]])


def base_twists(st: Structure, j: JointNumbers, s: JointStage, h, ground, y, ends):
    """(twists of all base nodes (L, d), twists that the joints hang on (L, d)) from the joints'
    unknowns (L, n) and the twists of the last nodes (L, d)."""
    if not any(st.rigid):
        parents = jnp.concatenate([ends, ground[None]])[np.array(st.parents)]
        return jax.vmap(lambda j, s, Vp, y: base_twist(j, s, h, Vp, y))(j, s, parents, y), parents

    def tip(V0, rigid, end):
        return jnp.where(rigid, V0, end)

    return along_tree(st, j, s, h, ground, y, tip, ends)


def along_tree(st: Structure, j: JointNumbers, s: JointStage, h, ground, y, tip, *rows):
    """The same where what a link's children hang on is ``tip(V_0, whether the link is rigid,
    *rows[i])``, from the ground outwards."""
    if st.planar:
        # Joints in the plane are a few operations, which XLA fuses; in space they are hundreds, and
        # a loop is compiled once.
        base: dict[int, Array] = {}
        ends: dict[int, Array] = {}
        hung: dict[int, Array] = {}
        for i in st.order:
            hung[i] = ground if st.parents[i] < 0 else ends[st.parents[i]]
            own, stage = jax.tree_util.tree_map(lambda x, i=i: x[i], (j, s))
            base[i] = base_twist(own, stage, h, hung[i], y[i])
            ends[i] = tip(base[i], st.rigid[i], *(x[i] for x in rows))
        return stacked(base), stacked(hung)
    order = np.array(st.order)
    parents = np.array([st.links if st.parents[i] < 0 else st.parents[i] for i in st.order])

    def outwards(tips, row):
        i, parent, rigid, j, s, y, *rest = row
        Vp = tips[parent]
        V0 = base_twist(j, s, h, Vp, y)
        return tips.at[i].set(tip(V0, rigid, *rest)), (V0, Vp)

    start = jnp.zeros((st.links + 1, ground.shape[0]), ground.dtype).at[-1].set(ground)
    sorted_rows = jax.tree_util.tree_map(lambda x: x[order], (j, s, y, *rows))
    V0, arriving = lax.scan(
        outwards,
        start,
        (
            jnp.asarray(order),
            jnp.asarray(parents),
            jnp.asarray(np.array(st.rigid)[order]),
            *sorted_rows,
        ),
    )[1]
    back = np.argsort(order)
    return V0[back], arriving[back]


def relative(j: JointNumbers, q, ball):
    """(rotation, position) of the child's base seen from the parent's node."""
    x = j.offset + mv(mm(j.rotation, j.shift), q)
    if j.offset.shape[0] == 2:
        a = j.first[0] * q[0]
        return mm(j.rotation, turn_matrix(a[None])), x
    return _rotation(j, q, ball), x


def place(j: JointNumbers, q, ball, parent_rotation, parent_x):
    """(rotation, position) of the child's base from the parent's pose."""
    R, x = relative(j, q, ball)
    return mm(parent_rotation, R), parent_x + mv(parent_rotation, x)
