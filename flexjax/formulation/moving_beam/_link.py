"""The moving, length-variable beam: a mesh X(d) that follows the lengths d, layers of material that run through it, fields as polynomials in xi.

Material of a layer runs at the speed v along the axis; seen from an element that begins at X_a and has the length l it passes at
c = v - X_a' - xi l', so that a field with coefficients U(t) in xi has the material rate  D/Dt = dU/dt + (c/l) dU/dxi.  All velocities are cubic in xi and
linear in the generalised velocities, and every integral over the length is exact.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam._polynomial import hilbert
from flexjax.formulation.moving_beam._generator import CUBIC_COEFFICIENTS, Tables, letter_polynomials, strain_energy

_H4, _H3, _H5 = hilbert(4, 4), hilbert(3, 3), hilbert(5, 5)
_DERIVATIVE = np.diag([1.0, 2.0, 3.0], 1)
_MEAN = np.array([1.0, 1 / 2, 1 / 3, 1 / 4])


class Arm(eqx.Module):
    """Numbers of the elastic arm: n elements, up to k layers in each, m lengths. Positions are affine in the lengths: X = start + slope @ d."""

    start: Float[Array, " n+1"]
    slope: Float[Array, "n+1 m"]
    stiffness: Float[Array, "n 4"]  # EA, GJ, EIy, EIz, summed over layers
    viscosity: Float[Array, "n 4"]  # the same times the layers' strain-rate time
    rhoA: Float[Array, "n k"]
    rhoI: Float[Array, "n k 3"]  # polar, about y, about z
    drag: Float[Array, "n k"]  # mass-proportional damping times rhoA
    speed: Float[Array, "n k m"]  # v = speed @ d'
    tube_start: Float[Array, " tubes"]  # rear ends of the tubes
    tube_slope: Float[Array, "tubes m"]
    tube_length: Float[Array, " tubes"]
    rear: Float[Array, " 4"] | None  # rhoA and rhoI of the part of a sliding tube behind its joint
    viscous: bool = eqx.field(static=True)
    dragged: bool = eqx.field(static=True)

    def mesh(self, d: Float[Array, " m"]) -> tuple[Array, Array]:
        """Starts and lengths of the elements."""
        X = self.start + self.slope @ d
        return X[:-1], jnp.diff(X)


class Rates(eqx.Module):
    """What moves: the frame's twist [linear; angular] in its own axes, the lengths, the unknowns of the elements."""

    twist: Float[Array, " 6"]
    d: Float[Array, " m"]
    y: Float[Array, "n 2*node+2"]


def element_unknowns(x: Float[Array, " n*(node+2)"], n: int, node: int) -> Float[Array, "n 2*node+2"]:
    """[inner node, outer node, axial slopes] of every element; the first node is clamped to the joint frame."""
    table = x.reshape(n, node + 2)
    outer = table[:, :node]
    inner = jnp.concatenate([jnp.zeros((1, node), x.dtype), outer[:-1]])
    return jnp.concatenate([inner, outer, table[:, node:]], axis=1)


def fields(y: Float[Array, " 2*node+2"], length) -> tuple[Float[Array, "4 3"], Float[Array, " 2"]]:
    """Coefficients in xi of (ux, uy, uz) and of the twist, from the unknowns of one element."""
    node = (y.shape[0] - 2) // 2
    i, o, s = y[:node], y[node : 2 * node], y[2 * node :]
    ux = jnp.stack([i[0], length * s[0], o[0], length * s[1]])
    if node == 3:
        uy = jnp.stack([i[1], length * i[2], o[1], length * o[2]])
        uz, twist = jnp.zeros_like(uy), jnp.zeros(2, y.dtype)
    else:
        uy = jnp.stack([i[2], length * i[3], o[2], length * o[3]])
        uz = jnp.stack([i[4], length * i[5], o[4], length * o[5]])
        twist = jnp.stack([i[1], o[1] - i[1]])
    return jnp.asarray(CUBIC_COEFFICIENTS, y.dtype) @ jnp.stack([ux, uy, uz], axis=1), twist


def _derivative(U):
    return jnp.asarray(_DERIVATIVE[: U.shape[0], : U.shape[0]], U.dtype) @ U


def _shift(U):
    """xi times a polynomial, without the power that falls off the end (which is zero for derivatives)."""
    return jnp.concatenate([jnp.zeros_like(U[:1]), U[:-1]])


def rotations(U, twist, length) -> Float[Array, "3 3"]:
    """(power, axis) coefficients of the section's rotation (alpha, -uz', uy')."""
    slope = _derivative(U)[:3] / length
    alpha = jnp.concatenate([twist, jnp.zeros(1, U.dtype)])
    return jnp.stack([alpha, -slope[:, 2], slope[:, 1]], axis=1)


def _cross(w, P):
    """w x every coefficient of a polynomial (k, 3)."""
    wx, wy, wz = w
    return jnp.stack([wy * P[:, 2] - wz * P[:, 1], wz * P[:, 0] - wx * P[:, 2], wx * P[:, 1] - wy * P[:, 0]], axis=1)


