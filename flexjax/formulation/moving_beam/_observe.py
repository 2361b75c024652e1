"""What the moving beam shows at one instant: poses, velocities and accelerations of sections, strains, reactions."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.formulation.moving_beam import _carrier, _link
from flexjax.formulation.moving_beam._chain import MovingBeamTerm
from flexjax.mechanism import Snapshot, centreline_pose
from flexjax.numerics.screw import se3
from flexjax.numerics.term import State


def _section(
    term: MovingBeamTerm, d: Float[Array, " m"], y: Float[Array, "n u"], tube: int, s: Scalar
):
    """Position, rotation matrix and strains of a section in the joint frame; the x axis is the tangent of the deformed axis."""
    arm = term.arm
    X, l = arm.mesh(d)
    x = arm.tube_start[tube] + arm.tube_slope[tube] @ d + s * arm.tube_length[tube]
    e = jnp.sum(x >= X[1:])
    xi = (x - X[e]) / l[e]
    U, dU, turn, _, _, _ = (
        p[0]
        for p in _link.polynomials(arm.shapes, _link.scaled(arm.shapes, y[e][None], l[e][None]))
    )
    powers = _link.monomials(xi, U.shape[0])
    inside = x < 0
    u = jnp.where(inside, 0.0, powers @ U)
    slope = jnp.where(inside, 0.0, powers @ dU / l[e])
    alpha = jnp.where(inside, 0.0, _link.monomials(xi, turn.shape[0]) @ turn[:, 0])
    strains = _link.measures(arm.shapes, term.tab.degree == 2, y[e][None], l[e][None])[0]
    strains = jnp.where(inside, 0.0, strains @ _link.monomials(xi, strains.shape[1]))
    tangent = slope.at[0].add(1.0)
    t1, t2, t3 = tangent / jnp.sqrt(jnp.sum(tangent**2))
    # The least rotation that takes the x axis into the tangent, after the twist about x.
    k = 1.0 / (1.0 + t1)
    bend = jnp.stack(
        [
            jnp.stack([t1, -t2, -t3]),
            jnp.stack([t2, 1 - k * t2 * t2, -k * t2 * t3]),
            jnp.stack([t3, -k * t2 * t3, 1 - k * t3 * t3]),
        ]
    )
    turn = se3.rotation_exp(jnp.zeros(3, U.dtype).at[0].set(alpha))
    zero = jnp.zeros((), U.dtype)
    eps, k1, k2, k3 = strains
    return u.at[0].add(x), bend @ turn, jnp.stack([eps, zero, zero, k1, k2, k3])


def _world(term: MovingBeamTerm, q: Coordinates, base: se3.Pose, s: Float[Array, " S"]):
    """Pose of every station (L, S): position, rotation."""
    x, d, y = term.split(q)
    poses = _carrier.frames(term.car, term.layout, x, base)
    rows = []
    for i, link in enumerate(term.robot.links):
        if i in term.layout.tubes:
            k = term.layout.tubes.index(i)
            r, R, _ = jax.vmap(lambda s, k=k: _section(term, d, y, k, s))(s)
            frame = poses[-1]
        else:
            at = jax.vmap(lambda s, link=link: centreline_pose(link, s))(s)
            r, R = at.position, at.rotation
            frame = poses[next(n for n, stage in enumerate(term.layout.stages) if stage.link == i)]
        rows.append(
            (
                frame.position[None] + r @ frame.rotation.T,
                jnp.einsum("ij,sjk->sik", frame.rotation, R),
            )
        )
    return jnp.stack([p for p, _ in rows]), jnp.stack([R for _, R in rows])


def _spin(R: Float[Array, "*n 3 3"], R_rate: Float[Array, "*n 3 3"]):
    """Angular velocity in section axes."""
    W = jnp.einsum("...ji,...jk->...ik", R, R_rate)
    return jnp.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], -1)


def _base_rates(pose: se3.Pose, twist: Float[Array, "6"]):
    """Time derivative of the ground's pose."""
    return se3.Pose(jnp.cross(pose.rotation, -twist[3:][None]), pose.rotation @ twist[:3])


