"""Newton's matrix of a stage: block-tridiagonal links, joints eliminated in passing, loops as
borders."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from flexjax.formulation.port_hamiltonian import _joint, _loops
from flexjax.formulation.port_hamiltonian._assembly import Assembly
from flexjax.formulation.port_hamiltonian._loops import Borders, LoopPlan, Side
from flexjax.formulation.port_hamiltonian._stage import (
    Evaluation,
    LinkRows,
    Stage,
    Unknowns,
    base_twists,
    complete,
    interconnection,
    node_twists,
    residual,
    sides,
    stage_forces,
)
from flexjax.numerics.linalg._batch_last import vmap_last, widened
from flexjax.numerics.linalg._block_tridiagonal import LinkedBlocks, solve_grounded, solve_linked
from flexjax.numerics.linalg._components_first import components_first, components_last


class NewtonMatrix(eqx.Module):
    blocks: LinkedBlocks

    def solve(self, r: Unknowns) -> Unknowns:
        nodes = components_last(r.nodes)
        joints, nodes, loops = solve_linked(self.blocks, r.joints, nodes, r.loops)
        return Unknowns(joints, components_first(nodes), loops)

    def transpose(self) -> "NewtonMatrix":
        return NewtonMatrix(self.blocks.transpose())


def linearise(arm: Assembly, stage: Stage, u: Unknowns) -> tuple[Unknowns, NewtonMatrix]:
    """The residual and its derivative."""
    V, parents = node_twists(arm, stage, u)
    shared = stage.nodes.kinematics(V)
    rows, blocks = stage.nodes.residual(V, shared), stage.nodes.blocks(V, shared)
    return _linearised(arm, stage, u, V, parents, rows, blocks)


def corrections(
    arm: Assembly, stage: Stage, u: Unknowns, batched: tuple[PyTree, PyTree], size: int
) -> Unknowns:
    """Newton's corrections of a batch of stages in the plane.

    The batch is the last axis of all of ``u``, and of those leaves of (arm, stage) that ``batched``
    marks. XLA vectorises nodes and elements along it on CPU. Joints go through vmap, and so do the
    rows of mechanisms of several links.
    """

    def each(fn, *args):
        every = jax.tree.map(lambda _: True, args)
        return vmap_last(fn, (*batched, *every), arm, stage, *args)

    V0, parents = each(base_twists, u.joints, u.nodes[:, :, -1])
    # The barrier makes XLA copy once, instead of in every kernel.
    V = lax.optimization_barrier(jnp.concatenate([V0[:, :, None], u.nodes], axis=2))
    nodes = widened(stage.nodes, batched[1].nodes, size)
    shared = nodes.kinematics(V)
    rows, blocks = nodes.residual(V, shared), nodes.blocks(V, shared)
    if arm.structure.links > 1 or arm.plans or any(arm.structure.rigid):
        return each(lambda *args: _solved(*_linearised(*args)), u, V, parents, rows, blocks)
    lower, diagonal, upper = (jnp.moveaxis(x[:, :, 0], 2, 0) for x in blocks)
    joint = each(_ground_joint, u.joints, V0, parents, rows[0][:, :, 0])
    y, twists = solve_grounded(lower, diagonal, upper, jnp.moveaxis(rows[0][:, 0], 1, 0), *joint)
    return Unknowns(y[None], jnp.moveaxis(twists, 0, 1)[:, None], u.loops)


def _solved(r: Unknowns, matrix: NewtonMatrix) -> Unknowns:
    return matrix.solve(r)


def _ground_joint(
    arm: Assembly,
    stage: Stage,
    y: Float[Array, "1 n"],
    V0: Float[Array, "d 1"],
    parents: Float[Array, "d 1"],
    F: Float[Array, "d 1"],
) -> tuple[Array, Array, Array, Array]:
    """(B, A, T) and the residual of the joint on the ground, for one link."""
    d = V0.shape[0]
    alone = Unknowns(y, jnp.zeros((d, 1, 0), y.dtype), jnp.zeros(0, y.dtype))
    rows = F[:, :, None], jnp.zeros((d, 1, 0), y.dtype), jnp.zeros((), y.dtype)
    e = complete(arm, stage, alone, V0[:, :, None], parents, rows)
    _, B, A, T, *_ = joint_blocks(arm, stage, alone, e)
    return B[0], A[0], T[0], interconnection(arm, stage, alone, e)[0][0]


def _linearised(
    arm: Assembly,
    stage: Stage,
    u: Unknowns,
    V: Float[Array, "d L K"],
    parents: Float[Array, "d L"],
    rows: LinkRows,
    blocks: tuple[Array, Array, Array],
) -> tuple[Unknowns, NewtonMatrix]:
    structure = arm.structure
    e = complete(arm, stage, u, V, parents, rows)
    lower, diagonal, upper = (components_last(x, 2) for x in blocks)
    borders, diagonal = loop_blocks(arm, stage, u, V, diagonal)
    X, B, A, T, S, Y, Z, E = joint_blocks(arm, stage, u, e)
    matrix = LinkedBlocks(
        lower=lower,
        diag=diagonal,
        upper=upper,
        X=X,
        B=B,
        A=A,
        T=T,
        S=S,
        Y=Y,
        Z=Z,
        E=E,
        border_columns=borders.columns,
        border_rows=borders.rows,
        corner=jnp.zeros((u.loops.shape[0],) * 2, V.dtype),
        parents=structure.parents,
        order=structure.order,
        base_attached=structure.rigid,
    )
    return residual(arm, stage, u, e), NewtonMatrix(matrix)


def joint_blocks(
    arm: Assembly, stage: Stage, u: Unknowns, e: Evaluation
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """(X, B, A, T, S, Y, Z, E) of all joints; unit rows where a Motion fixes an unknown."""
    structure, rotors = arm.structure, arm.rotors

    def one(j, s, Vp, y, F):
        return _joint.derivatives(j, s, stage.h, Vp, y, F, rotors)

    each = jax.vmap(one, in_axes=(0, 0, 1, 0, 1))
    (X, B), (E, Z, Y), (S, T, A) = each(
        arm.parameters.joints, stage.joint, e.parent, u.joints, e.rows[:, :, 0]
    )
    if arm.joint_hardware:

        def slope(c):
            along = jnp.broadcast_to(jnp.asarray(c, T.dtype)[None], u.joints.shape)
            force = lambda y: structure.to_joints(stage_forces(arm, stage, y).total)
            return jax.jvp(force, (u.joints,), (along,))[1]

        unit = np.eye(structure.unknowns)
        # One by one they fuse with their neighbours. Many would be most of the program.
        if structure.unknowns < 3:
            T = T - jnp.stack([slope(c) for c in unit], axis=-1)
        else:
            T = T - jax.vmap(slope, out_axes=-1)(unit)
    live, locked = arm.masks()
    free = (live & ~locked)[..., None]
    A, S = jnp.where(free, A, 0.0), jnp.where(free, S, 0.0)
    eye = jnp.eye(structure.unknowns, dtype=T.dtype)[None]
    return X, B, A, jnp.where(free, T, eye), S, Y, Z, E


def loop_blocks(
    arm: Assembly,
    stage: Stage,
    u: Unknowns,
    V: Float[Array, "d L K"],
    diagonal: Float[Array, "L K d d"],
) -> tuple[Borders, Float[Array, "L K d d"]]:
    """The borders, and the diagonal blocks with the loops' own derivatives."""
    borders = Borders.of(arm.structure.links, V, u.loops.shape[0])
    for k, plan in enumerate(arm.plans):
        parent, child = sides(arm, stage, V, k)
        (rp, rc), (pp, _, cp), (_, cc, cl) = _loop_derivatives(
            arm, stage, plan, k, parent, child, u.loops[plan.own]
        )
        for link, node, (row, own, column) in plan.ends((rp, pp, cp), (rc, cc, cl)):
            if link >= 0:
                borders = borders.add(plan, link, node, row, column)
                diagonal = diagonal.at[link, node].add(own)
    return borders, diagonal


def _loop_derivatives(
    arm: Assembly,
    stage: Stage,
    plan: LoopPlan,
    k: int,
    parent: Side,
    child: Side,
    multipliers: Array,
):
    """Derivatives of the closure with respect to (Vp, Vc), and of the wrenches on parent and child
    with respect to (Vp, Vc, multipliers)."""

    def with_twists(Vp, Vc):
        return dataclasses.replace(parent, V=Vp), dataclasses.replace(child, V=Vc)

    def closing(Vp, Vc):
        return _loops.closure(plan, arm.loops[k], stage.h, stage.factor, *with_twists(Vp, Vc))

    def holding(Vp, Vc, value):
        both = with_twists(Vp, Vc)
        return _loops.constraint_wrenches(plan, arm.loops[k], stage.h, *both, value)

    on_parent, on_child = jax.jacfwd(holding, argnums=(0, 1, 2))(parent.V, child.V, multipliers)
    return jax.jacfwd(closing, argnums=(0, 1))(parent.V, child.V), on_parent, on_child
