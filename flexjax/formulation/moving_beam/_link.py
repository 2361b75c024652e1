"""The moving, length-variable beam: a mesh X(d) that follows the lengths d, layers of material that run through it, fields as polynomials in xi.

Material of a layer runs at the speed v along the axis; seen from an element that begins at X_a and has the length l it passes at
c = v - X_a' - xi l', so that a field with coefficients U(t) in xi has the material rate  D/Dt = dU/dt + (c/l) dU/dxi.  All velocities are cubic in xi and
linear in the generalised velocities, and every integral over the length is exact.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax.beam._polynomial import coefficient_matrix, hilbert
from flexjax.formulation.moving_beam._generator import FIELD_ROWS, SHAPES, Tables, _multiply, letter_matrix, scaled, slope_mask, strain_energy

_H4, _H3, _H5 = hilbert(4, 4), hilbert(3, 3), hilbert(5, 5)
_DERIVATIVE = np.diag([1.0, 2.0, 3.0], 1)
_SHIFT = np.diag([1.0, 1.0, 1.0], -1)
_MEAN = np.array([1.0, 1 / 2, 1 / 3, 1 / 4])
_ORIGIN, _AHEAD = np.zeros((4, 3)), np.zeros((4, 3))
_ORIGIN[0, 0], _AHEAD[1, 0] = 1.0, 1.0


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


@functools.cache
def shape_matrices(node: int) -> tuple[np.ndarray, np.ndarray]:
    """From scaled unknowns to the coefficients in xi of (ux, uy, uz) (unknowns, 4, 3), and of the twist about x (unknowns, 3)."""
    size = 2 * node + 2
    U, twist = np.zeros((size, 4, 3)), np.zeros((size, 3))
    for axis, name in enumerate(("ux", "uy", "uz")):
        for k, row in enumerate(FIELD_ROWS[node].get(name, ())):
            U[row, :, axis] = coefficient_matrix(SHAPES[name])[:, k]
    for k, row in enumerate(FIELD_ROWS[node].get("alpha", ())):
        twist[row, :2] = coefficient_matrix(SHAPES["alpha"])[:, k]
    return U, twist


@functools.cache
def _motion_matrices(node: int) -> np.ndarray:
    """From scaled unknowns to (U, dU/dxi, twist, d twist/dxi, slopes as rotations, their derivative): one product gives all that moves."""
    U, twist = shape_matrices(node)
    slope = np.einsum("pq,uqc->upc", _DERIVATIVE, U)
    bend = np.zeros((U.shape[0], 3, 3))
    bend[:, :, 1], bend[:, :, 2] = -slope[:, :3, 2], slope[:, :3, 1]
    turn = np.zeros_like(bend)
    turn[:, :, 0] = twist
    D3 = _DERIVATIVE[:3, :3]
    parts = [U, slope, turn, np.einsum("pq,uqc->upc", D3, turn), bend, np.einsum("pq,uqc->upc", D3, bend)]
    return np.concatenate([p.reshape(U.shape[0], -1) for p in parts], axis=1)


def _polynomials(h):
    """(U, dU, turn, d turn, bend, d bend) of all elements, from scaled unknowns (n, unknowns)."""
    flat = h @ jnp.asarray(_motion_matrices((h.shape[1] - 2) // 2), h.dtype)
    n, out, at = h.shape[0], [], 0
    for k in (4, 4, 3, 3, 3, 3):
        out.append(flat[:, at : at + 3 * k].reshape(n, k, 3))
        at += 3 * k
    return out


def _skew(w):
    eps = np.zeros((3, 3, 3))
    eps[[0, 1, 2], [1, 2, 0], [2, 0, 1]], eps[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0, 1.0
    return jnp.tensordot(jnp.asarray(eps, w.dtype), w, 1)


def _cross(w, P):
    """w x every coefficient of polynomials (n, k, 3)."""
    return P @ _skew(w).T


class _Motion(eqx.Module):
    """Velocity of the elements' material as polynomials, for a layer at rest and per unit of layer speed; rotation rates alike."""

    V: Float[Array, "n 4 3"]
    per_speed: Float[Array, "n 4 3"]
    W: Float[Array, "n 3 3"]
    W_per_speed: Float[Array, "n 3 3"]
    flow: Float[Array, "n 4 3"]  # deformation rate alone
    carried: Float[Array, "n 4 3"]  # omega x u
    speed: Float[Array, "n k"]


