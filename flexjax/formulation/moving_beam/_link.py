"""The moving, length-variable beam: a mesh X(d) that follows the lengths d, layers of material that run through it, fields as polynomials in xi.

Material of a layer runs at the speed v along the axis; seen from an element that begins at X_a and has the length l it passes at
c = v - X_a' - xi l', so that a field with coefficients U(t) in xi has the material rate  D/Dt = dU/dt + (c/l) dU/dxi.  All velocities are polynomials in xi and
linear in the generalised velocities, and every integral over the length is exact.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Scalar
from flexjax.formulation.moving_beam import _fixed_length
from flexjax.formulation.moving_beam._shapes import (
    Shapes,
    derivative_matrix,
    shape_matrices,
    shift_matrix,
)
from flexjax.formulation.moving_beam._strain import (
    Tables,
    coefficients,
    plus,
    scaled,
    strain_energy,
    times,
)
from flexjax.numerics.beam._polynomial import hilbert


def origin(powers: int) -> np.ndarray:
    """The polynomial e1."""
    out = np.zeros((powers, 3))
    out[0, 0] = 1.0
    return out


def ahead(powers: int) -> np.ndarray:
    """The polynomial xi e1."""
    return shift_matrix(powers) @ origin(powers)


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
    shapes: Shapes = eqx.field(static=True)
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
    y: Float[Array, "n 2*node+own"]


def element_unknowns(
    x: Float[Array, " n*(node+own)"], n: int, node: int
) -> Float[Array, "n 2*node+own"]:
    """[inner node, outer node, own] of every element; the first node is clamped to the joint frame."""
    table = x.reshape(n, -1)
    outer = table[:, :node]
    inner = jnp.concatenate([jnp.zeros((1, node), x.dtype), outer[:-1]])
    return jnp.concatenate([inner, outer, table[:, node:]], axis=1)


@functools.cache
def _motion_matrices(shapes: Shapes) -> np.ndarray:
    """From scaled unknowns to (U, dU/dxi, twist, d twist/dxi, slopes as rotations, their derivative): one product gives all that moves."""
    U, twist = shape_matrices(shapes)
    n, k = shapes.moving, shapes.turning
    slope = np.einsum("pq,uqc->upc", derivative_matrix(n), U)
    bend = np.zeros((U.shape[0], k, 3))
    # Bending slopes fit, whatever the degree of ux.
    fit = min(n, k)
    bend[:, :fit, 1], bend[:, :fit, 2] = -slope[:, :fit, 2], slope[:, :fit, 1]
    turn = np.zeros_like(bend)
    turn[:, :, 0] = twist
    D = derivative_matrix(k)
    parts = [
        U,
        slope,
        turn,
        np.einsum("pq,uqc->upc", D, turn),
        bend,
        np.einsum("pq,uqc->upc", D, bend),
    ]
    return np.concatenate([p.reshape(U.shape[0], -1) for p in parts], axis=1)


def polynomials(shapes: Shapes, h: Float[Array, "n u"]):
    """(U, dU, turn, d turn, bend, d bend) of all elements, from scaled unknowns (n, unknowns)."""
    flat = h @ jnp.asarray(_motion_matrices(shapes), h.dtype)
    n, out, at = h.shape[0], [], 0
    for k in (shapes.moving, shapes.moving, *[shapes.turning] * 4):
        out.append(flat[:, at : at + 3 * k].reshape(n, k, 3))
        at += 3 * k
    return out


def _skew(w: Float[Array, "3"]):
    eps = np.zeros((3, 3, 3))
    eps[[0, 1, 2], [1, 2, 0], [2, 0, 1]], eps[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0, 1.0
    return jnp.tensordot(jnp.asarray(eps, w.dtype), w, 1)


def _cross(w: Float[Array, "3"], P: Float[Array, "n k 3"]):
    """w x every coefficient of polynomials (n, k, 3)."""
    return P @ _skew(w).T


class _Motion(eqx.Module):
    """Velocity of the elements' material as polynomials, for a layer at rest and per unit of layer speed; rotation rates alike."""

    V: Float[Array, "n moving 3"]
    per_speed: Float[Array, "n moving 3"]
    W: Float[Array, "n turning 3"]
    W_per_speed: Float[Array, "n turning 3"]
    flow: Float[Array, "n moving 3"]  # deformation rate alone
    carried: Float[Array, "n moving 3"]  # omega x u
    speed: Float[Array, "n k"]