def snapshot(
    term: MovingBeamTerm, t: ScalarLike, state: State, s: Float[Array, " S"], at: PieceTime
) -> Snapshot:
    lay, robot = term.layout, term.robot
    q, v = state.mech.q, state.mech.v
    a, gap = term.dynamics(t, q, v, at, state.memory)
    x, xd = q[: lay.dofs], v[: lay.dofs]
    effort = jnp.where(
        term.drive.prescribed(robot),
        gap[: lay.dofs],
        term.drive.effort(robot, t, at, x, xd, state.memory),
    )
    base, twist, acc = term.base(t, at)

    def velocity(q, v, base, twist):
        (_, R), (rate, R_rate) = jax.jvp(
            lambda q, base: _world(term, q, base, s), (q, base), (v, _base_rates(base, twist))
        )
        return rate, _spin(R, R_rate)

    p, R = _world(term, q, base, s)
    (rate, spin), (rate2, spin2) = jax.jvp(
        velocity, (q, v, base, twist), (v, a, _base_rates(base, twist), acc)
    )

    def local(w):
        return jnp.einsum("...ji,...j->...i", R, w)

    _, d, y = term.split(q)
    strain = []
    for i in range(len(robot.links)):
        if i in lay.tubes:
            strain.append(
                jax.vmap(lambda s, i=i: _section(term, d, y, lay.tubes.index(i), s)[2])(s)
            )
        else:
            strain.append(jnp.zeros((s.shape[0], 6), q.dtype))
    return Snapshot(
        q=x, qd=xd, qdd=a[: lay.dofs], motor=x, effort=effort,
        frames=jnp.concatenate([p, jax.vmap(jax.vmap(se3.matrix_to_quat))(R)], axis=-1),
        velocity=jnp.concatenate([local(rate), spin], -1), acceleration=jnp.concatenate([local(rate2), spin2], -1),
        deflection=_deflection(term, d, y, s), strain=jnp.stack(strain), reaction=reactions(term, t, q, v, a, at),
    )  # fmt: skip


def _deflection(
    term: MovingBeamTerm, d: Float[Array, " m"], y: Float[Array, "n u"], s: Float[Array, " S"]
):
    """From the tangent at the base of the link (of a tube: where its rear end is now), in the axes there."""
    rows = []
    for i, link in enumerate(term.robot.links):
        if i not in term.layout.tubes:
            rows.append(jnp.zeros((s.shape[0], 3), y.dtype))
            continue
        k = term.layout.tubes.index(i)
        origin, R, _ = _section(term, d, y, k, jnp.zeros((), y.dtype))
        r = jax.vmap(lambda s, k=k: _section(term, d, y, k, s)[0])(s)
        straight = jnp.zeros((s.shape[0], 3), y.dtype).at[:, 0].set(s * link.length)
        rows.append((r - origin[None]) @ R - straight)
    return jnp.stack(rows)


def _momenta(
    term: MovingBeamTerm, q: Coordinates, v: Velocities, base: se3.Pose, twist: Float[Array, "6"]
) -> Float[Array, "groups 6"]:
    """[linear; angular about the world's origin] of the stages' bodies and then of the tubes with their payloads, in world axes."""
    lay = term.layout
    x, d, y = term.split(q)
    xd, dd, yd = term.split(v)
    poses = _carrier.frames(term.car, lay, x, base)
    z, spins = _carrier.twists(term.car, lay, x, xd, twist)
    out = []
    for k, pose in enumerate(poses):
        P = term.car.inertia[k] @ z[k]
        # The rotor of the next joint sits on this body.
        if k + 1 < len(poses):
            P = P.at[3:].add(term.car.rotor[k + 1] * spins[k + 1] * term.car.rotor_axis[k + 1])
        out.append(_to_world(pose, P))
    for tube in range(len(lay.tubes)):
        member = np.zeros(term.arm.rhoA.shape)
        n = 0
        for seg in lay.segments:
            member[n : n + seg.elements, : len(seg.layers)] = [x == tube for x in seg.layers]
            n += seg.elements
        own = _only(term, member, tube)

        out.append(
            _to_world(
                poses[-1], jax.grad(lambda zG, own=own: _tube_energy(own, d, y, dd, yd, zG))(z[-1])
            )
        )
    return jnp.stack(out)


def _tube_energy(
    own: MovingBeamTerm,
    d: Float[Array, " m"],
    y: Float[Array, "n u"],
    dd: Float[Array, " m"],
    yd: Float[Array, "n u"],
    zG: Float[Array, "6"],
):
    r = _link.Rates(zG, dd, yd)
    total = _link.kinetic(own.arm, d, y, jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), r))
    for k in range(len(own.tip.tube)):
        u, w = own._payload_velocity(k, d, y, r)
        total = (
            total
            + 0.5 * own.tip.mass[k] * jnp.sum(u * u)
            + 0.5 * jnp.sum(w * (own.tip.inertia[k] @ w))
        )
    return total


