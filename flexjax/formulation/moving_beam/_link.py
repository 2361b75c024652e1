"""The elastic arm: parameters, kinetic energy, weight, dissipation and points of the beam.

The mesh X(d) follows the lengths d, and layers of material run through it. Fields are polynomials
in xi. Material of a layer moves at the speed v along the axis. Seen from an element that begins at
X_a and has the length l it passes at c = v - X_a' - xi l', so a field with coefficients U(t) in xi
has the material rate D/Dt = dU/dt + (c/l) dU/dxi. All velocities are polynomials in xi and linear
in the generalised velocities; every integral over the length is exact.

Symbols: d lengths, y unknowns of the elements, X and l starts and lengths of the elements; a ``d``
behind a name is a rate. A *rotation* of a section is (alpha, -uz', uy').
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from flexjax._types import Scalar, Vector3
from flexjax.formulation.moving_beam._carrier import ArmLayout
from flexjax.formulation.moving_beam.beam import _fixed_length
from flexjax.formulation.moving_beam.beam._shapes import (
    Coefficients,
    Lengths,
    PerElement,
    Shapes,
    Unknowns,
    along_axis,
    monomials,
    polynomials,
    shape_matrices,
    slope_matrix,
)
from flexjax.formulation.moving_beam.beam._strain import plus, scaled, strains
from flexjax.mechanism import beam_properties, inertia_tensor, or_zero
from flexjax.numerics.beam import hilbert, shift_matrix
from flexjax.numerics.screw._quaternion import skew
from flexjax.robot import Robot

Moving = Float[Array, "n moving 3"]
Rotating = Float[Array, "n rotating 3"]


class Arm(eqx.Module):
    """Parameters of n elements with up to k layers each, and of m lengths.

    Positions are affine in the lengths: X = start + slope @ d.
    """

    start: Float[Array, " n+1"]
    slope: Float[Array, "n+1 m"]
    stiffness: Float[Array, "n 4"]  # EA, GJ, EIy, EIz, summed over layers
    viscosity: Float[Array, "n 4"]  # stiffness times the strain-rate time of each layer
    rhoA: Float[Array, "n k"]
    rhoI: Float[Array, "n k 3"]  # polar, about y, about z
    drag: Float[Array, "n k"]  # mass-proportional damping times rhoA
    speed: Float[Array, "n k m"]  # v = speed @ d'
    tube_start: Float[Array, " tubes"]  # rear ends of the tubes
    tube_slope: Float[Array, "tubes m"]
    tube_length: Float[Array, " tubes"]
    rear: Float[Array, " 4"] | None  # rhoA and rhoI of a sliding tube behind its joint
    shapes: Shapes = eqx.field(static=True)
    viscous: bool = eqx.field(static=True)
    dragged: bool = eqx.field(static=True)

    def mesh(self, d: Lengths) -> tuple[PerElement, PerElement]:
        """Starts and lengths of the elements."""
        X = self.start + self.slope @ d
        return X[:-1], jnp.diff(X)

    def rear_end(self, d: Lengths, tube: int = 0) -> Scalar:
        """Position of the rear end of a tube; negative behind the joint."""
        return self.tube_start[tube] + self.tube_slope[tube] @ d

    @property
    def inertia_per_length(self) -> tuple[PerElement, Float[Array, "n 3"]]:
        """rhoA and rhoI of the elements, summed over layers."""
        return jnp.sum(self.rhoA, 1), jnp.sum(self.rhoI, 1)


class Payloads(eqx.Module):
    """Payloads on the tubes, with mass, centre of mass and inertia about it in section axes."""

    tube: tuple[int, ...] = eqx.field(static=True)
    s: tuple[Array, ...]
    mass: tuple[Array, ...]
    offset: tuple[Array, ...]
    inertia: tuple[Array, ...]


class Rates(eqx.Module):
    """Twist of the joint frame in its own axes, rates of the lengths and of the unknowns."""

    twist: Float[Array, " 6"]
    d: Lengths
    y: Unknowns


def payload_parameters(robot: Robot, layout: ArmLayout) -> Payloads:
    """Payloads on the tubes; pure and traceable in the robot's leaves."""
    like = robot.gravity
    names = [robot.links[i].name for i in layout.tubes]
    mine = [p for p in robot.payloads if p.link in names]
    return Payloads(
        tuple(names.index(p.link) for p in mine),
        tuple(p.s for p in mine),
        tuple(p.mass for p in mine),
        tuple(or_zero(p.offset, like, (3,)) for p in mine),
        tuple(inertia_tensor(p.inertia, like) for p in mine),
    )