def _col(x):
    return x[:, None, None]


def _motion(y, X, l, yd, Xd, ld, twist, speed) -> _Motion:
    """``X``, ``l``: starts and lengths of the elements; a ``d`` behind a name is a rate."""
    dtype, node = y.dtype, (y.shape[1] - 2) // 2
    h = scaled(y, l)
    hd = scaled(yd, l) + y * jnp.asarray(slope_mask(node), dtype)[None, :] * ld[:, None]
    U, dU, turn, dturn, bend, dbend = _polynomials(h)
    Ud, _, turnd, _, bendd, _ = _polynomials(hd)
    slope = dU / _col(l)
    theta_x = (dturn + dbend / _col(l)) / _col(l)
    moved4, moved3 = jnp.asarray(_SHIFT, dtype), jnp.asarray(_SHIFT[:3, :3], dtype)
    flow = Ud - _col(Xd) * slope - _col(ld) * jnp.einsum("pq,nqc->npc", moved4, slope)
    spin = turnd + bendd / _col(l) - _col(ld / l**2) * bend - _col(Xd) * theta_x - _col(ld) * jnp.einsum("pq,nqc->npc", moved3, theta_x)
    origin, ahead = jnp.asarray(_ORIGIN, dtype)[None], jnp.asarray(_AHEAD, dtype)[None]
    v, w = twist[:3], twist[3:]
    carried = _cross(w, U)
    first4, first3 = jnp.zeros((1, 4, 1), dtype).at[0, 0].set(1.0), jnp.zeros((1, 3, 1), dtype).at[0, 0].set(1.0)
    V = carried + _cross(w, _col(X) * origin + _col(l) * ahead) + first4 * v[None, None, :] + flow
    return _Motion(V, origin + slope, spin + first3 * w[None, None, :], theta_x, flow, carried, speed)


def _kinetic(a: _Motion, b: _Motion, l, rhoA, rhoI, constant: bool):
    """va^T M vb / 2, summed over elements and layers."""
    H4, H3 = jnp.asarray(_H4, l.dtype), jnp.asarray(_H3, l.dtype)

    def layered(m: _Motion, base, per_speed):
        return base[:, None] + m.speed[:, :, None, None] * per_speed[:, None]

    wa, wb = layered(a, a.V, a.per_speed), layered(b, b.V, b.per_speed)
    moved = jnp.einsum("nkpc,pq,nkqc->nk", wa, H4, wb)
    ra, rb = layered(a, a.W, a.W_per_speed), layered(b, b.W, b.W_per_speed)
    turned = jnp.sum(rhoI[:, :, None, :] * ra * jnp.einsum("pq,nkqc->nkpc", H3, rb), axis=(2, 3))
    if constant:
        # The model of state-independent matrices: no product of the frame's rotation with both displacement and its rate, or with its square.
        ca, cb = a.carried, b.carried
        extra = jnp.einsum("npc,pq,nqc->n", ca, H4, b.flow + 0.5 * cb) + jnp.einsum("npc,pq,nqc->n", cb, H4, a.flow + 0.5 * ca)
        moved = moved - extra[:, None]
    return 0.5 * jnp.sum(l[:, None] * (rhoA * moved + turned))


def _motions(arm: Arm, d, y, rates: Rates):
    X, l = arm.mesh(d)
    node_rate = arm.slope @ rates.d
    speed = jnp.einsum("nkm,m->nk", arm.speed, rates.d)
    return l, _motion(y, X, l, rates.y, node_rate[:-1], jnp.diff(node_rate), rates.twist, speed)


