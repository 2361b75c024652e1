"""A joint as a power-conserving interconnection of two ports: V_child = X V_parent + A y, and back X^T F to the parent, A^T F to the actuators.

X and A are those of a whole step from R*, q* by 2 h: products of rotations and levers change by the product rule, D(ab) = Da mean(b) + mean(a) Db, exactly, and
a rotation that turns by 2 h w about its middle R changes by 2 h sinc(h w) R w^. So the child's base arrives where the joint puts it, to rounding, in position
and in orientation, and X^T, A^T give back exactly the power that X, A take.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.formulation.port_hamiltonian._algebra import coad_of, mm, mv, rotate_by, sinc, turn_matrix
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


def _rotation(j: JointNumbers, q, ball):
    """Rotation parent -> child (in space) at coordinates q."""
    late = mm(se3.rotation_exp(j.second * q[1]), ball) if q.shape[0] > 1 else ball
    return mm(j.rotation, mm(se3.rotation_exp(j.first * q[0]), late))


_HATS = np.stack([np.cross(e, np.eye(3)).T for e in np.eye(3)])  # of the unit vectors


def _axial(m):
    """Axial vectors (3, n) of the skew parts of matrices (n, 3, 3)."""
    return 0.5 * jnp.stack([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]])


def _between(left, axes, right):
    """(n, 3, 3): left a^ right for the columns a of ``axes`` (3, n)."""
    hats = jnp.sum(jnp.asarray(_HATS, axes.dtype)[:, :, :, None] * axes[:, None, None, :], axis=0)
    return jnp.einsum("ij,jkn,kl->nil", left, hats, right)


def _turning(j: JointNumbers, s: JointStage, h, wp, rates):
    """(3, 3) and (3, k): angular velocity of the child over the step from that of the parent and from the joint's rates, in space."""
    k = rates.shape[0]
    q0, q1, unit = s.q, s.q + 2 * h * rates, jnp.eye(k, dtype=rates.dtype)
    wb = mv(j.ball, rates)
    # One factor of the joint's rotation after the other, from the child's end: its two ends, its change by each rate, per time.
    ball1, ball = rotate_by(s.ball, 2 * h * wb), rotate_by(s.ball, h * wb)
    late0, late1 = s.ball, ball1
    change = _between(sinc(h * wb) * ball, j.ball, jnp.eye(3, dtype=wb.dtype))
    for axis, c in ((j.second, 1), (j.first, 0)):
        if c >= k:
            continue
        a0, a1 = (se3.rotation_exp(axis * q[c]) for q in (q0, q1))
        own = sinc(h * rates[c] * axis) * se3.rotation_exp(axis * (q0[c] + h * rates[c]))
        mean = 0.5 * (late0 + late1)
        change = jnp.einsum("ij,njk->nik", 0.5 * (a0 + a1), change) + _between(own, axis[:, None] * unit[c][None], mean)
        late0, late1 = mm(a0, late0), mm(a1, late1)
    # The parent's own turn in front; the child's middle is half way along its own turn.
    joint0, joint1 = mm(j.rotation, late0), mm(j.rotation, late1)
    eye = jnp.eye(3, dtype=wp.dtype)
    parent, parent1 = rotate_by(eye, h * wp), rotate_by(eye, 2 * h * wp)
    half = 0.5 * se3.rotation_log(mm(joint0.T, mm(parent1, joint1)))
    back = rotate_by(joint0, half).T / sinc(half)
    by_parent = _axial(_between(mm(back, sinc(h * wp) * parent), eye, 0.5 * (joint0 + joint1)))
    by_rates = _axial(jnp.einsum("ij,njk->nik", mm(back, mm(0.5 * (eye + parent1), j.rotation)), change))
    return by_parent, by_rates


def maps(j: JointNumbers, s: JointStage, h, Vp, y):
    """(X, A) of the stage, for the parent's twist Vp (d,) and the joint's unknowns y (n,)."""
    k, lin = j.shift.shape[1], j.offset.shape[0]
    rates = y[:k]
    wp = Vp[lin:]
    if lin == 2:
        relative, columns = jnp.ones((1, 1), y.dtype), j.first[:, None] * jnp.eye(k, dtype=y.dtype)[:1]
    else:
        relative, columns = _turning(j, s, h, wp, rates)
    wc = mv(relative, wp) + mv(columns, rates)
    across = mm(rotate_by(s.child, h * wc).T, rotate_by(s.parent, h * wp))
    shift = mm(j.rotation, j.shift)
    lever = j.offset + mv(shift, s.q + h * rates)
    arm = sinc(h * wp) * _cross_matrix(lever)
    X = jnp.concatenate(
        [jnp.concatenate([across, -mm(across, arm)], axis=1), jnp.concatenate([jnp.zeros((relative.shape[0], lin), y.dtype), relative], axis=1)], axis=0
    )
    step = rotate_by(jnp.eye(lin, dtype=y.dtype), h * wp)
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
    mean, mean_slope = jnp.cos(h * wp[0]), -h * jnp.sin(h * wp[0])  # of the parent's rotation over the step
    sliding = mv(shift, y[:k])
    moving = Vp[:2] + factor * wp * side + mean * sliding
    first = jnp.eye(n, dtype=y.dtype)[:1]
    wide = ((0, 0), (0, n - k))
    # The angle between the two sides changes with the turning rate only: d across = -h turning J across dy.
    linear = mm(C, ((factor + slope * wp[0]) * side + mean_slope * sliding)[:, None])
    X = jnp.concatenate([jnp.concatenate([C, linear], axis=1), plain[2:]], axis=0)
    by_shift = jnp.pad(mm(C, mean * shift + h * factor * wp[0] * shifted), wide)
    B = jnp.concatenate([by_shift - h * turning * _turned(mv(C, moving))[:, None] * first, turning * first], axis=0)
    force = mv(C.T, F[:2])
    Y = plain.T
    E = jnp.zeros((3, 3), y.dtype).at[2, 2].set(slope * jnp.sum(side * force))
    swing = h * turning * _turned(force)
    last = jnp.pad((factor * h * mv(shifted.T, force))[None], wide) + factor * jnp.sum(side * swing) * first
    Z = jnp.concatenate([swing[:, None] * first, last], axis=0)
    T = jnp.pad(mean * mv(shift.T, swing)[:, None] * first, ((0, n - k), (0, 0)))
    S = jnp.zeros((n, 3), y.dtype).at[:k, 2].set(mean_slope * mv(shift.T, force))
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
    """(rotation, position) of the child's base from the parent's pose."""
    shift = mm(j.rotation, j.shift)
    x = parent_x + mv(parent_rotation, j.offset + mv(shift, q))
    if j.offset.shape[0] == 2:
        a = j.first[0] * q[0]
        return mm(parent_rotation, mm(j.rotation, turn_matrix(a[None]))), x
    return mm(parent_rotation, _rotation(j, q, ball)), x


