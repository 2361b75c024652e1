"""Snapshots of a chain."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from flexjax._results import Status
from flexjax._types import Coordinates, PieceTime, ScalarLike
from flexjax.mechanism._snapshot import energy_of
from flexjax.mechanism.chain._term import ChainTerm
from flexjax.mechanism.chain.equations._records import InverseDynamics, KinematicState
from flexjax.mechanism.chain.geometry._kinematics import mv
from flexjax.mechanism.chain.geometry._links import AbstractSlidingLinks
from flexjax.numerics.screw import se3
from flexjax.numerics.term import Instant, State
from flexjax.robot import Robot


def spatial_pose(pose: se3.Pose, planar: bool) -> se3.Pose:
    """A pose of the plane as one of space."""
    if not planar:
        return pose
    up = jnp.asarray(np.diag([0.0, 0.0, 1.0]), pose.position.dtype)
    return se3.Pose(jnp.pad(pose.rotation, (0, 1)) + up, jnp.pad(pose.position, (0, 1)))


def spatial_vector(z: Float[Array, "*n dim"], planar: bool) -> Float[Array, "*n 6"]:
    """A planar twist or wrench (..., 3) as a spatial one (..., 6)."""
    if not planar:
        return z
    none = [(0, 0)] * (z.ndim - 1)
    return jnp.pad(z[..., :2], [*none, (0, 4)]) + jnp.pad(z[..., 2:], [*none, (5, 0)])


def point_acceleration(
    z: Float[Array, "*n 6"], z_dot: Float[Array, "*n 6"]
) -> Float[Array, "*n 6"]:
    """[acceleration of the point; angular acceleration] in body axes, from twist and its rate."""
    return z_dot + ahead(jnp.cross(z[..., 3:], z[..., :3]))


def ahead(linear: Float[Array, "*n 3"]) -> Float[Array, "*n 6"]:
    """Linear parts (..., 3) as vectors of six."""
    return jnp.pad(linear, [(0, 0)] * (linear.ndim - 1) + [(0, 3)])


def pick(x: Array, index: np.ndarray) -> Array:
    """Rows of x; no gather if they are all rows in order."""
    return x if len(index) == x.shape[0] and np.all(index == np.arange(len(index))) else x[index]


POSES = frozenset({"positions", "frames", "velocity", "acceleration"})
SECTIONS = POSES | {"deflection", "strain"}
# Outputs that need the accelerations.
DYNAMIC = frozenset({"qdd", "effort", "acceleration", "reaction"})


def chain_outputs(
    term: ChainTerm,
    t: ScalarLike,
    y: State,
    s: Float[Array, " S"],
    piece_time: PieceTime,
    names: frozenset[str],
) -> dict[str, Any]:
    """Fields of the snapshot and the energies, of one motion, and no sweep that they do not
    need."""
    layout, q, v = term.layout, y.mech.q, y.mech.v
    now = Instant(t, piece_time, y.memory)
    found: dict[str, Any] = {"q": term.coordinates(q), "qd": v[: layout.dofs]}
    found["motor"] = term.motor_coordinates(y)[0]
    if names & (SECTIONS | DYNAMIC | {"energy"}):
        motion = term.motion(now, q, v)
        if "energy" in names:
            energies = term.energies(now, q, v, motion)
            found["energy"] = energy_of(energies, y, term.bristle_energy(y))
        needs = None
        if names & DYNAMIC:
            a, frames_acceleration = term.forward(now, motion)
            needs = term.backward(now, motion, a, frames_acceleration)
            found["qdd"] = a[: layout.dofs]
            found["effort"] = _effort(term, now, y, needs)
            wrenches = spatial_vector(_wrenches(term, needs), layout.planar)
            found["reaction"] = _reactions(term, wrenches, q)
        if names & SECTIONS:
            section = lambda s: _sections(term, motion, needs, s, names)
            found |= jax.vmap(section, out_axes=1)(s)
    return {name: found[name] for name in names}


def _effort(term: ChainTerm, now: Instant, y: State, needs: InverseDynamics) -> Array:
    """Efforts of the drive (D,), motor side."""
    places, robot = term.layout.coordinates, term.robot
    gap = needs.tau - term.coordinate_force(now, y.mech.q, y.mech.v)
    xm, xmd = term.motor_coordinates(y)
    effort = term.drive.effort(robot, now.t, now.piece_time, xm, xmd, y.memory)
    wanted = gap[: places.dofs].at[np.array(places.motors, int)].set(gap[places.v_motors])
    return jnp.where(term.drive.prescribed(robot), wanted, effort)


def _unstressed(robot: Robot, s: ScalarLike) -> se3.Pose:
    """Poses of the undeformed sections at station ``s`` of all links (L), in one program."""
    zero = jnp.zeros(3, robot.gravity.dtype)
    length = jnp.stack([link.length for link in robot.links])
    if all(link.curvature is None for link in robot.links):
        straight = jnp.broadcast_to(jnp.eye(3, dtype=zero.dtype), (len(robot.links), 3, 3))
        return se3.Pose(straight, jnp.pad((length * s)[:, None], ((0, 0), (0, 2))))
    curved = [zero if link.curvature is None else link.curvature for link in robot.links]
    curvature = jnp.stack(curved)
    ahead = jnp.zeros_like(curvature).at[:, 0].set(1.0)
    return jax.vmap(se3.exp)(jnp.concatenate([ahead, curvature], axis=1) * (length * s)[:, None])


def _sections(
    term: ChainTerm,
    m: KinematicState,
    needs: InverseDynamics | None,
    s: ScalarLike,
    names: frozenset[str],
) -> dict[str, Array]:
    """Outputs ``names`` at station ``s`` of every link; ``needs`` for accelerations."""
    layout, robot, planar, links = term.layout, term.robot, term.layout.planar, term.links
    by_link = {stage.link: i for i, stage in enumerate(layout.stages) if stage.link >= 0}
    stage = np.array([by_link[k] for k in range(len(robot.links))])
    everywhere = jnp.broadcast_to(s, (len(layout.stages),))
    found: dict[str, Array] = {}

    def spatial_poses(pose):
        own = jax.tree.map(lambda x: pick(x, stage), pose)
        return jax.vmap(lambda p: spatial_pose(p, planar))(own)

    def spatial_vectors(x):
        return spatial_vector(pick(x, stage), planar)

    if names & {"deflection", "strain"}:
        zero = jnp.zeros((len(robot.links), 6), m.z.dtype)
        shown = zero[:, :3], zero
        if links is not None:
            shown = tuple(pick(x, stage) for x in links.strain(m.eta, everywhere))
        found["deflection"], found["strain"] = shown
    if not names & POSES:
        return found
    moving = bool(names & {"velocity", "acceleration"})
    world, section = spatial_poses(m.world), _unstressed(robot, s)
    deformation = deformation_rate = jnp.zeros((len(robot.links), 6), m.z.dtype)
    if links is not None:

        def twist(eta):
            tip = links.section(eta, everywhere)
            return mv(tip.S, m.rate), tip

        if not moving:
            tip = links.section(m.eta, everywhere)
        elif "acceleration" in names:
            assert needs is not None  # found for this output
            deformation, deformation_rate, tip = jax.jvp(twist, (m.eta,), (m.rate,), has_aux=True)
            deformation_rate = deformation_rate + mv(tip.S, needs.shape_acceleration)
            deformation_rate = spatial_vectors(deformation_rate)
        else:
            deformation, tip = twist(m.eta)
        if moving:
            deformation = spatial_vectors(deformation)
        flexible = np.array(layout.shapes)[stage] > 0
        section = jax.tree.map(
            lambda a, b: jnp.where(flexible.reshape((-1,) + (1,) * (a.ndim - 1)), a, b),
            spatial_poses(tip.pose),
            section,
        )
    pose = jax.vmap(se3.compose)(world, section)
    found["positions"] = pose.position
    if "frames" in names:
        found["frames"] = jax.vmap(se3.to_pose7)(pose)
    if moving:
        back = jax.vmap(se3.adjoint_inverse)(section)
        carried = mv(back, spatial_vectors(m.z))
        found["velocity"] = carried + deformation
    if "acceleration" in names:
        assert needs is not None
        acc = spatial_vectors(needs.acceleration)
        # The acceleration of the base contained gravity.
        acc = acc + ahead(jax.vmap(lambda R: R.T @ robot.gravity)(world.rotation))
        transported = jax.vmap(lambda a, b: se3.ad(a) @ b)(carried, deformation)
        accs = mv(back, acc) + transported + deformation_rate
        found["acceleration"] = point_acceleration(found["velocity"], accs)
    return found


def _wrenches(term: ChainTerm, needs: InverseDynamics) -> Array:
    """Wrenches of parents on children, with the inertia that their carriers include."""
    links = term.links
    lent = links.returned() if isinstance(links, AbstractSlidingLinks) else None
    if lent is None:
        return needs.W
    z = needs.motion.z
    transported = jax.vmap(lambda z, p: term.parameters.space.ad_star(z) @ p)(z, mv(lent, z))
    return needs.W + mv(lent, needs.acceleration) - transported


def _reactions(term: ChainTerm, W: Float[Array, "B 6"], q: Coordinates) -> Array:
    """Wrenches of parent on child at the joints, child axes (J, 6)."""
    stages, robot = term.layout.stages, term.robot
    last = [
        max((i for i, s in enumerate(stages) if s.joint == k), default=0)
        for k in range(len(robot.joints))
    ]
    out = pick(W, np.array(last))
    for k, joint in enumerate(robot.joints):
        if joint.telescopes and not stages[last[k]].extends:
            # The link's frame is at its rear end, length - free length behind the joint.
            ahead = robot.links[stages[last[k]].link].length - q[stages[last[k]].q_start]
            lever = jnp.zeros(3, q.dtype).at[0].set(ahead)
            out = out.at[k, 3:].add(-jnp.cross(lever, out[k, :3]))
    return out


def ran_off_link(term: ChainTerm, y: State) -> tuple[Array, Array]:
    """(status, joint index): a sliding joint must stay on its link, a link in its joint."""
    robot, q = term.robot, term.coordinates(y.mech.q)
    code, where = jnp.asarray(int(Status.ok), jnp.int32), jnp.asarray(-1, jnp.int32)
    slices = robot.dof_slices()
    for i, joint in enumerate(robot.joints):
        if joint.type == "sliding" and joint.parent != "ground":
            end = robot.links[robot.link_index(joint.parent)].length
        elif joint.telescopes:
            end = robot.links[robot.link_index(joint.child)].length
        else:
            continue
        d = q[slices[joint.name].start]
        start = jnp.zeros_like(d)
        if joint.type == "sliding":
            # A carrier that runs through a joint itself carries on its free length only.
            through = [j for j in robot.tree_joints if j.child == joint.parent and j.telescopes]
            start = end - q[slices[through[0].name].start] if through else start
        off = (d < start) | (d > end)
        code = jnp.where(off, int(Status.ran_off_link), code)
        where = jnp.where(off, i, where)
    return jax.lax.stop_gradient((code.astype(jnp.int32), where.astype(jnp.int32)))