def _col(x: Float[Array, " n"]):
    return x[:, None, None]


def _motion(
    shapes: Shapes,
    y: Float[Array, "n u"],
    X: Float[Array, " n"],
    l: Float[Array, " n"],
    yd: Float[Array, "n u"],
    Xd: Float[Array, " n"],
    ld: Float[Array, " n"],
    twist: Float[Array, "6"],
    speed: Float[Array, "n k"],
) -> _Motion:
    """``X``, ``l``: starts and lengths of the elements; a ``d`` behind a name is a rate."""
    dtype, n, k = y.dtype, shapes.moving, shapes.turning
    h, hd = jax.jvp(lambda y, l: scaled(shapes, y, l), (y, l), (yd, ld))
    U, dU, turn, dturn, bend, dbend = polynomials(shapes, h)
    Ud, _, turnd, _, bendd, _ = polynomials(shapes, hd)
    slope = dU / _col(l)
    theta_x = (dturn + dbend / _col(l)) / _col(l)
    moved, turned = jnp.asarray(shift_matrix(n), dtype), jnp.asarray(shift_matrix(k), dtype)
    flow = Ud - _col(Xd) * slope - _col(ld) * jnp.einsum("pq,nqc->npc", moved, slope)
    spin = (
        turnd
        + bendd / _col(l)
        - _col(ld / l**2) * bend
        - _col(Xd) * theta_x
        - _col(ld) * jnp.einsum("pq,nqc->npc", turned, theta_x)
    )
    here, there = jnp.asarray(origin(n), dtype)[None], jnp.asarray(ahead(n), dtype)[None]
    v, w = twist[:3], twist[3:]
    carried = _cross(w, U)
    first_n, first_k = (
        jnp.zeros((1, n, 1), dtype).at[0, 0].set(1.0),
        jnp.zeros((1, k, 1), dtype).at[0, 0].set(1.0),
    )
    V = carried + _cross(w, _col(X) * here + _col(l) * there) + first_n * v[None, None, :] + flow
    return _Motion(
        V, here + slope, spin + first_k * w[None, None, :], theta_x, flow, carried, speed
    )


def _kinetic(
    m: _Motion,
    l: Float[Array, " n"],
    rhoA: Float[Array, "n k"],
    rhoI: Float[Array, "n k 3"],
    constant: bool,
):
    """va^T M vb / 2, summed over elements and layers; the two velocities are the leading axis of ``m``."""
    H4, H3 = (jnp.asarray(hilbert(x.shape[2], x.shape[2]), l.dtype) for x in (m.V, m.W))

    def layered(base, per_speed):
        return base[:, :, None] + m.speed[:, :, :, None, None] * per_speed[:, :, None]

    w = layered(m.V, m.per_speed)
    moved = jnp.sum(w[0] * jnp.einsum("pq,nkqc->nkpc", H4, w[1]), axis=(2, 3))
    r = layered(m.W, m.W_per_speed)
    turned = jnp.sum(
        rhoI[:, :, None, :] * r[0] * jnp.einsum("pq,nkqc->nkpc", H3, r[1]), axis=(2, 3)
    )
    if constant:
        # The model of state-independent matrices: no product of the frame's rotation with both displacement and its rate, or with its square.
        (ca, cb), (fa, fb) = m.carried, m.flow
        extra = jnp.einsum("npc,pq,nqc->n", ca, H4, fb + 0.5 * cb) + jnp.einsum(
            "npc,pq,nqc->n", cb, H4, fa + 0.5 * ca
        )
        moved = moved - extra[:, None]
    return 0.5 * jnp.sum(l[:, None] * (rhoA * moved + turned))


