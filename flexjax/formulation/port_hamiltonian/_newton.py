"""The structured Newton matrix of a stage: block-tridiagonal links, joints eliminated in passing, loops as borders."""

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.formulation.port_hamiltonian import _algebra, _joint, _loops
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._forces import joint_forces
from flexjax.formulation.port_hamiltonian._lanes import lanes, unlanes
from flexjax.formulation.port_hamiltonian._loops import Side
from flexjax.formulation.port_hamiltonian._stage import Evaluation, NewtonMatrix, Stage, Unknowns, complete, outwards, residual, sides
from flexjax.solver._block_tridiagonal import LinkedBlocks


def linearise(arm: Assembly, stage: Stage, u: Unknowns) -> tuple[Unknowns, NewtonMatrix]:
    st = arm.st
    V, parents = outwards(arm, stage, u)
    e = complete(arm, stage, u, V, parents, stage.nodes.rows(lanes(V)))
    lower, diag, upper = (unlanes(x, 2) for x in stage.nodes.blocks(lanes(V)))
    columns, rows, diag = loop_blocks(arm, stage, u, V, diag)
    X, B, A, T, S, Y, Z, E = joint_blocks(arm, stage, u, e)
    corner = jnp.zeros((u.loops.shape[0],) * 2, V.dtype)
    blocks = LinkedBlocks(lower, diag, upper, X, B, A, T, S, Y, Z, E, columns, rows, corner, st.parents, st.order, st.rigid)
    return residual(arm, stage, u, e), NewtonMatrix(blocks)


def joint_blocks(arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation):
    st, h, rotors = arm.st, stage.h, arm.rotors

    def one(j, s, Vp, y, F):
        return _joint.derivatives(j, s, h, Vp, y, F, rotors)

    (X, B), (E, Z, Y), (S, T, A) = jax.vmap(one)(arm.num.joints, stage.joint, e.parent, u.joints, e.rows[:, 0])
    live, locked = arm.masks()
    free = (live & ~locked)[..., None]

    def forces(y):
        v = arm.collect(y)
        return arm.spread(joint_forces(arm, stage.t, arm.move_q(stage.start.q, h * v), v, stage.args, stage.memory).total)

    eye = _algebra.eye_like(T)
    if not arm.joint_hardware:
        return X, B, jnp.where(free, A, 0.0), jnp.where(free, T, eye), jnp.where(free, S, 0.0), Y, Z, E
    unit = np.eye(st.unknowns)
    slopes = [jax.jvp(forces, (u.joints,), (jnp.broadcast_to(jnp.asarray(c, T.dtype), u.joints.shape),))[1] for c in unit]
    T = T - jnp.stack(slopes, axis=-1)
    return X, B, jnp.where(free, A, 0.0), jnp.where(free, T, eye), jnp.where(free, S, 0.0), Y, Z, E


def loop_blocks(arm: Assembly, stage: Stage, u: Unknowns, V, diag):
    st, count = arm.st, u.loops.shape[0]
    columns = jnp.zeros((st.links, 2, st.dim, count), V.dtype)
    rows = jnp.zeros((st.links, 2, count, st.dim), V.dtype)
    for k, plan in enumerate(arm.plans):
        parent, child = sides(arm, stage, V, k)
        here = slice(plan.start, plan.start + plan.count)
        numbers = arm.loops[k]

        def closing(Vp, Vc, plan=plan, numbers=numbers, parent=parent, child=child):
            sides = Side(Vp, parent.R, parent.x, parent.lever), Side(Vc, child.R, child.x, child.lever)
            return _loops.rows(plan, numbers, stage.h, stage.factor, *sides)

        def holding(Vp, Vc, value, plan=plan, numbers=numbers, parent=parent, child=child):
            sides = Side(Vp, parent.R, parent.x, parent.lever), Side(Vc, child.R, child.x, child.lever)
            return _loops.wrenches(plan, numbers, stage.h, *sides, value)

        rp, rc = jax.jacfwd(closing, argnums=(0, 1))(parent.V, child.V)
        (pp, _, cp), (_, cc, cl) = jax.jacfwd(holding, argnums=(0, 1, 2))(parent.V, child.V, u.loops[here])
        for link, end, row, own, column in ((plan.parent, plan.parent_end, rp, pp, cp), (plan.child, plan.child_end, rc, cc, cl)):
            if link >= 0:
                rows = rows.at[link, end, here].add(row)
                columns = columns.at[link, end, :, here].add(column)
                diag = diag.at[link, 0 if end == 0 else -1].add(own)
    return columns, rows, diag
