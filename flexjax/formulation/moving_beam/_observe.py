"""Snapshot of the moving beam: poses, velocities, accelerations, strains, reactions."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, Matrix3, PieceTime, Scalar, ScalarLike, Vector3, Velocities
from flexjax.formulation.moving_beam import _link
from flexjax.formulation.moving_beam._carrier import frames, twists
from flexjax.formulation.moving_beam._chain import MovingBeamTerm, load_wrench
from flexjax.formulation.moving_beam.beam._shapes import Lengths, Unknowns, monomials, polynomials
from flexjax.formulation.moving_beam.beam._strain import measures, scaled
from flexjax.mechanism import centreline_pose, least_rotation
from flexjax.numerics.screw import se3
from flexjax.numerics.term import Instant, State

Stations = Float[Array, " S"]


def _section(
    term: MovingBeamTerm, d: Lengths, y: Unknowns, tube: int, s: Scalar
) -> tuple[Vector3, Matrix3, Float[Array, "6"]]:
    """Position, axes and strains of a section in the joint frame.

    The x axis is the tangent of the deformed axis.
    """
    shapes = term.arm.shapes
    x, e, length, xi = _link.locate(term.arm, d, tube, s)
    own, l = y[e][None], length[None]
    U, dU, torsion, *_ = (p[0] for p in polynomials(shapes, scaled(shapes, own, l)))
    strains = measures(shapes, term.tables.linear, own, l)[0]
    powers = monomials(xi, U.shape[0])
    values = (
        powers @ U,
        powers @ dU / length,
        monomials(xi, torsion.shape[0]) @ torsion[:, 0],
        strains @ monomials(xi, strains.shape[1]),
    )
    u, slope, alpha, (eps, k1, k2, k3) = (jnp.where(x < 0, 0.0, p) for p in values)
    tangent = slope.at[0].add(1.0)
    # The least rotation that takes the x axis into the tangent, after the twist about x.
    bending = least_rotation(tangent / jnp.sqrt(jnp.sum(tangent**2)))
    twist = se3.rotation_exp(jnp.zeros(3, U.dtype).at[0].set(alpha))
    zero = jnp.zeros((), U.dtype)
    return u.at[0].add(x), bending @ twist, jnp.stack([eps, zero, zero, k1, k2, k3])


def _world(
    term: MovingBeamTerm, q: Coordinates, base: se3.Pose, s: Stations
) -> tuple[Float[Array, "L S 3"], Float[Array, "L S 3 3"]]:
    """Position and axes of every station of every link."""
    x, d, y = term.split(q)
    layout, rows = term.layout, []
    poses = frames(term.carrier, layout, x, base)
    for i, link in enumerate(term.robot.links):
        if i in layout.tubes:
            k = layout.tubes.index(i)
            r, R, _ = jax.vmap(lambda s, k=k: _section(term, d, y, k, s))(s)
            frame = poses[-1]
        else:
            at = jax.vmap(lambda s, link=link: centreline_pose(link, s))(s)
            r, R, frame = at.position, at.rotation, poses[layout.stage_of_link(i)]
        axes = jnp.einsum("ij,sjk->sik", frame.rotation, R)
        rows.append((frame.position[None] + r @ frame.rotation.T, axes))
    positions, rotations = zip(*rows, strict=True)
    return jnp.stack(positions), jnp.stack(rotations)


def _spin(R: Float[Array, "*n 3 3"], R_rate: Float[Array, "*n 3 3"]) -> Float[Array, "*n 3"]:
    """Angular velocity in section axes."""
    W = jnp.einsum("...ji,...jk->...ik", R, R_rate)
    return jnp.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], -1)


def _base_rates(pose: se3.Pose, twist: se3.Twist) -> se3.Pose:
    """Time derivative of the ground's pose."""
    return se3.Pose(jnp.cross(pose.rotation, -twist[3:][None]), pose.rotation @ twist[:3])


DYNAMIC = frozenset({"qdd", "effort", "acceleration", "reaction"})