def _motions(arm: Arm, d: Float[Array, " m"], y: Float[Array, "n u"], rates: Rates):
    X, l = arm.mesh(d)
    node_rate = arm.slope @ rates.d
    speed = jnp.einsum("nkm,m->nk", arm.speed, rates.d)
    return l, _motion(
        arm.shapes, y, X, l, rates.y, node_rate[:-1], jnp.diff(node_rate), rates.twist, speed
    )


def kinetic(
    arm: Arm,
    d: Float[Array, " m"],
    y: Float[Array, "n u"],
    rates: Rates,
    constant: bool = False,
    flat: bool = False,
):
    """va^T M vb / 2 of the arm; ``rates`` of both velocities, stacked. ``flat``: the frame stays in the plane of a planar arm."""
    if not arm.slope.shape[1] and not constant:
        rhoA, rhoI = jnp.sum(arm.rhoA, 1), jnp.sum(arm.rhoI, 1)
        return _fixed_length.kinetic(
            arm.shapes, *arm.mesh(d), rhoA, rhoI, y, rates.y, rates.twist, flat
        )
    l, motion = jax.vmap(lambda r: _motions(arm, d, y, r), out_axes=(None, 0))(rates)
    total = _kinetic(motion, l, arm.rhoA, arm.rhoI, constant)
    if arm.rear is not None:
        total = total + _rear_kinetic(arm, arm.rear, d, rates)
    return total


def _rear_kinetic(arm: Arm, rear: Array, d: Float[Array, " m"], rates: Rates):
    """The part of a sliding tube behind its joint: a straight rod on the axis from its rear end to the joint. It may have no length."""
    start = arm.tube_start[0] + arm.tube_slope[0] @ d

    def velocity(r: Rates):
        lever = start * jnp.stack(
            [jnp.zeros((), d.dtype), r.twist[5], -r.twist[4]]
        )  # omega x start e1
        return jnp.stack([r.twist[:3].at[0].add(arm.tube_slope[0] @ r.d) + lever, -lever])

    v, w = jax.vmap(velocity)(rates), rates.twist[:, 3:]
    moved = jnp.sum(v[0] * (jnp.asarray(hilbert(2, 2), d.dtype) @ v[1]))
    return -0.5 * start * (rear[0] * moved + jnp.sum(rear[1:] * w[0] * w[1]))


def elastic(
    arm: Arm,
    tab: Tables,
    d: Float[Array, " m"],
    y: Float[Array, "n u"],
    couplings: dict[str, Array] | None = None,
):
    """Strain energy of the arm."""
    return strain_energy(tab, y, arm.mesh(d)[1], arm.stiffness, couplings)


def _hessians(energy: Callable[[Array], Array], z: Float[Array, "n u"]) -> Float[Array, "n u u"]:
    """Second derivatives of every element's energy by its own numbers. Elements are not coupled, so one direction serves all."""
    _, push = jax.linearize(jax.grad(energy), z)
    H = jax.vmap(lambda e: push(jnp.broadcast_to(e[None], z.shape)), out_axes=1)(
        jnp.eye(z.shape[1], dtype=z.dtype)
    )
    return 0.5 * (H + jnp.swapaxes(H, 1, 2))


def element_stiffnesses(
    tab: Tables,
    y: Float[Array, "n u"],
    l: Float[Array, " n"],
    stiffness: Float[Array, "n 4"],
    couplings: dict[str, Array] | None = None,
) -> Float[Array, "n u u"]:
    """Of the strain energy in the elements' unknowns."""
    return _hessians(lambda y: strain_energy(tab, y, l, stiffness, couplings), y)


def element_hessians(
    tab: Tables,
    y: Float[Array, "n u"],
    l: Float[Array, " n"],
    stiffness: Float[Array, "n 4"],
    couplings: dict[str, Array] | None = None,
) -> Float[Array, "n u+1 u+1"]:
    """Of the strain energy in the elements' unknowns and their lengths."""
    return _hessians(
        lambda z: strain_energy(tab, z[:, :-1], z[:, -1], stiffness, couplings),
        jnp.concatenate([y, l[:, None]], axis=1),
    )


