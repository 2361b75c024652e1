"""The first state: joints and links as told, loops closed by the joints that nothing else fixes,
rates that open no loop."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from flexjax.formulation.port_hamiltonian import _loops
from flexjax.formulation.port_hamiltonian._algebra import rotate_by, turn_matrix
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._dynamics import assemble, node_twists
from flexjax.formulation.port_hamiltonian._structure import Structure
from flexjax.mechanism import Curve, Start, directions, untwisted
from flexjax.numerics.screw import se3
from flexjax.numerics.term import PortState

# Newton's method on the closure of loops: quadratic, and a start is close to closed.
_CLOSURE_ITERATIONS = 12


def first_state(arm: Assembly, t0, start: Start) -> PortState:
    st, robot = arm.st, arm.robot
    x, xd, xm = start.vectors(robot)
    motors = np.array([st.v_start[i] for i in st.motors], int)
    target, rate, _ = arm.drive.motion(robot, t0, None)
    prescribed = arm.drive.prescribed(robot)
    # Under a Motion a flexible joint starts unstretched on its motor unless the start names it.
    named = {field: np.zeros(st.total_dofs, bool) for field in ("joints", "rates")}
    for field, mask in named.items():
        for joint, sl in robot.dof_slices().items():
            mask[sl] = joint in getattr(start, field)
    flexible = np.zeros(st.total_dofs, bool)
    flexible[motors] = True
    x = jnp.where(prescribed & ~(flexible & named["joints"]), target, x)
    xd = jnp.where(prescribed & ~(flexible & named["rates"]), rate, xd)
    xm = jnp.where(prescribed, target, xm)
    motor_rates = jnp.where(prescribed, rate, xd)

    q = jnp.zeros(st.nq, x.dtype)
    for v, at in enumerate(st.q_of_v()[: st.total_dofs]):
        if at >= 0:
            q = q.at[at].set(x[v])
    for _, at, v in st.balls():
        q = q.at[at : at + 4].set(se3.quat_exp(x[v : v + 3]))
    q = q.at[st.nq - len(motors) :].set(xm[motors]) if len(motors) else q
    v = jnp.concatenate([xd, motor_rates[motors]])
    Q, Q_rate = _strains(arm, start)
    if arm.plans:
        q, v = _close(arm, t0, q, v, Q, Q_rate, prescribed, named)
    return assemble(arm, t0, q, v, node_twists(arm, t0, q, v, Q, Q_rate, None), Q, None)


def _strains(arm: Assembly, start: Start):
    """(L, N, d) strains of the elements and their rates: of the links that ``start`` names,
    rotations alone."""
    st = arm.st
    Q = Q_rate = jnp.zeros((st.links, st.elements, st.dim), arm.robot.gravity.dtype)
    for i, shape in start.shapes(arm.robot, lambda i: not st.rigid[i], "PortHamiltonian").items():
        length = arm.robot.links[i].length
        turn, rate = shape.push(lambda curve, length=length: _turns(curve, st, length))
        Q, Q_rate = Q.at[i, :, st.lin :].set(turn), Q_rate.at[i, :, st.lin :].set(rate)
    return Q, Q_rate


def _turns(curve: Curve, st: Structure, length):
    """(N, 1 or 3) rotation from node to node of a deflected link, in the axes of the former."""
    slope = curve(np.arange(st.elements + 1) / st.elements)[1] / length
    if st.planar:
        return jnp.diff(jnp.arcsin(slope[0]))[:, None]
    R = untwisted(directions(slope))
    return jax.vmap(lambda a, b: se3.rotation_log(a.T @ b))(R[:-1], R[1:])


def _close(arm: Assembly, t0, q, v, Q, Q_rate, prescribed, named):
    """Move joints that neither a Motion nor the start fixes (all but the prescribed ones if that
    leaves none) until the loops close."""
    st = arm.st
    movable = ~prescribed & ~named["joints"]
    if not movable.any():
        movable = ~prescribed
    free = np.zeros(st.nv, bool)
    free[: st.total_dofs] = movable

    def gaps(dv, q=q):
        moved = arm.move_q(q, dv)
        turn, x = arm.shape(t0, moved, Q, None)
        R = turn_matrix(turn)
        ground_R, ground_x, _ = arm.ground(t0, None)
        found = []
        for plan, n in zip(arm.plans, arm.loops, strict=True):
            ends = []
            for link, end in ((plan.parent, plan.parent_end), (plan.child, plan.child_end)):
                at = 0 if end == 0 else -1
                ends += [ground_R, ground_x] if link < 0 else [R[link, at], x[link, at]]
            found.append(_loops.gap(plan, n, *ends))
        return jnp.concatenate(found)

    zero = jnp.zeros(st.nv, q.dtype)
    columns = np.flatnonzero(free)

    def correct(q, _):
        J = jax.jacfwd(lambda dv: gaps(dv, q))(zero)[:, columns]
        step = jnp.linalg.lstsq(J, gaps(zero, q), rcond=1e-10)[0]
        return arm.move_q(q, zero.at[columns].set(-step)), None

    # Newton on values, then one differentiable correction: the derivative of the closed position.
    closed = lax.scan(correct, lax.stop_gradient(q), None, length=_CLOSURE_ITERATIONS)[0]
    if st.balls():
        closed, _ = correct(closed, None)
    else:
        closed, _ = correct(jnp.where(_touched(st, columns), closed, q), None)
    opening, J = _opening(arm, t0, closed, v, Q, Q_rate)
    rates = np.zeros(st.nv, bool)
    rates[: st.total_dofs] = ~prescribed & ~named["rates"]
    if not rates.any():
        rates[: st.total_dofs] = ~prescribed
    columns = np.flatnonzero(rates)
    step = jnp.linalg.lstsq(J[:, columns], opening, rcond=1e-10)[0]
    return closed, v - zero.at[columns].set(step)


def _opening(arm: Assembly, t0, q, v, Q, Q_rate):
    """Rates at which the loops open, from the twists of the nodes, and their derivative with
    respect to v."""
    turn, x = arm.shape(t0, q, Q, None)
    R = turn_matrix(turn)
    ground_R, ground_x, ground_V = arm.ground(t0, None)
    zero, lin = jnp.zeros((), q.dtype), arm.st.lin

    def opening(v):
        V = assemble(arm, t0, q, v, node_twists(arm, t0, q, v, Q, Q_rate, None), Q, None).V
        found = []
        for plan, n in zip(arm.plans, arm.loops, strict=True):
            ends = []
            for link, end in ((plan.parent, plan.parent_end), (plan.child, plan.child_end)):
                at = 0 if end == 0 else -1
                ends.append(
                    (ground_R, ground_x, ground_V)
                    if link < 0
                    else (R[link, at], x[link, at], V[link, at])
                )

            def moved(time, plan=plan, n=n, ends=ends):
                poses = [
                    part
                    for R, x, W in ends
                    for part in (rotate_by(R, time * W[lin:]), x + time * (R @ W[:lin]))
                ]
                return _loops.gap(plan, n, *poses)

            found.append(jax.jvp(moved, (zero,), (jnp.ones_like(zero),))[1])
        return jnp.concatenate(found)

    return opening(v), jax.jacfwd(opening)(v)


def _touched(st, columns):
    mask = np.zeros(st.nq, bool)
    mask[st.q_of_v()[columns]] = True
    return mask