def _positions(robot: Robot, layout: ArmLayout):
    """Lengths of the tubes, their tips and rear ends, borders of the segments.

    Positions are (constant, slopes with respect to the length coordinates).
    """
    like, tubes, m = robot.gravity, layout.tubes, len(layout.lengths)
    lengths = jnp.stack([robot.links[i].length for i in tubes])
    unit, none = np.eye(m), np.zeros(m)
    zero = (jnp.zeros((), like.dtype), none)
    tips = [(zero[0], unit[0]) if layout.slides else (lengths[0], none)]
    for k in range(1, len(tubes)):
        tips.append((tips[-1][0], tips[-1][1] + unit[layout.length_of_tube[k]]))
    rears = [(c - lengths[k], g) for k, (c, g) in enumerate(tips)]
    link = robot.links[tubes[0]]
    if len(tubes) == 1 and link.pieces:
        ends = jnp.cumsum(jnp.stack([p.fraction for p in link.pieces])) * link.length
        borders = [zero] + [(ends[i], none) for i in range(len(link.pieces))]
    else:
        overlaps = [x for k in range(1, len(tubes)) for x in (rears[k], tips[k - 1])]
        borders = [zero, *overlaps, tips[-1]]
    return lengths, tips, rears, borders


def arm_parameters(robot: Robot, layout: ArmLayout, rotary: bool) -> Arm:
    """Parameters of the arm; pure and traceable in the robot's leaves."""
    like, m = robot.gravity, len(layout.lengths)
    lengths, tips, rears, borders = _positions(robot, layout)
    start, slope = [borders[0][0]], [borders[0][1]]
    depth = max(len(s.layers) for s in layout.segments)
    rows = {name: [] for name in ("stiffness", "viscosity", "rhoA", "rhoI", "drag", "speed")}
    links = [robot.links[i] for i in layout.tubes]
    half = 0.5 * jnp.ones((), like.dtype)

    def section(link, s):
        p = beam_properties(link, s[None])
        inertia = jnp.stack([p.rhoIx[0], p.rhoIy[0], p.rhoIz[0]])
        return p, inertia if rotary else jnp.zeros_like(inertia)

    def layer(k, tube):
        link, middle = links[tube], half
        if link.pieces:
            before = sum((p.fraction for p in link.pieces[:k]), jnp.zeros((), like.dtype))
            middle = before + 0.5 * link.pieces[k].fraction
        p, inertia = section(link, middle)
        tau = or_zero(None if link.damping is None else link.damping.strain_rate, like)
        drag = or_zero(None if link.damping is None else link.damping.mass, like)
        K = jnp.stack([p.EA[0], p.GJ[0], p.EIy[0], p.EIz[0]])
        speed = jnp.asarray(tips[tube][1], like.dtype)
        return K, tau * K, p.rhoA[0], inertia, drag * p.rhoA[0], speed

    for k, segment in enumerate(layout.segments):
        (c0, g0), (c1, g1) = borders[k], borders[k + 1]
        for j in range(1, segment.elements + 1):
            share = j / segment.elements
            start.append(c0 + share * (c1 - c0))
            slope.append(g0 + share * (g1 - g0))
        layers = [layer(k, tube) for tube in segment.layers]
        empty = tuple(jnp.zeros_like(x) for x in layers[0])
        layers += [empty] * (depth - len(layers))
        K, C, *others = (jnp.stack(x) for x in zip(*layers, strict=True))
        for name, value in zip(rows, (jnp.sum(K, 0), jnp.sum(C, 0), *others), strict=True):
            rows[name] += [value] * segment.elements
    rear = None
    if layout.slides:
        p, inertia = section(links[0], half)
        rear = jnp.concatenate([p.rhoA, inertia])

    def slopes(table):
        return jnp.asarray(np.array(table).reshape(len(table), m), like.dtype)

    damped = [link.damping for link in links if link.damping is not None]
    return Arm(
        start=jnp.stack(start),
        slope=slopes(slope),
        tube_start=jnp.stack([c for c, _ in rears]),
        tube_slope=slopes([g for _, g in rears]),
        tube_length=lengths,
        rear=rear,
        shapes=layout.shapes,
        viscous=any(x.strain_rate is not None for x in damped),
        dragged=any(x.mass is not None for x in damped),
        **{name: jnp.stack(x) for name, x in rows.items()},
    )