@functools.cache
def _mass_constants(shapes: Shapes) -> np.ndarray:
    """Product integrals of the shape functions (translation), of the twist (about x) and of the slopes (about y, about z)."""
    U, twist = shape_matrices(shapes)
    n, k = shapes.moving, shapes.turning
    slope = np.einsum("pq,uqc->upc", derivative_matrix(n), U)
    parts = [
        np.einsum("ipc,pq,jqc->ij", U, hilbert(n, n), U),
        np.einsum("ip,pq,jq->ij", twist, hilbert(k, k), twist),
    ]
    parts += [
        np.einsum("ip,pq,jq->ij", slope[:, :, c], hilbert(n, n), slope[:, :, c]) for c in (2, 1)
    ]
    return np.stack(parts)


def element_masses(
    shapes: Shapes, l: Float[Array, " n"], rhoA: Float[Array, " n"], rhoI: Float[Array, "n 3"]
) -> Float[Array, "n u u"]:
    """Mass matrices of the elements in their own unknowns: independent of these."""
    S = scaled(shapes, jnp.ones((l.shape[0], shapes.size), l.dtype), l)
    weight = jnp.stack([l * rhoA, l * rhoI[:, 0], rhoI[:, 1] / l, rhoI[:, 2] / l], axis=1)
    return (
        jnp.tensordot(weight, jnp.asarray(_mass_constants(shapes), l.dtype), 1)
        * S[:, :, None]
        * S[:, None, :]
    )


@functools.cache
def _means(shapes: Shapes) -> np.ndarray:
    """Mean displacement of an element per scaled unknown, (unknowns, 3)."""
    return np.einsum("p,upc->uc", hilbert(1, shapes.moving)[0], shape_matrices(shapes)[0])


def first_moment(arm: Arm, d: Float[Array, " m"], y: Float[Array, "n u"]):
    """Mass, and integral of the position (frame axes) over it."""
    X, l = arm.mesh(d)
    m = jnp.sum(arm.rhoA, 1) * l
    mean = scaled(arm.shapes, y, l) @ jnp.asarray(_means(arm.shapes), y.dtype)
    moment = (m @ mean).at[0].add(jnp.sum(m * (X + 0.5 * l)))
    mass = jnp.sum(m)
    if arm.rear is not None:
        start = arm.tube_start[0] + arm.tube_slope[0] @ d
        mass = mass - arm.rear[0] * start
        moment = moment.at[0].add(-0.5 * arm.rear[0] * start**2)
    return mass, moment


def strains(
    shapes: Shapes, linear: bool, y: Float[Array, "n u"], l: Float[Array, " n"]
) -> list[list[Float[Array, " n"]]]:
    """Coefficients in xi of the strains (eps, k1, k2, k3) up to their quadratic parts, written out one by one; none of those that a planar arm lacks."""
    a, b, c, d, e, f, s, p = coefficients("abcdefsp", shapes, scaled(shapes, y, l)).values()

    def total(*parts):
        out: list = []
        for number, power, x in parts:
            out = plus(out, [number / l**power * z for z in x])
        return out

    if linear:
        return [total((1.0, 1, a)), total((1.0, 1, p)), total((-1.0, 2, f)), total((1.0, 2, d))]
    return [
        total((1.0, 1, a), (0.5, 2, times(c, c)), (0.5, 2, times(e, e))),
        total((1.0, 1, p), (1.0, 3, times(d, e))),
        total((-1.0, 2, f), (1.0, 3, times(a, f)), (1.0, 3, times(b, e)), (1.0, 2, times(s, d))),
        total((1.0, 2, d), (-1.0, 3, times(a, d)), (-1.0, 3, times(b, c)), (1.0, 2, times(s, f))),
    ]