def outputs(
    term: MovingBeamTerm,
    t: ScalarLike,
    state: State,
    s: Stations,
    piece_time: PieceTime,
    names: frozenset[str],
) -> dict[str, Any]:
    """Outputs at one instant, at the stations ``s`` of every link."""
    robot, D = term.robot, term.layout.dofs
    q, v = state.mech.q, state.mech.v
    now = Instant(t, piece_time, state.memory)
    found: dict[str, Any] = {"q": q[:D], "qd": v[:D], "motor": q[:D]}
    a = None
    if names & DYNAMIC:
        a, gap = term.dynamics(now, q, v)
        effort = term.drive.effort(robot, t, piece_time, q[:D], v[:D], state.memory)
        found["effort"] = jnp.where(term.drive.prescribed(robot), gap[:D], effort)
        found["qdd"] = a[:D]
        if "reaction" in names:
            found["reaction"] = reactions(term, now, q, v, a)
    if names & {"deflection", "strain"}:
        _, d, y = term.split(q)
        found["deflection"], found["strain"] = _deformation(term, d, y, s)
    if names & {"positions", "frames", "velocity", "acceleration"}:
        found |= _motion(term, now, q, v, a, s, names)
    return {name: found[name] for name in names}


def _motion(
    term: MovingBeamTerm,
    now: Instant,
    q: Coordinates,
    v: Velocities,
    a: Velocities | None,
    s: Stations,
    names: frozenset[str],
) -> dict[str, Array]:
    """Poses of the sections, their velocities and, with ``a``, accelerations."""
    base, twist, acceleration = term.base(now.t, now.piece_time)

    def velocity(q, v, base, twist):
        along = (v, _base_rates(base, twist))
        (p, R), (rate, R_rate) = jax.jvp(lambda q, b: _world(term, q, b, s), (q, base), along)
        return (rate, _spin(R, R_rate)), (p, R)

    def local(linear, angular):
        return jnp.concatenate([jnp.einsum("...ji,...j->...i", R, linear), angular], -1)

    found = {}
    if "acceleration" in names:
        assert a is not None  # found for this output
        along = (v, a, _base_rates(base, twist), acceleration)
        rates, second, (p, R) = jax.jvp(velocity, (q, v, base, twist), along, has_aux=True)
        found["velocity"], found["acceleration"] = local(*rates), local(*second)
    elif "velocity" in names:
        rates, (p, R) = velocity(q, v, base, twist)
        found["velocity"] = local(*rates)
    else:
        p, R = _world(term, q, base, s)
    found["positions"] = p
    if "frames" in names:
        quaternions = jax.vmap(jax.vmap(se3.matrix_to_quat))(R)
        found["frames"] = jnp.concatenate([p, quaternions], axis=-1)
    return found


def _deformation(
    term: MovingBeamTerm, d: Lengths, y: Unknowns, s: Stations
) -> tuple[Float[Array, "L S 3"], Float[Array, "L S 6"]]:
    """Deflections and strains; zero on rigid links.

    Deflections are from the tangent at the base of the link (of a tube: at its rear end), in the
    axes there.
    """
    zero = jnp.zeros((s.shape[0], 6), y.dtype)
    deflection, strain = [], []
    for i, link in enumerate(term.robot.links):
        if i not in term.layout.tubes:
            deflection.append(zero[:, :3])
            strain.append(zero)
            continue
        k = term.layout.tubes.index(i)
        origin, R, _ = _section(term, d, y, k, jnp.zeros((), y.dtype))
        r, _, strains = jax.vmap(lambda s, k=k: _section(term, d, y, k, s))(s)
        straight = zero[:, :3].at[:, 0].set(s * link.length)
        deflection.append((r - origin[None]) @ R - straight)
        strain.append(strains)
    return jnp.stack(deflection), jnp.stack(strain)


def _momenta(
    term: MovingBeamTerm, q: Coordinates, v: Velocities, base: se3.Pose, twist: se3.Twist
) -> Float[Array, "groups 6"]:
    """[linear; angular about the world's origin] in world axes.

    Of the bodies of the stages, then of the tubes with their payloads.
    """
    layout, carrier = term.layout, term.carrier
    x, d, y = term.split(q)
    xd, dd, yd = term.split(v)
    poses = frames(carrier, layout, x, base)
    z, spins = twists(carrier, layout, x, xd, twist)
    out = []
    for k, pose in enumerate(poses):
        P = carrier.inertia[k] @ z[k]
        # The rotor of the next joint is on this body.
        if k + 1 < len(poses):
            P = P.at[3:].add(carrier.rotor[k + 1] * spins[k + 1] * carrier.rotor_axis[k + 1])
        out.append(_to_world(pose, P))

    def energy(own, z):
        arm, payloads = own
        rates = _link.Rates(*(jnp.stack([x, x]) for x in (z, dd, yd)))
        tube = _link.kinetic(arm, d, y, rates)
        return tube + _link.payload_kinetic(arm, payloads, d, y, rates)

    for tube in range(len(layout.tubes)):
        own = _only(term, tube)
        momentum = jax.grad(lambda z, own=own: energy(own, z))
        out.append(_to_world(poses[-1], momentum(z[-1])))
    return jnp.stack(out)


