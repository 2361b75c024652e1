"""A joint as a power-conserving interconnection of two ports: V_child = X V_parent + A y, and back X^T F to the parent, A^T F to the actuators.

X and A are taken where the stage is (poses R* exp(h w), coordinates q* + h q'), so that a step moves the joint's two sides by the same vector:
R_child v_child = R_parent (v_parent + sinc(h w) w x lever). The factor sinc makes the lever's end travel exactly as the rotation by 2 h w does.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import coad_of, mm, mv, rotate_by, sinc
from flexjax.screw import se3


class JointNumbers(eqx.Module):
    """One joint (or all of them, stacked): placement in the axes of the parent's attachment node, axes of its turns in child axes, its shifts in
    placement axes (columns), columns of a ball; rotor inertia, which unknown turns it and how fast, and its axis in the parent's axes."""

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
    """What a stage starts from: plain coordinates (padded), the ball's rotation, rotations of the parent's node and of the child's base node,
    and the rotor's momentum."""

    q: Float[Array, " k"]
    ball: Float[Array, "D D"]
    parent: Float[Array, "D D"]
    child: Float[Array, "D D"]
    spin: Float[Array, ""]


def _turns(j: JointNumbers, q, ball):
    """Rotation parent -> child and the columns (a, k) of the relative angular velocity in child axes."""
    k = q.shape[0]
    unit = jnp.eye(k, dtype=q.dtype)
    if j.offset.shape[0] == 2:
        return None, j.first[:, None] * unit[0][None, :]
    late = ball
    if k > 1:
        late = mm(se3.rotation_exp(j.second * q[1]), ball)
    R = mm(j.rotation, mm(se3.rotation_exp(j.first * q[0]), late))
    columns = mv(late.T, j.first)[:, None] * unit[0][None, :] + j.ball
    if k > 1:
        columns = columns + mv(ball.T, j.second)[:, None] * unit[1][None, :]
    return R, columns


def maps(j: JointNumbers, s: JointStage, h, Vp, y):
    """(X, A) at the stage, for the parent's twist Vp (d,) and the joint's unknowns y (n,)."""
    k, lin = j.shift.shape[1], j.offset.shape[0]
    rates = y[:k]
    q = s.q + h * rates
    wp = Vp[lin:]
    if lin == 2:
        relative, columns = jnp.ones((1, 1), q.dtype), _turns(j, q, None)[1]
    else:
        ball = rotate_by(s.ball, h * mv(j.ball, rates))
        R, columns = _turns(j, q, ball)
        relative = R.T
    wc = mv(relative, wp) + mv(columns, rates)
    across = mm(rotate_by(s.child, h * wc).T, rotate_by(s.parent, h * wp))
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, q)
    arm = sinc(h * wp) * _cross_matrix(lever)
    X = jnp.concatenate(
        [jnp.concatenate([across, -mm(across, arm)], axis=1), jnp.concatenate([jnp.zeros((relative.shape[0], lin), q.dtype), relative], axis=1)], axis=0
    )
    A = jnp.concatenate([mm(across, shift), columns], axis=0)
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
    """(V_0, wrench that the parent gives away (d,), generalised forces that the joint's unknowns take (n,)) for the wrench F on the child."""
    X, A = maps(j, s, h, Vp, y)
    k = A.shape[1]
    V0 = mv(X, Vp) + mv(A, y[:k])
    given = mv(X.T, F)
    taken = jnp.concatenate([mv(A.T, F), jnp.zeros(y.shape[0] - k, F.dtype)])
    if rotors:
        spin = spin_of(j, Vp, y)
        rate = (spin - s.spin) / h
        axis = jnp.concatenate([jnp.zeros(j.offset.shape[0], F.dtype), j.rotor_axis])
        given = given + rate * axis - mv(coad_of(spin * axis), Vp)
        taken = taken + j.gears * rate
    return V0, given, taken


def derivatives(j: JointNumbers, s: JointStage, h, Vp, y, F, rotors: bool):
    """The derivatives of :func:`transmit` by (Vp, y, F), as ((X, B), (E, Z, Y), (S, T, A)). In the plane written out (seven tangents of a dozen small
    operations would be most of the program); in space by forward mode."""
    if j.offset.shape[0] == 3:
        (X, B, _), given, taken = jax.jacfwd(lambda Vp, y, F: transmit(j, s, h, Vp, y, F, rotors), argnums=(0, 1, 2))(Vp, y, F)
        return (X, B), given, taken
    n, k = y.shape[0], j.shift.shape[1]
    plain, A = maps(j, s, h, Vp, y)
    C, wp, turning = plain[:2, :2], Vp[2:], j.first[0]
    factor, slope = jax.jvp(lambda w: sinc(h * w), (wp,), (jnp.ones_like(wp),))
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * y[:k])
    side, shifted = _turned(lever), jax.vmap(_turned, in_axes=1, out_axes=1)(shift)
    moving = Vp[:2] + factor * wp * side + mv(shift, y[:k])
    first = jnp.eye(n, dtype=y.dtype)[:1]
    wide = ((0, 0), (0, n - k))
    # The angle between the two sides changes with the turning rate only: d across = -h turning J across dy.
    linear = mm(C, (factor + slope * wp[0]) * side[:, None])
    X = jnp.concatenate([jnp.concatenate([C, linear], axis=1), plain[2:]], axis=0)
    by_shift = jnp.pad(mm(C, shift + h * factor * wp[0] * shifted), wide)
    B = jnp.concatenate([by_shift - h * turning * _turned(mv(C, moving))[:, None] * first, turning * first], axis=0)
    force = mv(C.T, F[:2])
    Y = plain.T
    E = jnp.zeros((3, 3), y.dtype).at[2, 2].set(slope * jnp.sum(side * force))
    swing = h * turning * _turned(force)
    last = jnp.pad((factor * h * mv(shifted.T, force))[None], wide) + factor * jnp.sum(side * swing) * first
    Z = jnp.concatenate([swing[:, None] * first, last], axis=0)
    T = jnp.pad(mv(shift.T, swing)[:, None] * first, ((0, n - k), (0, 0)))
    S = jnp.zeros((n, 3), y.dtype)
    A = jnp.pad(A.T, ((0, n - k), (0, 0)))
    if rotors:
        axis = jnp.concatenate([jnp.zeros(2, y.dtype), j.rotor_axis])
        inertia = j.rotor / h
        E, Z = E + inertia * axis[:, None] * axis[None], Z + inertia * axis[:, None] * j.gears[None]
        S, T = S + inertia * j.gears[:, None] * axis[None], T + inertia * j.gears[:, None] * j.gears[None]
    return (X, B), (E, Z, Y), (S, T, A)


def _turned(p):
    return jnp.stack([-p[1], p[0]])


def base_twist(j: JointNumbers, s: JointStage, h, Vp, y):
    X, A = maps(j, s, h, Vp, y)
    return mv(X, Vp) + mv(A, y[: A.shape[1]])


def place(j: JointNumbers, q, ball, parent_rotation, parent_x):
    """Pose of the child's base from the parent's pose: (rotation, position, rotation in the joint alone)."""
    shift = mm(j.rotation, j.shift)
    x = parent_x + mv(parent_rotation, j.offset + mv(shift, q))
    if j.offset.shape[0] == 2:
        a = j.first[0] * q[0]
        turn = jnp.stack([jnp.stack([jnp.cos(a), -jnp.sin(a)]), jnp.stack([jnp.sin(a), jnp.cos(a)])])
        return mm(parent_rotation, mm(j.rotation, turn)), x
    return mm(parent_rotation, _turns(j, q, ball)[0]), x


