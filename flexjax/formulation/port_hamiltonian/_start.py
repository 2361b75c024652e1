"""States from independent values: poses from coordinates and strains, twists from rates, and the
initial state with its loops closed."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from flexjax._types import Coordinates, PieceTime, Scalar, ScalarLike, Velocities
from flexjax.formulation.port_hamiltonian import _loops
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._parameters import Structure
from flexjax.mechanism import (
    Curve,
    Start,
    ambient_rate,
    directions,
    joint_configuration,
    joint_start,
    untwisted,
)
from flexjax.numerics.linalg._components_first import eye_like, mm, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import (
    ad,
    orientation_matrix,
    orientation_rate,
    resolvent,
)
from flexjax.numerics.term import PortState, PortTangent

# Newton's method on the closure of loops: quadratic, and a start is close to closed.
_CLOSURE_ITERATIONS = 12

Strains = Float[Array, "d L N"]


def assemble(
    arm: Assembly,
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    nodes: Float[Array, "d L N"],
    Q: Strains,
    piece_time: PieceTime,
) -> PortState:
    """The state with poses from coordinates and strains, and base twists from the joints."""
    orientation, x = arm.shape(t, q, Q, piece_time)
    probe = PortState(q, v, jnp.concatenate([nodes[:, :, :1], nodes], axis=2), Q, orientation, x)
    joint, ground = arm.joint_stage(probe, orientation_matrix(orientation), None, t, piece_time)
    V0, _ = arm.base_twists(joint, None, ground, arm.structure.to_joints(v), nodes[:, :, -1])
    return PortState(q, v, jnp.concatenate([V0[:, :, None], nodes], axis=2), Q, orientation, x)


def complete(arm: Assembly, t: ScalarLike, mech: PortState, piece_time: PieceTime) -> PortState:
    """The state with prescribed joints, base and poses of the drive at time ``t``."""
    value, rate, _ = arm.prescribed(t, piece_time)
    q = arm.move(mech.q, jnp.where(arm.locked, value - arm.plain(mech.q), 0.0))
    v = jnp.where(arm.locked, rate, mech.v)
    return assemble(arm, t, q, v, mech.V[:, :, 1:], mech.Q, piece_time)


def ambient(arm: Assembly, mech: PortState, dx: PortTangent) -> PortState:
    """Time derivative of the state along ``dx``; poses move with their twists."""
    structure = arm.structure
    lin = structure.lin
    R, zero = orientation_matrix(mech.orientation), jnp.zeros((), mech.v.dtype)
    joint, ground = arm.joint_stage(mech, R, zero, zero, None)

    def base(v, ends, time):
        return arm.base_twists(joint, time, ground, structure.to_joints(v), ends)[0]

    at, along = (mech.v, mech.V[:, :, -1], zero), (dx.v, dx.V[:, :, -1], jnp.ones_like(zero))
    V0 = jax.jvp(base, at, along)[1]
    return PortState(
        q=ambient_rate(structure.coordinates, mech.q, dx.q),
        v=dx.v,
        V=jnp.concatenate([V0[:, :, None], dx.V], axis=2),
        Q=dx.Q,
        orientation=orientation_rate(mech.orientation, mech.V[lin:]),
        x=mv(R, mech.V[:lin]),
    )


def state_of(
    arm: Assembly,
    t: ScalarLike,
    q: Coordinates,
    v: Velocities,
    Q: Strains,
    Q_rate: Strains,
    piece_time: PieceTime,
) -> PortState:
    """The state with poses from coordinates and strains, and twists from their rates.

    Along each link E+ V_k = E- V_{k-1} + Q'.
    """
    structure = arm.structure
    orientation, x = arm.shape(t, q, Q, piece_time)
    still = jnp.zeros((structure.dim, structure.links, structure.elements + 1), q.dtype)
    probe = PortState(q, v, still, Q, orientation, x)
    joint, ground = arm.joint_stage(probe, orientation_matrix(orientation), None, t, piece_time)
    kappa = Q + arm.parameters.elements.rest
    a = 0.5 if arm.parameters.alpha is None else arm.parameters.alpha
    # In closed form: the reverse mode of a batched LAPACK solve fails to run in some programs
    # (jaxlib 0.10.1, "untyped custom call to lapack_dtrsm_ffi").
    inverse, cross = resolvent((1 - a) * kappa), ad(kappa)
    maps, strained = mm(inverse, eye_like(cross) - a * cross), mv(inverse, Q_rate)
    # Rows (L, N, ...): scans run along links and nodes.
    rows = jnp.moveaxis(maps, (2, 3), (0, 1)), jnp.moveaxis(strained, 0, -1)

    def along(V0, maps, strained):
        def step(V, row):
            V = mv(row[0], V) + row[1]
            return V, V

        return lax.scan(step, V0, (maps, strained))[1]

    def tip(V0, rigid, maps, strained):
        return jnp.where(rigid, V0, along(V0, maps, strained)[-1])

    V0, _ = arm.outward(joint, None, ground, structure.to_joints(v), tip, *rows)
    nodes = jnp.moveaxis(jax.vmap(along, in_axes=(1, 0, 0))(V0, *rows), -1, 0)
    if any(structure.rigid):
        nodes = jnp.where(np.array(structure.rigid)[None, :, None], 0.0, nodes)
    return PortState(q, v, jnp.concatenate([V0[:, :, None], nodes], axis=2), Q, orientation, x)


# --- the initial state
def initial_state(arm: Assembly, t0: ScalarLike, start: Start) -> PortState:
    """The state at ``t0``, with loops closed by the joints that nothing else fixes."""
    structure, robot = arm.structure, arm.robot
    x, xd, xm, xmd = joint_start(robot, arm.drive, t0, start)
    q = joint_configuration(structure.coordinates, x, xm)
    v = jnp.concatenate([xd, xmd[np.array(structure.coordinates.motors, int)]])
    Q, Q_rate = _strains(arm, start)
    if arm.plans:
        q = _close(arm, t0, q, Q, start.names(robot, "joints"))
        v = _close_rates(arm, t0, q, v, Q, Q_rate, start.names(robot, "rates"))
    return state_of(arm, t0, q, v, Q, Q_rate, None)


def _strains(arm: Assembly, start: Start) -> tuple[Strains, Strains]:
    """Strains of the elements and their rates: rotations of the links that ``start`` names."""
    structure, lin = arm.structure, arm.structure.lin
    shape = (structure.dim, structure.links, structure.elements)
    Q = Q_rate = jnp.zeros(shape, arm.robot.gravity.dtype)
    elastic = lambda i: not structure.rigid[i]
    for i, bent in start.shapes(arm.robot, elastic, "PortHamiltonian").items():
        length = arm.robot.links[i].length
        angles, rate = bent.push(lambda curve, length=length: _rotations(curve, structure, length))
        Q, Q_rate = Q.at[lin:, i].set(angles), Q_rate.at[lin:, i].set(rate)
    return Q, Q_rate


def _rotations(curve: Curve, structure: Structure, length: Scalar) -> Float[Array, "a N"]:
    """Rotation from node to node of a deflected link, in the axes of the former."""
    slope = curve(np.arange(structure.elements + 1) / structure.elements)[1] / length
    if structure.planar:
        return jnp.diff(jnp.arcsin(slope[0]))[None]
    R = untwisted(directions(slope))
    return jax.vmap(lambda a, b: se3.rotation_log(a.T @ b), out_axes=1)(R[:-1], R[1:])


def _movable(arm: Assembly, named: Bool[np.ndarray, " D"]) -> np.ndarray:
    """Indices of the coordinates that close the loops: those that neither a Motion nor the start
    fixes; all but the prescribed ones if that leaves none."""
    prescribed = arm.drive.prescribed(arm.robot)
    free = ~prescribed & ~named
    return np.flatnonzero(free if free.any() else ~prescribed)


def _close(
    arm: Assembly, t0: ScalarLike, q: Coordinates, Q: Strains, named: Bool[np.ndarray, " D"]
) -> Coordinates:
    """``q`` with movable joints moved until the loops close."""
    structure = arm.structure
    columns, zero = _movable(arm, named), jnp.zeros(structure.coordinates.nv, q.dtype)
    ground = arm.ground(t0, None)

    def gaps(dv: Velocities, q: Coordinates) -> Float[Array, " m"]:
        orientation, x = arm.shape(t0, arm.move(q, dv), Q, None)
        R = orientation_matrix(orientation)
        V = jnp.zeros((structure.dim, *x.shape[1:]), q.dtype)
        found = []
        for k, plan in enumerate(arm.plans):
            parent, child = arm.loop_sides(k, V, R, x, ground)
            found.append(_loops.gap(plan, arm.loops[k], parent.R, parent.x, child.R, child.x))
        return jnp.concatenate(found)

    def correct(q, _):
        J = jax.jacfwd(gaps)(zero, q)[:, columns]
        step = jnp.linalg.lstsq(J, gaps(zero, q), rcond=1e-10)[0]
        return arm.move(q, zero.at[columns].set(-step)), None

    # Newton on values, then one differentiable correction: the derivative of the closed position.
    closed = lax.scan(correct, lax.stop_gradient(q), None, length=_CLOSURE_ITERATIONS)[0]
    if not structure.coordinates.balls:
        moved = np.zeros(structure.coordinates.nq, bool)
        moved[structure.coordinates.q_of_v()[columns]] = True
        closed = jnp.where(moved, closed, q)
    return correct(closed, None)[0]


def _close_rates(
    arm: Assembly,
    t0: ScalarLike,
    q: Coordinates,
    v: Velocities,
    Q: Strains,
    Q_rate: Strains,
    named: Bool[np.ndarray, " D"],
) -> Velocities:
    """``v`` with movable rates changed so that no loop opens."""
    orientation, x = arm.shape(t0, q, Q, None)
    R, ground = orientation_matrix(orientation), arm.ground(t0, None)
    zero = jnp.zeros((), q.dtype)

    def opening(v: Velocities) -> Float[Array, " m"]:
        V = state_of(arm, t0, q, v, Q, Q_rate, None).V
        found: list[Array] = []
        for k, plan in enumerate(arm.plans):
            parent, child = arm.loop_sides(k, V, R, x, ground)
            found.append(_loops.opening(plan, arm.loops[k], parent, child, zero))
        return jnp.concatenate(found)

    columns = _movable(arm, named)
    J = jax.jacfwd(opening)(v)[:, columns]
    step = jnp.linalg.lstsq(J, opening(v), rcond=1e-10)[0]
    return v.at[columns].add(-step)