def element_unknowns(x: Float[Array, " n*(node+own)"], n: int, node: int) -> Unknowns:
    """Unknowns of every element; the first node is clamped to the joint frame."""
    table = x.reshape(n, -1)
    outer = table[:, :node]
    inner = jnp.concatenate([jnp.zeros((1, node), x.dtype), outer[:-1]])
    return jnp.concatenate([inner, outer, table[:, node:]], axis=1)


def _column(x: PerElement) -> Float[Array, "n 1 1"]:
    return x[:, None, None]


class _MaterialMotion(eqx.Module):
    """Velocities of the material as polynomials: of a layer at rest, and per unit of its speed."""

    V: Moving
    per_speed: Moving
    W: Rotating
    W_per_speed: Rotating
    flow: Moving  # deformation rate alone
    carried: Moving  # omega x u
    speed: Float[Array, "n k"]


def _motion(arm: Arm, d: Lengths, y: Unknowns, rates: Rates) -> tuple[PerElement, _MaterialMotion]:
    """Lengths of the elements, and the motion of their material."""
    shapes, dtype = arm.shapes, y.dtype
    n, k = shapes.moving, shapes.rotating
    X, l = arm.mesh(d)
    node_rate = arm.slope @ rates.d
    Xd, ld = node_rate[:-1], jnp.diff(node_rate)
    h, hd = jax.jvp(lambda y, l: scaled(shapes, y, l), (y, l), (rates.y, ld))
    U, dU, torsion, dtorsion, bending, dbending = polynomials(shapes, h)
    Ud, _, torsiond, _, bendingd, _ = polynomials(shapes, hd)
    slope = dU / _column(l)
    theta_x = (dtorsion + dbending / _column(l)) / _column(l)

    def passing(p):
        """Rate due to the mesh that moves under a field with the slope p."""
        shift = jnp.asarray(shift_matrix(p.shape[1]), dtype)
        return -_column(Xd) * p - _column(ld) * jnp.einsum("pq,nqc->npc", shift, p)

    flow = Ud + passing(slope)
    spin = torsiond + bendingd / _column(l) - _column(ld / l**2) * bending + passing(theta_x)
    here, there = (jnp.asarray(x, dtype)[None] for x in along_axis(n))
    v, w = rates.twist[:3], rates.twist[3:]
    W = skew(w).T
    carried = U @ W
    first_n, first_k = (jnp.zeros((1, p, 1), dtype).at[0, 0].set(1.0) for p in (n, k))
    V = carried + (_column(X) * here + _column(l) * there) @ W + first_n * v[None, None, :] + flow
    spin = spin + first_k * w[None, None, :]
    speed = jnp.einsum("nkm,m->nk", arm.speed, rates.d)
    return l, _MaterialMotion(V, here + slope, spin, theta_x, flow, carried, speed)


def _integral(p: Float[Array, "*n p c"], q: Float[Array, "*n p c"]) -> Float[Array, "*n"]:
    """Integrals over xi of scalar products of polynomials; one reduction, so one kernel."""
    H = jnp.asarray(hilbert(p.shape[-2], p.shape[-2]), p.dtype)
    return jnp.sum(p * jnp.einsum("pq,...qc->...pc", H, q), axis=(-2, -1))


def moving_mesh_kinetic(
    arm: Arm, d: Lengths, y: Unknowns, rates: Rates, constant: bool = False
) -> Scalar:
    """va^T M vb / 2 of the elements, for any motion of the mesh; ``rates`` are stacked."""
    l, m = jax.vmap(lambda r: _motion(arm, d, y, r), out_axes=(None, 0))(rates)

    def layered(base, per_speed):
        return base[:, :, None] + m.speed[:, :, :, None, None] * per_speed[:, :, None]

    moved = _integral(*layered(m.V, m.per_speed))
    ra, rb = layered(m.W, m.W_per_speed)
    rotary = _integral(arm.rhoI[:, :, None, :] * ra, rb)
    if constant:
        # State-independent matrices: no product of the frame's rotation with both a displacement
        # and its rate, or with the square of a displacement.
        (ca, cb), (fa, fb) = m.carried, m.flow
        extra = _integral(ca, fb + 0.5 * cb) + _integral(cb, fa + 0.5 * ca)
        moved = moved - extra[:, None]
    return 0.5 * jnp.sum(l[:, None] * (arm.rhoA * moved + rotary))