class _Motion(eqx.Module):
    """Velocity of one element's material as polynomials, for the layer at rest and per unit of layer speed; rotation rates alike."""

    V: Float[Array, "4 3"]
    per_speed: Float[Array, "4 3"]
    W: Float[Array, "3 3"]
    W_per_speed: Float[Array, "3 3"]
    flow: Float[Array, "4 3"]  # deformation rate alone
    carried: Float[Array, "4 3"]  # omega x u
    layer_speed: Float[Array, " k"]


def _element_motion(y, start, length, yd, start_rate, length_rate, twist, layer_speed) -> _Motion:
    def shape(y, length):
        U, a = fields(y, length)
        return U, rotations(U, a, length)

    (U, R), (Ud, Rd) = jax.jvp(shape, (y, length), (yd, length_rate))
    slope, turn = _derivative(U) / length, _derivative(R) / length
    flow = Ud - start_rate * slope - length_rate * _shift(slope)
    spin = Rd - start_rate * turn - length_rate * _shift(turn)
    axis = jnp.zeros((4, 3), y.dtype).at[0, 0].set(start).at[1, 0].set(length)
    ahead = jnp.zeros((4, 3), y.dtype).at[0, 0].set(1.0)
    v, w = twist[:3], twist[3:]
    carried = _cross(w, U)
    rigid = _cross(w, axis) + jnp.concatenate([v[None], jnp.zeros((3, 3), y.dtype)])
    W = spin + jnp.concatenate([w[None], jnp.zeros((2, 3), y.dtype)])
    return _Motion(rigid + carried + flow, ahead + slope, W, turn, flow, carried, layer_speed)


def _element_kinetic(a: _Motion, b: _Motion, length, rhoA, rhoI, constant: bool):
    """va^T M vb / 2 of one element, summed over its layers."""
    H4, H3 = jnp.asarray(_H4, length.dtype), jnp.asarray(_H3, length.dtype)

    def layer(va, vb, rhoA, rhoI):
        wa, wb = a.V + va * a.per_speed, b.V + vb * b.per_speed
        ra, rb = a.W + va * a.W_per_speed, b.W + vb * b.W_per_speed
        product = jnp.sum(wa * (H4 @ wb))
        if constant:
            # The model of state-independent matrices: no product of the frame's rotation with both displacement and its rate, or with its square.
            product = product - 0.5 * _pair(H4, a, b)
        return 0.5 * length * (rhoA * product + jnp.sum(rhoI[None, :] * ra * (H3 @ rb)))

    return jnp.sum(jax.vmap(layer)(a.layer_speed, b.layer_speed, rhoA, rhoI))


def _pair(H, a: _Motion, b: _Motion):
    return jnp.sum(a.carried * (H @ (2 * b.flow + b.carried))) + jnp.sum(b.carried * (H @ (2 * a.flow + a.carried)))


def _motions(arm: Arm, d, y, rates: Rates):
    X, l = arm.mesh(d)
    node_rate = arm.slope @ rates.d
    speed = jnp.einsum("nkm,m->nk", arm.speed, rates.d)
    moved = jax.vmap(_element_motion, in_axes=(0, 0, 0, 0, 0, 0, None, 0))
    return l, moved(y, X, l, rates.y, node_rate[:-1], jnp.diff(node_rate), rates.twist, speed)


def kinetic(arm: Arm, d, y, a: Rates, b: Rates, constant: bool = False):
    """va^T M vb / 2 of the arm."""
    l, ma = _motions(arm, d, y, a)
    _, mb = _motions(arm, d, y, b)
    total = jnp.sum(jax.vmap(lambda ma, mb, l, r, i: _element_kinetic(ma, mb, l, r, i, constant))(ma, mb, l, arm.rhoA, arm.rhoI))
    if arm.rear is not None:
        total = total + _rear_kinetic(arm, d, a, b)
    return total


def _rear_kinetic(arm: Arm, d, a: Rates, b: Rates):
    """The part of a sliding tube behind its joint: straight, on the axis, from its rear end to the joint."""
    start = arm.tube_start[0] + arm.tube_slope[0] @ d
    nothing = jnp.zeros(8, d.dtype)

    def motion(r: Rates):
        rate = arm.tube_slope[0] @ r.d
        return _element_motion(nothing, start, -start, nothing, rate, -rate, r.twist, rate[None])

    return _element_kinetic(motion(a), motion(b), -start, arm.rear[:1], arm.rear[None, 1:], False)


def elastic(arm: Arm, tab: Tables, d, y):
    """Strain energy of the arm."""
    _, l = arm.mesh(d)
    return jnp.sum(jax.vmap(lambda y, l, k: element_elastic(tab, y, l, k))(y, l, arm.stiffness))


def element_elastic(tab: Tables, y, length, stiffness):
    U, twist = fields(y, length)
    return strain_energy(tab, U, twist, length, stiffness)