def kinetic(arm: Arm, d, y, a: Rates, b: Rates, constant: bool = False):
    """va^T M vb / 2 of the arm."""
    l, ma = _motions(arm, d, y, a)
    _, mb = _motions(arm, d, y, b)
    total = _kinetic(ma, mb, l, arm.rhoA, arm.rhoI, constant)
    if arm.rear is not None:
        total = total + _rear_kinetic(arm, d, a, b)
    return total


def _rear_kinetic(arm: Arm, d, a: Rates, b: Rates):
    """The part of a sliding tube behind its joint: a straight rod on the axis from its rear end to the joint. It may have no length."""
    start = arm.tube_start[0] + arm.tube_slope[0] @ d

    def velocity(r: Rates):
        lever = start * jnp.stack([jnp.zeros((), d.dtype), r.twist[5], -r.twist[4]])  # omega x start e1
        return jnp.stack([r.twist[:3].at[0].add(arm.tube_slope[0] @ r.d) + lever, -lever])

    moved = jnp.sum(velocity(a) * (jnp.asarray(hilbert(2, 2), d.dtype) @ velocity(b)))
    return -0.5 * start * (arm.rear[0] * moved + jnp.sum(arm.rear[1:] * a.twist[3:] * b.twist[3:]))


def elastic(arm: Arm, tab: Tables, d, y, couplings=None):
    """Strain energy of the arm."""
    return strain_energy(tab, y, arm.mesh(d)[1], arm.stiffness, couplings)


def element_hessians(tab: Tables, y, l, stiffness, couplings=None) -> Float[Array, "n u+1 u+1"]:
    """Second derivatives of every element's strain energy in its unknowns and its length. Elements are not coupled, so one direction serves all."""

    def gradient(z):
        return jax.grad(lambda z: strain_energy(tab, z[:, :-1], z[:, -1], stiffness, couplings))(z)

    z = jnp.concatenate([y, l[:, None]], axis=1)
    directions = jnp.eye(z.shape[1], dtype=y.dtype)
    _, push = jax.linearize(gradient, z)
    H = jax.vmap(lambda e: push(jnp.broadcast_to(e[None], z.shape)), out_axes=1)(directions)
    return 0.5 * (H + jnp.swapaxes(H, 1, 2))


@functools.cache
def _mass_constants(node: int) -> np.ndarray:
    """Product integrals of the shape functions (translation), of the twist (about x) and of the slopes (about y, about z)."""
    U, twist = shape_matrices(node)
    slope = np.einsum("pq,uqc->upc", _DERIVATIVE, U)
    parts = [np.einsum("ipc,pq,jqc->ij", U, _H4, U), np.einsum("ip,pq,jq->ij", twist, _H3, twist)]
    parts += [np.einsum("ip,pq,jq->ij", slope[:, :, c], _H4, slope[:, :, c]) for c in (2, 1)]
    return np.stack(parts)


def element_masses(l, rhoA, rhoI, like) -> Float[Array, "n u u"]:
    """Mass matrices of the elements in their own unknowns: independent of these."""
    node = (like.shape[1] - 2) // 2
    mask = jnp.asarray(slope_mask(node), like.dtype)[None, :]
    S = 1 - mask + mask * l[:, None]
    weight = jnp.stack([l * rhoA, l * rhoI[:, 0], rhoI[:, 1] / l, rhoI[:, 2] / l], axis=1)
    return jnp.tensordot(weight, jnp.asarray(_mass_constants(node), like.dtype), 1) * S[:, :, None] * S[:, None, :]


def first_moment(arm: Arm, d, y):
    """Mass, and integral of the position (frame axes) over it."""
    X, l = arm.mesh(d)
    U = _polynomials(scaled(y, l))[0]
    m = jnp.sum(arm.rhoA, 1) * l
    mean = jnp.einsum("p,npc->nc", jnp.asarray(_MEAN, y.dtype), U)
    moment = (m @ mean).at[0].add(jnp.sum(m * (X + 0.5 * l)))
    mass = jnp.sum(m)
    if arm.rear is not None:
        start = arm.tube_start[0] + arm.tube_slope[0] @ d
        mass = mass - arm.rear[0] * start
        moment = moment.at[0].add(-0.5 * arm.rear[0] * start**2)
    return mass, moment