def kinetic(
    arm: Arm,
    d: Lengths,
    y: Unknowns,
    rates: Rates,
    constant: bool = False,
    flat: bool = False,
) -> Scalar:
    """va^T M vb / 2 of the arm.

    Arguments:
        rates: of both velocities, stacked.
        constant: whether to use the state-independent matrices of a linear model.
        flat: whether the frame stays in the plane of a planar arm.
    """
    if not arm.slope.shape[1] and not constant:
        inertia = arm.inertia_per_length
        return _fixed_length.kinetic(
            arm.shapes, *arm.mesh(d), *inertia, y, rates.y, rates.twist, flat
        )
    total = moving_mesh_kinetic(arm, d, y, rates, constant)
    if arm.rear is not None:
        total = total + _rear_kinetic(arm, arm.rear, d, rates)
    return total


def _rear_kinetic(arm: Arm, rear: Float[Array, "4"], d: Lengths, rates: Rates) -> Scalar:
    """Of the part of a sliding tube behind its joint: a straight rod, perhaps of no length."""
    start = arm.rear_end(d)

    def velocity(r: Rates):
        zero = jnp.zeros((), d.dtype)
        lever = start * jnp.stack([zero, r.twist[5], -r.twist[4]])  # omega x start e1
        return jnp.stack([r.twist[:3].at[0].add(arm.tube_slope[0] @ r.d) + lever, -lever])

    v, w = jax.vmap(velocity)(rates), rates.twist[:, 3:]
    moved = _integral(v[0], v[1])
    return -0.5 * start * (rear[0] * moved + jnp.sum(rear[1:] * w[0] * w[1]))


@functools.cache
def _mass_constants(shapes: Shapes) -> np.ndarray:
    """Product integrals of displacements, of the twist, and of the slopes about y and about z."""
    U, twist = shape_matrices(shapes)
    slope = slope_matrix(shapes)
    H, Hk = hilbert(shapes.moving, shapes.moving), hilbert(shapes.rotating, shapes.rotating)
    parts = [np.einsum("ipc,pq,jqc->ij", U, H, U), twist @ Hk @ twist.T]
    return np.stack(parts + [slope[:, :, c] @ H @ slope[:, :, c].T for c in (2, 1)])


def element_masses(
    shapes: Shapes, l: PerElement, rhoA: PerElement, rhoI: Float[Array, "n 3"]
) -> Float[Array, "n u u"]:
    """Mass matrices of the elements; they do not depend on the unknowns."""
    S = scaled(shapes, jnp.ones((l.shape[0], shapes.size), l.dtype), l)
    weight = jnp.stack([l * rhoA, l * rhoI[:, 0], rhoI[:, 1] / l, rhoI[:, 2] / l], axis=1)
    mass = jnp.tensordot(weight, jnp.asarray(_mass_constants(shapes), l.dtype), 1)
    return mass * S[:, :, None] * S[:, None, :]


@functools.cache
def _means(shapes: Shapes) -> np.ndarray:
    """Mean displacement of an element per scaled unknown, (unknowns, 3)."""
    return np.einsum("p,upc->uc", hilbert(1, shapes.moving)[0], shape_matrices(shapes)[0])


def first_moment(arm: Arm, d: Lengths, y: Unknowns) -> tuple[Scalar, Vector3]:
    """Mass, and the integral of the position over it in frame axes."""
    X, l = arm.mesh(d)
    m = jnp.sum(arm.rhoA, 1) * l
    mean = scaled(arm.shapes, y, l) @ jnp.asarray(_means(arm.shapes), y.dtype)
    moment = (m @ mean).at[0].add(jnp.sum(m * (X + 0.5 * l)))
    mass = jnp.sum(m)
    if arm.rear is not None:
        start = arm.rear_end(d)
        mass = mass - arm.rear[0] * start
        moment = moment.at[0].add(-0.5 * arm.rear[0] * start**2)
    return mass, moment