def element_mass(length, rhoA, rhoI, like):
    """Mass matrix of an element in its own unknowns: independent of them, quadratic in its length."""
    size = like.shape[0]

    def shape(y):
        U, twist = fields(y, length)
        return U, rotations(U, twist, length)

    U, R = jax.vmap(shape)(jnp.eye(size, dtype=like.dtype))
    H4, H3 = jnp.asarray(_H4, like.dtype), jnp.asarray(_H3, like.dtype)
    moved = length * rhoA * jnp.einsum("ipc,pq,jqc->ij", U, H4, U)
    return moved + length * jnp.einsum("ipc,pq,jqc,c->ij", R, H3, R, rhoI)


def first_moment(arm: Arm, d, y):
    """Mass, and integral of the position (frame axes) over it."""
    X, l = arm.mesh(d)

    def element(y, X, l, rhoA):
        U, _ = fields(y, l)
        r = U.at[0, 0].add(X).at[1, 0].add(l)
        m = jnp.sum(rhoA) * l
        return m, m * (jnp.asarray(_MEAN, y.dtype) @ r)

    mass, moment = jax.tree_util.tree_map(lambda z: jnp.sum(z, 0), jax.vmap(element)(y, X, l, arm.rhoA))
    if arm.rear is not None:
        start = arm.tube_start[0] + arm.tube_slope[0] @ d
        mass = mass - arm.rear[0] * start
        moment = moment.at[0].add(-0.5 * arm.rear[0] * start**2)
    return mass, moment


def measures(linear: bool, U, twist, length) -> Float[Array, "4 5"]:
    """Coefficients in xi of the strains (eps, k1, k2, k3) up to their quadratic parts."""
    a, b, c, d, e, f, s, p = letter_polynomials("abcdefsp", U, twist)

    def pad(x):
        return jnp.pad(x, (0, 2))

    eps, k1, k2, k3 = pad(a) / length, pad(p) / length, -pad(f) / length**2, pad(d) / length**2
    if not linear:
        def times(x, y):  # noqa: E306
            return jnp.convolve(x, y, precision="highest")

        eps = eps + 0.5 * (times(c, c) + times(e, e)) / length**2
        k1 = k1 + times(d, e) / length**3
        k2 = k2 + (times(a, f) + times(b, e)) / length**3 + times(s, d) / length**2
        k3 = k3 - (times(a, d) + times(b, c)) / length**3 + times(s, f) / length**2
    return jnp.stack([eps, k1, k2, k3])


def dissipation(arm: Arm, linear: bool, d, y, rates: Rates):
    """Rayleigh's function, half the power dissipated by the material (strain rate of the material, not of the mesh) and by drag."""
    X, l = arm.mesh(d)
    total = jnp.zeros((), y.dtype)
    node_rate = arm.slope @ rates.d
    if arm.viscous:
        def strain_rate(y, l, yd, start_rate, length_rate, speed, viscosity):  # noqa: E306
            e, ed = jax.jvp(lambda y, l: measures(linear, *fields(y, l), l), (y, l), (yd, length_rate))
            k = jnp.arange(1.0, 5.0, dtype=y.dtype)
            grad = jnp.pad(e[:, 1:] * k[None, :], ((0, 0), (0, 1))) / l
            moved = jnp.pad(grad[:, :-1], ((0, 0), (1, 0)))
            rate = ed + (speed - start_rate) * grad - length_rate * moved
            return 0.5 * l * jnp.sum(viscosity[:, None] * rate * (rate @ jnp.asarray(_H5, y.dtype)))

        # In an overlap the strain rate follows the outer tube: bonded tubes cannot have two.
        speed = jnp.einsum("nm,m->n", arm.speed[:, 0], rates.d)
        total = total + jnp.sum(jax.vmap(strain_rate)(y, l, rates.y, node_rate[:-1], jnp.diff(node_rate), speed, arm.viscosity))
    if arm.dragged:
        _, m = _motions(arm, d, y, rates)
        H4 = jnp.asarray(_H4, y.dtype)

        def drag(m: _Motion, l, coefficient):
            def layer(v, c):
                w = m.flow + v * (m.per_speed.at[0, 0].add(-1.0))
                return 0.5 * c * l * jnp.sum(w * (H4 @ w))

            return jnp.sum(jax.vmap(layer)(m.layer_speed, coefficient))

        total = total + jnp.sum(jax.vmap(drag)(m, l, arm.drag))
    return total


def point(arm: Arm, d, y, tube: int, s) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Position in the joint frame and rotation (alpha, -uz', uy') of the section of ``tube`` at station s; straight behind the joint."""
    X, l = arm.mesh(d)
    x = arm.tube_start[tube] + arm.tube_slope[tube] @ d + s * arm.tube_length[tube]
    e = jnp.sum(jax.lax.stop_gradient(x) >= jax.lax.stop_gradient(X[1:]))
    length = l[e]
    xi = (x - X[e]) / length
    U, twist = fields(y[e], length)
    powers = jnp.stack([jnp.ones_like(xi), xi, xi**2, xi**3])
    inside = x < 0
    u = jnp.where(inside, 0.0, powers @ U)
    return u.at[0].add(x), jnp.where(inside, 0.0, powers[:3] @ rotations(U, twist, length))