def measures(
    shapes: Shapes, linear: bool, y: Float[Array, "n u"], l: Float[Array, " n"]
) -> Float[Array, "n 4 powers"]:
    """The same as one array, filled up with zeros."""
    rows = strains(shapes, linear, y, l)
    powers = max(len(x) for x in rows)
    return jnp.stack(
        [jnp.stack(x + [jnp.zeros_like(l)] * (powers - len(x)), axis=1) for x in rows], axis=1
    )


def dissipation(
    arm: Arm, linear: bool, d: Float[Array, " m"], y: Float[Array, "n u"], rates: Rates
):
    """Rayleigh's function, half the power dissipated by the material (strain rate of the material, not of the mesh) and by drag."""
    _, l = arm.mesh(d)
    total = jnp.zeros((), y.dtype)
    if arm.viscous:
        rate = _strain_rates(arm, linear, d, y, rates)
        squares = [
            sum(a * b * (1 / (m + n + 1)) for m, a in enumerate(x) for n, b in enumerate(x))
            for x in rate
        ]
        total = total + 0.5 * jnp.sum(
            l * sum(arm.viscosity[:, c] * x for c, x in enumerate(squares) if rate[c])
        )
    if arm.dragged:
        _, m = _motions(arm, d, y, rates)
        n = arm.shapes.moving
        w = (
            m.flow[:, None]
            + m.speed[:, :, None, None]
            * (m.per_speed - jnp.asarray(origin(n), y.dtype)[None])[:, None]
        )
        total = total + 0.5 * jnp.sum(
            l[:, None]
            * arm.drag
            * jnp.einsum("nkpc,pq,nkqc->nk", w, jnp.asarray(hilbert(n, n), y.dtype), w)
        )
    return total


def _strain_rates(
    arm: Arm, linear: bool, d: Float[Array, " m"], y: Float[Array, "n u"], rates: Rates
) -> list[list[Float[Array, " n"]]]:
    """Of the material."""
    _, l = arm.mesh(d)
    if not arm.slope.shape[1]:
        return jax.jvp(lambda y: strains(arm.shapes, linear, y, l), (y,), (rates.y,))[1]
    node_rate = arm.slope @ rates.d
    length_rate = jnp.diff(node_rate)
    e, ed = jax.jvp(lambda y, l: strains(arm.shapes, linear, y, l), (y, l), (rates.y, length_rate))
    # In an overlap the strain rate follows the outer tube: bonded tubes cannot have two.
    passing = jnp.einsum("nm,m->n", arm.speed[:, 0], rates.d) - node_rate[:-1]
    slope = [[k / l * z for k, z in enumerate(x) if k] for x in e]
    return [
        plus(x, plus([passing * z for z in g], [jnp.zeros_like(l), *(-length_rate * z for z in g)]))
        for x, g in zip(ed, slope, strict=True)
    ]


def point(
    arm: Arm, d: Float[Array, " m"], y: Float[Array, "n u"], tube: int, s: Scalar
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Position in the joint frame and rotation (alpha, -uz', uy') of the section of ``tube`` at station s; straight behind the joint."""
    X, l = arm.mesh(d)
    x = arm.tube_start[tube] + arm.tube_slope[tube] @ d + s * arm.tube_length[tube]
    e = jnp.sum(jax.lax.stop_gradient(x) >= jax.lax.stop_gradient(X[1:]))
    length = l[e]
    xi = (x - X[e]) / length
    U, _, turn, _, bend, _ = (
        p[0] for p in polynomials(arm.shapes, scaled(arm.shapes, y[e][None], length[None]))
    )
    inside = x < 0
    u = jnp.where(inside, 0.0, monomials(xi, U.shape[0]) @ U)
    return u.at[0].add(x), jnp.where(
        inside, 0.0, monomials(xi, turn.shape[0]) @ (turn + bend / length)
    )


def monomials(xi: Scalar, count: int):
    """1, xi, xi^2, ..."""
    return jnp.cumprod(
        jnp.concatenate([jnp.ones(1, xi.dtype), jnp.broadcast_to(xi[None], (count - 1,))])
    )