def dissipation(arm: Arm, linear: bool, d: Lengths, y: Unknowns, rates: Rates) -> Scalar:
    """Rayleigh's function: half the power that strain rate and drag of the material dissipate."""
    _, l = arm.mesh(d)
    total = jnp.zeros((), y.dtype)
    if arm.viscous:
        rate = _strain_rates(arm, linear, d, y, rates)
        squares = [
            sum(a * b * (1 / (m + n + 1)) for m, a in enumerate(x) for n, b in enumerate(x))
            for x in rate
        ]
        power = sum(arm.viscosity[:, c] * x for c, x in enumerate(squares) if rate[c])
        total = total + 0.5 * jnp.sum(l * power)
    if arm.dragged:
        _, m = _motion(arm, d, y, rates)
        per_speed = m.per_speed - jnp.asarray(along_axis(arm.shapes.moving)[0], y.dtype)[None]
        w = m.flow[:, None] + m.speed[:, :, None, None] * per_speed[:, None]
        total = total + 0.5 * jnp.sum(l[:, None] * arm.drag * _integral(w, w))
    return total


def _strain_rates(
    arm: Arm, linear: bool, d: Lengths, y: Unknowns, rates: Rates
) -> list[Coefficients]:
    """Strain rates of the material."""
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


def locate(arm: Arm, d: Lengths, tube: int, s: Scalar):
    """Position x of the section of ``tube`` at station s; its element, the length of that, xi."""
    X, l = arm.mesh(d)
    x = arm.rear_end(d, tube) + s * arm.tube_length[tube]
    e = jnp.sum(lax.stop_gradient(x) >= lax.stop_gradient(X[1:]))
    return x, e, l[e], (x - X[e]) / l[e]


def point(arm: Arm, d: Lengths, y: Unknowns, tube: int, s: Scalar) -> tuple[Vector3, Vector3]:
    """Position in the joint frame and rotation of a section; straight behind the joint."""
    x, e, length, xi = locate(arm, d, tube, s)
    h = scaled(arm.shapes, y[e][None], length[None])
    U, _, torsion, _, bending, _ = (p[0] for p in polynomials(arm.shapes, h))
    inside = x < 0
    u = jnp.where(inside, 0.0, monomials(xi, U.shape[0]) @ U)
    rotation = monomials(xi, torsion.shape[0]) @ (torsion + bending / length)
    return u.at[0].add(x), jnp.where(inside, 0.0, rotation)


def payload_position(
    arm: Arm, payloads: Payloads, k: int, d: Lengths, y: Unknowns
) -> tuple[Vector3, Vector3]:
    """Position of the centre of mass in the joint frame, and rotation of its section."""
    r, theta = point(arm, d, y, payloads.tube[k], payloads.s[k])
    return r + payloads.offset[k] + jnp.cross(theta, payloads.offset[k]), theta


def payload_kinetic(
    arm: Arm, payloads: Payloads, d: Lengths, y: Unknowns, rates: Rates
) -> Scalar | float:
    """va^T M vb / 2 of the payloads; ``rates`` of both velocities, stacked."""
    total = 0.0
    for k, (mass, inertia) in enumerate(zip(payloads.mass, payloads.inertia, strict=True)):

        def velocity(r, k=k):
            position = lambda d, y: payload_position(arm, payloads, k, d, y)
            (p, _), (pd, wd) = jax.jvp(position, (d, y), (r.d, r.y))
            v, w = r.twist[:3], r.twist[3:]
            return v + jnp.cross(w, p) + pd, w + wd

        u, w = jax.vmap(velocity)(rates)
        total = total + 0.5 * mass * jnp.sum(u[0] * u[1]) + 0.5 * jnp.sum(w[0] * (inertia @ w[1]))
    return total


def payload_mass(
    arm: Arm, payloads: Payloads, k: int, d: Lengths, y: Unknowns
) -> Float[Array, "n u u"]:
    """Mass matrix of a payload in the element that carries it, zero in the others."""
    J, W = jax.jacfwd(lambda y: payload_position(arm, payloads, k, d, y))(y)
    e = jnp.argmax(jnp.sum(jnp.abs(J), axis=(0, 2)) + jnp.sum(jnp.abs(W), axis=(0, 2)))
    Je, We = J[:, e], W[:, e]
    block = payloads.mass[k] * Je.T @ Je + We.T @ payloads.inertia[k] @ We
    return jnp.zeros((y.shape[0], *block.shape), y.dtype).at[e].set(block)
