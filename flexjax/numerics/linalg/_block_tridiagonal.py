"""Trees of block-tridiagonal links with joints and loops: linear solves in O(nodes).

A link has nodes 0..N with unknowns V_k of dimension d and, for k = 1..N, the rows
    lower_k V_{k-1} + diag_k V_k + upper_k V_{k+1} = r_k
Its base node is no unknown. A joint with n unknowns y connects it to the parent's attachment node
(twist Vp), and row 0 gives the wrench F of the joint:
    V_0 = X Vp + B y          F = diag_0 V_0 + upper_0 V_1 - r_0
    joint rows:               A F + T y + S Vp = r_joint
    added to parent's row:    Y F + Z y + E Vp
Loops add m multipliers: columns on the end nodes, rows on their twists, a corner. Elimination runs
from the tips to the ground and back. The transpose has the same form (X <-> Y^T, B <-> A^T,
S <-> Z^T, lower <-> upper^T; F and V_0 exchange roles), so one solver serves both.
Not lineax: its tridiagonal solver takes scalar diagonals, one chain at a time.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from flexjax.numerics.linalg._batch_last import batch_last
from flexjax.numerics.linalg._small import mm, mv, transpose


class LinkedBlocks(eqx.Module):
    """The matrix of L links with N + 1 nodes, d unknowns per node, n per joint, m multipliers.

    ``border_*`` belong to end 0 (base node) and end 1 (node N) of every link. ``parents`` (-1:
    ground) and ``order`` (parents before children) are static. ``base_attached`` marks links whose
    children hang on their base node (rigid links).
    """

    lower: Float[Array, "L K d d"]
    diag: Float[Array, "L K d d"]
    upper: Float[Array, "L K d d"]
    X: Float[Array, "L d d"]
    B: Float[Array, "L d n"]
    A: Float[Array, "L n d"]
    T: Float[Array, "L n n"]
    S: Float[Array, "L n d"]
    Y: Float[Array, "L d d"]
    Z: Float[Array, "L d n"]
    E: Float[Array, "L d d"]
    border_columns: Float[Array, "L 2 d m"]
    border_rows: Float[Array, "L 2 m d"]
    corner: Float[Array, "m m"]
    parents: tuple[int, ...] = eqx.field(static=True)
    order: tuple[int, ...] = eqx.field(static=True)
    base_attached: tuple[bool, ...] = eqx.field(static=True)

    def transpose(self) -> "LinkedBlocks":
        t = transpose
        zero = jnp.zeros_like(self.lower[:, :1])
        return LinkedBlocks(
            lower=jnp.concatenate([zero, t(self.upper[:, :-1])], axis=1),
            diag=t(self.diag),
            upper=jnp.concatenate([t(self.lower[:, 1:]), zero], axis=1),
            X=t(self.Y),
            B=t(self.A),
            A=t(self.B),
            T=t(self.T),
            S=t(self.Z),
            Y=t(self.X),
            Z=t(self.S),
            E=t(self.E),
            border_columns=t(self.border_rows),
            border_rows=t(self.border_columns),
            corner=t(self.corner),
            parents=self.parents,
            order=self.order,
            base_attached=self.base_attached,
        )


_CYCLE = np.array([0, 1, 2, 0, 1])


def _cofactors(a: Float[Array, "3 3 *n"]) -> Float[Array, "3 3 *n"]:
    """Cofactors of a matrix, from its cyclic continuation; no scalar is extracted."""
    a = a[_CYCLE][:, _CYCLE]
    return a[1:4, 1:4] * a[2:5, 2:5] - a[1:4, 2:5] * a[2:5, 1:4]


def _determinant(a: Float[Array, "3 3 *n"]) -> Float[Array, "*n"]:
    return jnp.sum(a[0] * _cofactors(a)[0], axis=0)


def solve_small(a: Float[Array, "d d"], b: Float[Array, "d c"]) -> Float[Array, "d c"]:
    """a^-1 b without LAPACK or pivoting: the blocks are inertia plus stiffness.

    3 x 3 by cofactors, larger ones by Gauss-Jordan in a loop of few fused operations.
    """
    n = a.shape[0]
    if n == 1:
        return b / a
    if n == 3:
        return mm(_cofactors(a).T / _determinant(a), b)
    work = jnp.concatenate([a, b], axis=1)
    index = jnp.arange(n)

    def reduce(i, work):
        here = index == i
        row = jnp.sum(jnp.where(here[:, None], work, 0.0), axis=0)
        column = jnp.sum(jnp.where((jnp.arange(work.shape[1]) == i)[None, :], work, 0.0), axis=1)
        row = row / jnp.sum(jnp.where(here, column, 0.0))
        return jnp.where(here[:, None], row[None, :], work - column[:, None] * row[None, :])

    return lax.fori_loop(0, n, reduce, work)[:, n:]


def _condense(
    lower: Float[Array, "K d d"],
    diag: Float[Array, "K d d"],
    upper: Float[Array, "K d d"],
    r: Float[Array, "K d c"],
) -> tuple[Float[Array, "N d e"], Float[Array, "d e"]]:
    """Eliminate nodes N..1 of one link.

    Returns [P | q] (N, d, d+c) with V_k = q_k - P_k V_{k-1}, and [M | f] with F = M V_0 - f.
    """
    d = diag.shape[-1]
    eliminate = _eliminate_planar_batch if d == 3 else _eliminate
    PQ = eliminate(lower, diag, upper, r)
    UP = mm(upper[0], PQ[0])
    return PQ, jnp.concatenate([diag[0] - UP[:, :d], r[0] - UP[:, d:]], axis=1)


def _eliminate(
    lower: Float[Array, "K d d"],
    diag: Float[Array, "K d d"],
    upper: Float[Array, "K d d"],
    r: Float[Array, "K d c"],
) -> Float[Array, "N d e"]:
    d, c = diag.shape[-1], r.shape[-1]
    W = jnp.concatenate([lower, r], axis=-1)
    mask = jnp.concatenate([jnp.zeros(d, r.dtype), jnp.ones(c, r.dtype)])

    def inwards(PQ, row):
        D, U, W = row
        UP = mm(U, PQ)
        PQ = solve_small(D - UP[:, :d], W - UP * mask[None, :])
        return PQ, PQ

    return lax.scan(inwards, jnp.zeros_like(W[0]), (diag[1:], upper[1:], W[1:]), reverse=True)[1]


def _times(a: Float[Array, "i j *n"], b: Float[Array, "j k *n"]) -> Float[Array, "i k *n"]:
    """Products of matrices (d, d, ...) and (d, c, ...)."""
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def _eliminate_planar(
    lower: Float[Array, "K 3 3 *b"],
    diag: Float[Array, "K 3 3 *b"],
    upper: Float[Array, "K 3 3 *b"],
    r: Float[Array, "K 3 c *b"],
) -> Float[Array, "N 3 e *b"]:
    """The same for 3 x 3 blocks, in scans so small that XLA compiles each into one kernel.

    On CPU it does so if the body of a loop touches less than 1 kB. The first scan carries only the
    pivots S_k = D_k - U_k S_{k+1}^-1 L_{k+1}; all products with their inverses follow at once. In
    a batch (last axis) the number of operations counts, not of kernels.
    """
    if r.ndim > 3:
        return _eliminate_in_one_scan(lower, diag, upper, r)
    after = jnp.concatenate([lower[2:], jnp.zeros_like(lower[:1])])

    def pivot(S, row):
        D, U, L = row
        # Divided before the product, so that the cofactors are one array and computed once.
        adjugate = _cofactors(S) / _determinant(S)[None, None]
        S = D - jnp.sum(
            U[:, None, :, None] * adjugate[None, :, :, None] * L[None, :, None], axis=(1, 2)
        )
        return S, S

    unit = jnp.eye(3, dtype=r.dtype)
    S = jnp.moveaxis(lax.scan(pivot, unit, (diag[1:], upper[1:], after), reverse=True)[1], 0, 2)
    inverse = jnp.swapaxes(_cofactors(S), 0, 1) / _determinant(S)[None, None]
    P, gain, own = (
        jnp.moveaxis(_times(inverse, jnp.moveaxis(x[1:], 0, 2)), 2, 0) for x in (lower, upper, r)
    )

    def inwards(q, row):
        gain, own = row
        q = own - _times(gain, q)
        return q, q

    q = lax.scan(inwards, jnp.zeros_like(r[0]), (gain, own), reverse=True)[1]
    return jnp.concatenate([P, q], axis=2)


def _through_joint(
    b: tuple[Array, ...], Mf: Float[Array, "d e"], r_joint: Float[Array, "n c"]
) -> tuple[Float[Array, "n e"], Float[Array, "d e"]]:
    """Eliminate a joint.

    Returns [Yp | y0] with y = y0 - Yp Vp, and the additions [matrix | right-hand side] to the
    parent's row.
    """
    X, B, A, T, S, Y, Z, E = b
    d = X.shape[0]
    M, f = Mf[:, :d], Mf[:, d:]
    MX, MB = mm(M, X), mm(M, B)
    right = jnp.concatenate([mm(A, MX) + S, r_joint + mm(A, f)], axis=1)
    Yy = solve_small(mm(A, MB) + T, right)
    # F = (MX - MB Yp) Vp + MB y0 - f; its sign changes on the right-hand side.
    F = jnp.concatenate([MX, f], axis=1) - mm(MB, Yy)
    return Yy, mm(Y, F) - mm(Z, Yy) + jnp.concatenate([E, jnp.zeros_like(f)], axis=1)


def _eliminate_in_one_scan(
    lower: Float[Array, "K 3 3 *b"],
    diag: Float[Array, "K 3 3 *b"],
    upper: Float[Array, "K 3 3 *b"],
    r: Float[Array, "K 3 c *b"],
) -> Float[Array, "N 3 e *b"]:
    """The same as one scan that carries [P | q], for a batch in the last axis."""
    W = jnp.concatenate([lower, r], axis=2)

    def inwards(PQ, row):
        D, U, W = row
        UP = _times(U, PQ)
        S = D - UP[:, :3]
        inverse = jnp.swapaxes(_cofactors(S), 0, 1) / _determinant(S)[None, None]
        PQ = _times(inverse, jnp.concatenate([W[:, :3], W[:, 3:] - UP[:, 3:]], axis=1))
        return PQ, PQ

    return lax.scan(inwards, jnp.zeros_like(W[0]), (diag[1:], upper[1:], W[1:]), reverse=True)[1]


def _outwards(V0: Float[Array, "d c *b"], PQ: Float[Array, "N d e *b"]) -> Float[Array, "N d c *b"]:
    """V_1..N (N, d, c) after V_0."""
    d = V0.shape[0]

    def along(V, PQ):
        V = PQ[:, d:] - _times(PQ[:, :d], V)
        return V, V

    return lax.scan(along, V0, PQ)[1]


_eliminate_planar_batch, _outwards_batch = batch_last(_eliminate_planar), batch_last(_outwards)


def solve_grounded(
    lower: Float[Array, "K d d b"],
    diag: Float[Array, "K d d b"],
    upper: Float[Array, "K d d b"],
    r: Float[Array, "K d b"],
    B: Float[Array, "d n b"],
    A: Float[Array, "n d b"],
    T: Float[Array, "n n b"],
    r_joint: Float[Array, "n b"],
) -> tuple[Float[Array, "n b"], Float[Array, "N d b"]]:
    """Solve one planar link on the ground for a batch in the last axis.

    Row 0 of ``r`` is ignored. Returns y (n, b) and V_1..N (N, d, b).
    """
    r = r.at[0].set(0.0)[:, :, None]
    PQ = _eliminate_planar(lower, diag, upper, r)
    UP = _times(upper[0], PQ[0])
    MB, f = _times(diag[0], B) - _times(UP[:, :3], B), UP[:, 3:]
    y = jax.vmap(solve_small, in_axes=-1, out_axes=-1)(
        _times(A, MB) + T, r_joint[:, None] - _times(A, f)
    )
    return y[:, 0], _outwards(_times(B, y), PQ)[:, :, 0]


def _joint_parts(m: LinkedBlocks, i: Int[Array, " L"]) -> tuple[Array, ...]:
    return tuple(x[i] for x in (m.X, m.B, m.A, m.T, m.S, m.Y, m.Z, m.E))


def solve_tree(
    m: LinkedBlocks, r_joints: Float[Array, "L n c"], r_nodes: Float[Array, "L K d c"]
) -> tuple[Float[Array, "L n c"], Float[Array, "L K d c"]]:
    """y (L, n, c) and V (L, K, d, c) of the tree without borders; ``r_nodes[:, 0]`` is r_0."""
    L, d, c = m.X.shape[0], m.X.shape[1], r_nodes.shape[-1]
    if L == 1:
        return _solve_one(m, r_joints, r_nodes)
    order = jnp.array(m.order)
    parents = jnp.array([m.parents[i] if m.parents[i] >= 0 else L for i in m.order])
    rigid = jnp.array(m.base_attached)[order]

    def inwards(acc, row):
        i, parent, at_base, lower, diag, upper, r, rj, parts = row
        got = acc[i]
        matrix, side = got[:, :d], got[:, d:]
        if any(m.base_attached) and not all(m.base_attached):
            base, tip = (
                (lambda x: jnp.where(at_base, x, 0.0)),
                (lambda x: jnp.where(at_base, 0.0, x)),
            )
            diag = diag.at[0].add(base(matrix)).at[-1].add(tip(matrix))
            r = r.at[0].add(base(side)).at[-1].add(tip(side))
        else:
            end = 0 if all(m.base_attached) else -1
            diag, r = diag.at[end].add(matrix), r.at[end].add(side)
        PQ, Mf = _condense(lower, diag, upper, r)
        Yy, added = _through_joint(parts, Mf, rj)
        return acc.at[parent].add(added), (PQ, Yy)

    def outwards(tips, row):
        i, parent, at_base, PQ, Yy, X, B = row
        Vp = tips[parent]
        y = Yy[:, d:] - mm(Yy[:, :d], Vp)
        V0 = mm(X, Vp) + mm(B, y)

        V = _outwards_batch(V0, PQ)
        end = jnp.where(at_base, V0, V[-1]) if any(m.base_attached) else V[-1]
        return tips.at[i].set(end), (y, jnp.concatenate([V0[None], V]))

    acc = jnp.zeros((L + 1, d, d + c), r_nodes.dtype)
    tips = jnp.zeros((L + 1, d, c), r_nodes.dtype)
    rows = (
        order,
        parents,
        rigid,
        m.lower[order],
        m.diag[order],
        m.upper[order],
        r_nodes[order],
        r_joints[order],
        _joint_parts(m, order),
    )
    _, (PQ, Yy) = lax.scan(inwards, acc, rows, reverse=True)
    _, (y, V) = lax.scan(outwards, tips, (order, parents, rigid, PQ, Yy, m.X[order], m.B[order]))
    back = jnp.argsort(order)
    return y[back], V[back]


def _solve_one(
    m: LinkedBlocks, r_joints: Float[Array, "1 n c"], r_nodes: Float[Array, "1 K d c"]
) -> tuple[Float[Array, "1 n c"], Float[Array, "1 K d c"]]:
    """``solve_tree`` of one link on the ground, which has no parent."""
    d = m.X.shape[1]
    PQ, Mf = _condense(m.lower[0], m.diag[0], m.upper[0], r_nodes[0])
    A, B = m.A[0], m.B[0]
    y = solve_small(mm(A, mm(Mf[:, :d], B)) + m.T[0], r_joints[0] + mm(A, Mf[:, d:]))
    V0 = mm(B, y)
    V = _outwards_batch(V0, PQ)
    return y[None], jnp.concatenate([V0[None], V])[None]


def solve_linked(
    m: LinkedBlocks,
    r_joints: Float[Array, "L n"],
    r_nodes: Float[Array, "L N d"],
    r_loops: Float[Array, " m"],
) -> tuple[Float[Array, "L n"], Float[Array, "L N d"], Float[Array, " m"]]:
    """y (L, n), V_1..N (L, N, d) and multipliers (m,) of the whole system."""
    base = jnp.zeros_like(r_nodes[:, :1])
    r = jnp.concatenate([base, r_nodes], axis=1)[..., None]
    count = r_loops.shape[0]
    if count == 0:
        y, V = solve_tree(m, r_joints[..., None], r)
        return y[..., 0], V[:, 1:, :, 0], r_loops
    columns = jnp.zeros((*r.shape[:-1], count), r.dtype)
    columns = columns.at[:, 0].add(m.border_columns[:, 0]).at[:, -1].add(m.border_columns[:, 1])
    r_joints = jnp.concatenate(
        [r_joints[..., None], jnp.zeros((*r_joints.shape, count), r.dtype)], axis=-1
    )
    y, V = solve_tree(m, r_joints, jnp.concatenate([r, columns], axis=-1))
    ends = V[:, jnp.array([0, -1])]  # (L, 2, d, 1 + m)
    seen = jnp.sum(m.border_rows[..., None] * ends[:, :, None], axis=(0, 1, 3))  # (m, 1 + m)
    multipliers = solve_small(m.corner - seen[:, 1:], (r_loops - seen[:, 0])[:, None])[:, 0]
    y = y[..., 0] - y[..., 1:] @ multipliers
    V = V[..., 0] - V[..., 1:] @ multipliers
    return y, V[:, 1:], multipliers


def apply_linked(
    m: LinkedBlocks,
    y: Float[Array, "L n"],
    nodes: Float[Array, "L N d"],
    multipliers: Float[Array, " m"],
) -> tuple[Float[Array, "L n"], Float[Array, "L N d"], Float[Array, " m"]]:
    """The product with the matrix, in the layout of :func:`solve_linked`'s right-hand side."""
    V0: dict[int, Array] = {}
    tips: dict[int, Array] = {}
    for i in m.order:
        Vp = jnp.zeros_like(nodes[0, 0]) if m.parents[i] < 0 else tips[m.parents[i]]
        V0[i] = m.X[i] @ Vp + m.B[i] @ y[i]
        tips[i] = V0[i] if m.base_attached[i] else nodes[i, -1]
    V = jnp.concatenate([jnp.stack([V0[i] for i in sorted(V0)])[:, None], nodes], axis=1)
    before = jnp.concatenate([jnp.zeros_like(V[:, :1]), V[:, :-1]], axis=1)
    after = jnp.concatenate([V[:, 1:], jnp.zeros_like(V[:, :1])], axis=1)

    rows = mv(m.lower, before) + mv(m.diag, V) + mv(m.upper, after)
    if multipliers.shape[0]:
        added = m.border_columns @ multipliers
        rows = rows.at[:, 0].add(added[:, 0]).at[:, -1].add(added[:, 1])
    ends = jnp.stack([V[:, 0], V[:, -1]], axis=1)
    loops = jnp.einsum("lemd,led->m", m.border_rows, ends) + m.corner @ multipliers
    joints: dict[int, Array] = {}
    for i in reversed(m.order):
        p = m.parents[i]
        Vp = jnp.zeros_like(nodes[0, 0]) if p < 0 else tips[p]
        F = rows[i, 0]
        joints[i] = m.A[i] @ F + m.T[i] @ y[i] + m.S[i] @ Vp
        if p >= 0:
            rows = rows.at[p, 0 if m.base_attached[p] else -1].add(
                m.Y[i] @ F + m.Z[i] @ y[i] + m.E[i] @ Vp
            )
    return jnp.stack([joints[i] for i in sorted(joints)]), rows[:, 1:], loops