def _only(term: MovingBeamTerm, tube: int) -> tuple[_link.Arm, _link.Payloads]:
    """The arm with the inertia of one tube alone, and the payloads of that tube."""
    arm, payloads = term.arm, term.payloads
    depth = arm.rhoA.shape[1]
    layers = [[*s.layers, *[-1] * depth][:depth] for s in term.layout.segments]
    count = [s.elements for s in term.layout.segments]
    member = jnp.asarray(np.repeat(np.array(layers) == tube, count, axis=0), arm.rhoA.dtype)
    own = (arm.rhoA * member, arm.rhoI * member[:, :, None])
    arm = eqx.tree_at(lambda a: (a.rhoA, a.rhoI), arm, own)
    if arm.rear is not None and tube != 0:
        arm = eqx.tree_at(lambda a: a.rear, arm, jnp.zeros_like(arm.rear))
    keep = [k for k, x in enumerate(payloads.tube) if x == tube]
    fields = (payloads.s, payloads.mass, payloads.offset, payloads.inertia)
    return arm, _link.Payloads((tube,) * len(keep), *(tuple(x[k] for k in keep) for x in fields))


def _to_world(pose: se3.Pose, P: Float[Array, "6"]) -> Float[Array, "6"]:
    """A momentum or wrench about a frame, in its axes, as one about the origin in world axes."""
    p, H = pose.rotation @ P[:3], pose.rotation @ P[3:]
    return jnp.concatenate([p, H + jnp.cross(pose.position, p)])


def reactions(
    term: MovingBeamTerm, now: Instant, q: Coordinates, v: Velocities, a: Velocities
) -> Float[Array, "J 6"]:
    """Wrench of parent on child at each joint, in child axes.

    At a telescope joint: everything that the outer tube exerts on the inner one (the overlap is
    bonded), about the outer tube's end.
    """
    layout, robot = term.layout, term.robot
    base, twist, acceleration = term.base(now.t, now.piece_time)
    # Weight is the inertia force of a ground that accelerates by -g: momenta are linear in
    # velocities, so one sweep gives both.
    acceleration = acceleration.at[:3].add(-base.rotation.T @ robot.gravity)
    along = (v, a, _base_rates(base, twist), acceleration)
    need = jax.jvp(lambda *x: _momenta(term, *x), (q, v, base, twist), along)[1]
    x, d, y = term.split(q)
    poses = frames(term.carrier, layout, x, base)
    for load in term.drive.loads:
        body, group, site = term.load_site(load)
        (r, _), section = site(d, y)
        force, moment = load_wrench(load, now.t, now.piece_time, poses[body].rotation, section)
        wrench = jnp.concatenate([force, moment + jnp.cross(r, force)])
        need = need.at[group].add(-_to_world(poses[body], wrench))
    out = []
    for i, joint in enumerate(robot.joints):
        mine = [k for k, stage in enumerate(layout.stages) if stage.joint == i]
        if mine:
            wrench, pose = jnp.sum(need[mine[0] :], 0), poses[mine[-1]]
        else:
            tube = layout.tubes.index(robot.link_index(joint.child))
            wrench = jnp.sum(need[len(layout.stages) + tube :], 0)
            r, R, _ = _section(term, d, y, tube - 1, jnp.ones((), q.dtype))
            pose = se3.compose(poses[-1], se3.Pose(R, r))
        moment = wrench[3:] - jnp.cross(pose.position, wrench[:3])
        out.append(jnp.concatenate([pose.rotation.T @ wrench[:3], pose.rotation.T @ moment]))
    return jnp.stack(out)
