"""The structured Newton matrix of a stage: block-tridiagonal links, joints eliminated in passing,
loops as borders."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from flexjax.formulation.port_hamiltonian import _algebra, _joint, _loops
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._forces import joint_forces
from flexjax.formulation.port_hamiltonian._lanes import lanes, unlanes
from flexjax.formulation.port_hamiltonian._loops import Side
from flexjax.formulation.port_hamiltonian._stage import (
    Evaluation,
    NewtonMatrix,
    Stage,
    Unknowns,
    bases,
    complete,
    interconnection,
    outwards,
    residual,
    sides,
)
from flexjax.numerics.linalg._batch_last import vmap_last, widened
from flexjax.numerics.linalg._block_tridiagonal import LinkedBlocks, solve_grounded


def linearise(arm: Assembly, stage: Stage, u: Unknowns) -> tuple[Unknowns, NewtonMatrix]:
    V, parents = outwards(arm, stage, u)
    return _linearised(
        arm, stage, u, V, parents, (stage.nodes.rows(lanes(V)), stage.nodes.blocks(lanes(V)))
    )


def corrections(arm: Assembly, stage: Stage, u: Unknowns, batched, size: int) -> Unknowns:
    """Newton's corrections of a batch of stages: the last axis of all of ``u``, and of those leaves
    of (arm, stage) that ``batched`` marks. Nodes and elements are worked on with the batch
    innermost, which XLA vectorises on CPU; joints go through vmap, and so do the rows of mechanisms
    of several links."""

    def each(fn, *args):
        return vmap_last(
            fn, (*batched, *jax.tree_util.tree_map(lambda _: True, args)), arm, stage, *args
        )

    V0, parents = each(bases, u.joints, u.nodes[:, -1])
    V = jnp.concatenate([V0[:, None], u.nodes], axis=1)
    wide = widened(stage.nodes, batched[1].nodes, size)
    # The barrier: one copy with the batch innermost, instead of one in every kernel.
    inside = lax.optimization_barrier(jnp.moveaxis(V, 2, 0))
    begun = wide.begin(inside)
    (rows, Q, loss), blocks = wide.rows(inside, begun), wide.blocks(inside, begun)
    if arm.st.links > 1 or arm.plans or any(arm.st.rigid):
        return each(
            lambda *args: _solved(_linearised(*args)), u, V, parents, ((rows, Q, loss), blocks)
        )

    def joint(arm, stage, y, V0, parents, F):
        """What the elimination needs of the joint on the ground: (B, A, T) and its residual."""
        alone = Unknowns(y, jnp.zeros((1, 0, V0.shape[1]), y.dtype), jnp.zeros(0, y.dtype))
        e = complete(
            arm,
            stage,
            alone,
            V0[:, None],
            parents,
            (F[:, :, None], jnp.zeros((V0.shape[1], 1, 0), y.dtype), jnp.zeros((), y.dtype)),
        )
        _, B, A, T, *_ = joint_blocks(arm, stage, alone, e)
        return B[0], A[0], T[0], interconnection(arm, stage, alone, e)[0][0]

    lower, diag, upper = (jnp.moveaxis(x[:, :, 0], 2, 0) for x in blocks)
    y, nodes = solve_grounded(
        lower,
        diag,
        upper,
        jnp.moveaxis(rows[:, 0], 1, 0),
        *each(joint, u.joints, V0, parents, rows[:, :, 0]),
    )
    return Unknowns(y[None], nodes[None], u.loops)


def _solved(linearised):
    r, matrix = linearised
    return matrix.solve(r)


def _linearised(
    arm: Assembly, stage: Stage, u: Unknowns, V, parents, along
) -> tuple[Unknowns, NewtonMatrix]:
    st = arm.st
    rows, blocks = along
    e = complete(arm, stage, u, V, parents, rows)
    lower, diag, upper = (unlanes(x, 2) for x in blocks)
    columns, rows, diag = loop_blocks(arm, stage, u, V, diag)
    X, B, A, T, S, Y, Z, E = joint_blocks(arm, stage, u, e)
    corner = jnp.zeros((u.loops.shape[0],) * 2, V.dtype)
    blocks = LinkedBlocks(
        lower,
        diag,
        upper,
        X,
        B,
        A,
        T,
        S,
        Y,
        Z,
        E,
        columns,
        rows,
        corner,
        st.parents,
        st.order,
        st.rigid,
    )
    return residual(arm, stage, u, e), NewtonMatrix(blocks)


def joint_blocks(arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation):
    st, h, rotors = arm.st, stage.h, arm.rotors

    def one(j, s, Vp, y, F):
        return _joint.derivatives(j, s, h, Vp, y, F, rotors)

    (X, B), (E, Z, Y), (S, T, A) = jax.vmap(one)(
        arm.num.joints, stage.joint, e.parent, u.joints, e.rows[:, 0]
    )
    live, locked = arm.masks()
    free = (live & ~locked)[..., None]

    def forces(y):
        v = arm.collect(y)
        return arm.spread(
            joint_forces(
                arm, stage.t, arm.move_q(stage.start.q, h * v), v, stage.piece_time, stage.memory
            ).total
        )

    eye = _algebra.eye_like(T)
    if not arm.joint_hardware:
        return (
            X,
            B,
            jnp.where(free, A, 0.0),
            jnp.where(free, T, eye),
            jnp.where(free, S, 0.0),
            Y,
            Z,
            E,
        )

    def slope(c):
        return jax.jvp(
            forces, (u.joints,), (jnp.broadcast_to(jnp.asarray(c, T.dtype), u.joints.shape),)
        )[1]

    unit = np.eye(st.unknowns)
    # One by one they fuse with their neighbours; where they are many, they would be most of the
    # program.
    T = T - (
        jnp.stack([slope(c) for c in unit], axis=-1)
        if st.unknowns < 3
        else jax.vmap(slope, out_axes=-1)(unit)
    )
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
            sides = (
                Side(Vp, parent.R, parent.x, parent.lever),
                Side(Vc, child.R, child.x, child.lever),
            )
            return _loops.rows(plan, numbers, stage.h, stage.factor, *sides)

        def holding(Vp, Vc, value, plan=plan, numbers=numbers, parent=parent, child=child):
            sides = (
                Side(Vp, parent.R, parent.x, parent.lever),
                Side(Vc, child.R, child.x, child.lever),
            )
            return _loops.wrenches(plan, numbers, stage.h, *sides, value)

        rp, rc = jax.jacfwd(closing, argnums=(0, 1))(parent.V, child.V)
        (pp, _, cp), (_, cc, cl) = jax.jacfwd(holding, argnums=(0, 1, 2))(
            parent.V, child.V, u.loops[here]
        )
        for link, end, row, own, column in (
            (plan.parent, plan.parent_end, rp, pp, cp),
            (plan.child, plan.child_end, rc, cc, cl),
        ):
            if link >= 0:
                rows = rows.at[link, end, here].add(row)
                columns = columns.at[link, end, :, here].add(column)
                diag = diag.at[link, 0 if end == 0 else -1].add(own)
    return columns, rows, diag