def measures(linear: bool, y: Float[Array, "n u"], l: Float[Array, " n"]) -> Float[Array, "n 4 5"]:
    """Coefficients in xi of the strains (eps, k1, k2, k3) up to their quadratic parts."""
    G = jnp.tensordot(scaled(y, l), jnp.asarray(letter_matrix("abcdefsp", (y.shape[1] - 2) // 2), y.dtype), 1)
    a, b, c, d, e, f, s, p = (G[:, i] for i in range(8))
    l = l[:, None]

    def pad(x):
        return jnp.pad(x, ((0, 0), (0, 2)))

    eps, k1, k2, k3 = pad(a) / l, pad(p) / l, -pad(f) / l**2, pad(d) / l**2
    if not linear:
        eps = eps + 0.5 * (_multiply(c, c) + _multiply(e, e)) / l**2
        k1 = k1 + _multiply(d, e) / l**3
        k2 = k2 + (_multiply(a, f) + _multiply(b, e)) / l**3 + _multiply(s, d) / l**2
        k3 = k3 - (_multiply(a, d) + _multiply(b, c)) / l**3 + _multiply(s, f) / l**2
    return jnp.stack([eps, k1, k2, k3], axis=1)


def dissipation(arm: Arm, linear: bool, d, y, rates: Rates):
    """Rayleigh's function, half the power dissipated by the material (strain rate of the material, not of the mesh) and by drag."""
    _, l = arm.mesh(d)
    total = jnp.zeros((), y.dtype)
    node_rate = arm.slope @ rates.d
    start_rate, length_rate = node_rate[:-1], jnp.diff(node_rate)
    if arm.viscous:
        e, ed = jax.jvp(lambda y, l: measures(linear, y, l), (y, l), (rates.y, length_rate))
        powers = jnp.arange(1.0, 5.0, dtype=y.dtype)
        grad = jnp.pad(e[:, :, 1:] * powers[None, None, :], ((0, 0), (0, 0), (0, 1))) / _col(l)
        shifted = jnp.pad(grad[:, :, :-1], ((0, 0), (0, 0), (1, 0)))
        # In an overlap the strain rate follows the outer tube: bonded tubes cannot have two.
        passing = jnp.einsum("nm,m->n", arm.speed[:, 0], rates.d) - start_rate
        rate = ed + _col(passing) * grad - _col(length_rate) * shifted
        total = total + 0.5 * jnp.sum(_col(l) * arm.viscosity[:, :, None] * rate * (rate @ jnp.asarray(_H5, y.dtype)))
    if arm.dragged:
        _, m = _motions(arm, d, y, rates)
        w = m.flow[:, None] + m.speed[:, :, None, None] * (m.per_speed - jnp.asarray(_ORIGIN, y.dtype)[None])[:, None]
        total = total + 0.5 * jnp.sum(l[:, None] * arm.drag * jnp.einsum("nkpc,pq,nkqc->nk", w, jnp.asarray(_H4, y.dtype), w))
    return total


def point(arm: Arm, d, y, tube: int, s) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Position in the joint frame and rotation (alpha, -uz', uy') of the section of ``tube`` at station s; straight behind the joint."""
    X, l = arm.mesh(d)
    x = arm.tube_start[tube] + arm.tube_slope[tube] @ d + s * arm.tube_length[tube]
    e = jnp.sum(jax.lax.stop_gradient(x) >= jax.lax.stop_gradient(X[1:]))
    length = l[e]
    xi = (x - X[e]) / length
    U, _, turn, _, bend, _ = (p[0] for p in _polynomials(scaled(y[e][None], length[None])))
    powers = jnp.stack([jnp.ones_like(xi), xi, xi**2, xi**3])
    inside = x < 0
    u = jnp.where(inside, 0.0, powers @ U)
    return u.at[0].add(x), jnp.where(inside, 0.0, powers[:3] @ (turn + bend / length))