def _only(term: MovingBeamTerm, member: Any, tube: int) -> MovingBeamTerm:
    """The term with the inertia of one tube and its payloads."""
    arm, tip = term.arm, term.tip
    keep = [k for k in range(len(tip.tube)) if tip.tube[k] == tube]
    member = jnp.asarray(member, arm.rhoA.dtype)
    arm = eqx.tree_at(
        lambda a: (a.rhoA, a.rhoI), arm, (arm.rhoA * member, arm.rhoI * member[:, :, None])
    )
    if arm.rear is not None and tube != 0:
        arm = eqx.tree_at(lambda a: a.rear, arm, jnp.zeros_like(arm.rear))
    tip = _carrier.Tip(
        *(
            tuple(getattr(tip, f)[k] for k in keep)
            for f in ("tube", "s", "mass", "offset", "inertia")
        )
    )
    return eqx.tree_at(lambda t: (t.arm, t.tip), term, (arm, tip))


def _to_world(pose: se3.Pose, P: Float[Array, "6"]):
    """A momentum about a frame, in its axes, as one about the world's origin in world axes."""
    p, H = pose.rotation @ P[:3], pose.rotation @ P[3:]
    return jnp.concatenate([p, H + jnp.cross(pose.position, p)])


def reactions(
    term: MovingBeamTerm, t: ScalarLike, q: Coordinates, v: Velocities, a: Velocities, at: PieceTime
) -> Float[Array, "J 6"]:
    """Wrench of parent on child at each joint, child axes. Of a telescope joint: all that the outer tube does to the inner one (the overlap is
    bonded), taken at the outer tube's end."""
    lay, robot = term.layout, term.robot
    base, twist, acc = term.base(t, at)
    # Weight as the inertia force of a ground that accelerates by -g: momenta are linear in velocities, so one sweep gives both.
    acc = acc.at[:3].add(-base.rotation.T @ robot.gravity)
    need = jax.jvp(
        lambda q, v, b, z: _momenta(term, q, v, b, z),
        (q, v, base, twist),
        (v, a, _base_rates(base, twist), acc),
    )[1]
    if term.drive.loads:
        need = need - _load_wrenches(term, t, q, base, at, len(need))
    x, d, y = term.split(q)
    poses = _carrier.frames(term.car, lay, x, base)
    stages = len(lay.stages)
    out = []
    for i in range(len(robot.joints)):
        mine = [k for k, stage in enumerate(lay.stages) if stage.joint == i]
        if mine:
            wrench, pose = jnp.sum(need[mine[0] :], 0), poses[mine[-1]]
        else:
            tube = lay.tubes.index(robot.link_index(robot.joints[i].child))
            wrench = jnp.sum(need[stages + tube :], 0)
            r, R, _ = _section(term, d, y, tube - 1, jnp.ones((), q.dtype))
            pose = se3.compose(poses[-1], se3.Pose(R, r))
        moment = wrench[3:] - jnp.cross(pose.position, wrench[:3])
        out.append(jnp.concatenate([pose.rotation.T @ wrench[:3], pose.rotation.T @ moment]))
    return jnp.stack(out)


def _load_wrenches(
    term: MovingBeamTerm, t: ScalarLike, q: Coordinates, base: se3.Pose, at: PieceTime, groups: int
) -> Array:
    """Loads on the groups of :func:`_momenta`, about the world's origin."""
    lay, robot = term.layout, term.robot
    total = jnp.zeros((groups, 6), q.dtype)
    x, d, y = term.split(q)
    poses = _carrier.frames(term.car, lay, x, base)
    for load in term.drive.loads:
        link = robot.link_index(load.link)
        w = load.wrench.evaluate(t, at)[0]
        if link in lay.tubes:
            k = lay.tubes.index(link)
            r, theta = _link.point(term.arm, d, y, k, load.s)
            row, frame, section = len(lay.stages) + k, poses[-1], se3.rotation_exp(theta)
        else:
            row = next(n for n, stage in enumerate(lay.stages) if stage.link == link)
            place = centreline_pose(robot.links[link], load.s)
            r, section, frame = place.position, place.rotation, poses[row]
        if load.frame == "section":
            turn = frame.rotation @ section
            w = jnp.concatenate([turn @ w[:3], turn @ w[3:]])
        position = frame.position + frame.rotation @ r
        total = total.at[row].add(jnp.concatenate([w[:3], w[3:] + jnp.cross(position, w[:3])]))
    return total
