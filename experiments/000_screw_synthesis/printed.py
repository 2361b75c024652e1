"""The stacked system with single printed errors switched on (flags are numbers, so that one compiled program serves all
of them).

Right: all flags zero. The assembly repeats `stacked_system` of the formulation on purpose: errors make the system
unsymmetric, which the recursion cannot hold.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation.screw_synthesis._chain import _positions, _slices
from flexjax.mechanism.chain._kinematics import behind, gather, mtv, mv
from flexjax.numerics.screw import se3

AREA = 4.5e-3  # [m^2] of the link in config.toml, from its ratios of inertias
FLAGS = {
    "angles integrate omega (1, 22, 109-112)": "the rotation vector of a free base grows by its body rate",
    "area counted twice (27, 31)": "inertia of the frame's equations times the section area",
    "G torque sign (28)": "torque row of G with the printed sign",
    "no gyroscopic term (29)": "w x J_s (w + theta_dot) of the sections left out of the link's torque equation",
    "lever arm of the tip force (30)": "torque of the tip's force about the frame with the other sign",
    "gravity in wrong axes (34, 81)": "the displacement equation feels gravity turned by R instead of R^T",
    "Coriolis sign (81, 88)": "velocity products of the displacement equation with the printed sign",
    "r x w_dot twice (82)": "angular acceleration counted twice in the displacement equation",
    "wrenches not on modes (83, 85, 103)": "interaction wrenches do not act on the modal coordinates",
    "no tip rotation (8, 9, 40, 46)": "the next link does not see slope and twist of the tip",
    "twist adjoint for wrenches (49, 50, 60, 68)": "wrenches moved by the adjoint of twists instead of its dual",
    "Lemma 1 sign (51, 52)": "rate of the adjoint with the printed sign",
    "ad_z z_xi lost (55, 56)": "velocity product of the deformation screw left out of the constraint",
    "M_y, M_z swapped (37-39)": "bending moments with the stiffness of the other axis",
}
CONSISTENT = (
    "no tip rotation (8, 9, 40, 46)",
    "M_y, M_z swapped (37-39)",
)  # another robot, but a mechanical one


def lane_term(model, flags):
    """The chain with those errors that leave a mechanical system: its own energy is what it must keep."""
    f = dict(zip(FLAGS, flags, strict=True))
    no_turn, swapped = (f[name] for name in CONSISTENT)
    links = model.links
    K = (1 - swapped) * links.integrals.K + swapped * _exchanged(links)
    links = eqx.tree_at(
        lambda x: (x.end.Psi, x.integrals.K), links, ((1 - no_turn) * links.end.Psi, K)
    )
    return eqx.tree_at(lambda t: t.links, model.term(fx.Drive()), links)


def _exchanged(links):
    """Stiffness with EI_y and EI_z exchanged (uniform links): both bending families have the same functions here."""
    where = np.array(links.basis.direction)
    order = np.arange(len(where))
    y, z = order[where == 1], order[where == 2]
    swap = order.copy()
    swap[y], swap[z] = z, y
    return links.integrals.K[:, swap][:, :, swap]


def printed_acceleration(model, flags, q, v):
    """v' from the stacked dense system with errors as ``flags`` (len(FLAGS),) say."""
    (
        _,
        area,
        torque,
        gyro,
        lever,
        axes,
        coriolis,
        twice,
        on_modes,
        _,
        twist_adjoint,
        lemma,
        lost,
        _,
    ) = flags
    term = lane_term(model, flags)
    links, lay, par = term.links, term.layout, term.par
    m = term.motion(0.0, q, v, None)
    mass, X, Xt, S = term.mass(m.eta), m.kin.X, m.kin.Xt, m.kin.tip.S
    i = links.integrals
    hz, he = links.bias(m.eta, m.rate, m.z)
    w = m.z[:, 3:]
    hz = hz.at[:, 3:].add(-gyro * jnp.cross(w, mv(i.J, w) + mv(i.JPsi, m.rate)))
    down = jax.vmap(lambda R: R @ par.gravity - R.T @ par.gravity)(m.world.rotation)
    he = (1 - 2 * coriolis) * he - axes * mtv(i.C1, down)
    zz = (1 + area * (AREA - 1)) * mass.zz
    top = mass.ze.at[:, 3:].multiply(1 - 2 * torque)
    left = mass.ze.at[:, 3:].multiply(1 + twice)
    force = -links.elastic_force(m.eta)
    extra, tip_rate = (1 - 2 * lemma) * term._joint_rate(m), (1 - lost) * term._tip_rate(m)
    dim, count = 6, len(lay.stages)
    w_at, z_at, end = _positions([dim - s.dofs for s in lay.stages], dim)
    e_at = _slices(lay.shapes, end)
    M, rhs = jnp.zeros((e_at[-1][1],) * 2), jnp.zeros(e_at[-1][1])
    bias_rigid = -jax.vmap(lambda z, p: se3.ad_star(z) @ p)(m.z, mv(par.inertia, m.z))
    B = [
        jnp.linalg.qr(par.screw[k][:, : s.dofs], mode="complete")[0][:, s.dofs :]
        if s.dofs
        else jnp.eye(dim)
        for k, s in enumerate(lay.stages)
    ]
    for k in range(count):
        (w0, w1), (z0, z1), (e0, e1) = w_at[k], z_at[k], e_at[k]
        n = e1 - e0
        M = M.at[w0:w1, z0:z1].set(B[k].T)
        before = X[k] @ m.base_acceleration
        if k:
            (y0, y1), (f0, f1) = z_at[k - 1], e_at[k - 1]
            M = M.at[w0:w1, y0:y1].set(-B[k].T @ X[k] @ Xt[k - 1])
            M = M.at[w0:w1, f0:f1].set(-B[k].T @ X[k] @ S[k - 1, :, : f1 - f0])
            before = X[k] @ tip_rate[k - 1]
        rhs = rhs.at[w0:w1].set(B[k].T @ (extra[k] + before))
        M = M.at[z0:z1, z0:z1].set(zz[k]).at[z0:z1, e0:e1].set(top[k, :, :n])
        M = M.at[e0:e1, z0:z1].set(left[k, :, :n].T).at[e0:e1, e0:e1].set(mass.ee[k, :n, :n])
        M = M.at[z0:z1, w0:w1].set(-B[k])
        rhs = rhs.at[z0:z1].add(-hz[k] - bias_rigid[k]).at[e0:e1].add((force[k] - he[k])[:n])
        if k + 1 < count:
            n0, n1 = w_at[k + 1]
            back = (1 - twist_adjoint) * X[k + 1].T + twist_adjoint * jnp.linalg.inv(X[k + 1])
            frame = (1 - twist_adjoint) * Xt[k].T + twist_adjoint * jnp.linalg.inv(Xt[k])
            # torque of the tip's force about the frame: E^T turned, then r x F
            turned = jax.scipy.linalg.block_diag(
                m.kin.tip.pose.rotation[k], m.kin.tip.pose.rotation[k]
            )
            frame = frame - 2 * lever * (Xt[k].T - turned)
            M = M.at[z0:z1, n0:n1].set(frame @ back @ B[k + 1])
            M = M.at[e0:e1, n0:n1].set((1 - on_modes) * S[k, :, :n].T @ back @ B[k + 1])
    x = jnp.linalg.solve(M, rhs)
    z = jnp.stack([x[a:b] for a, b in z_at])
    eta = jnp.stack([jnp.pad(x[a:b], (0, lay.shape_count - (b - a))) for a, b in e_at])
    tip = mv(Xt, z) + mv(S, eta) + tip_rate
    relative = z - mv(X, behind(tip, m.base_acceleration)) - extra
    return term._join(jnp.sum(par.screw * relative[:, :, None], axis=1), eta)


def move(term, flags, q, dx):
    """``q`` displaced; with the first error, the rotation vectors of balls are what grows."""
    right = wrong = term.move(q, dx)
    for s in term.layout.balls:
        at = slice(s.q_start, s.q_start + 4)
        wrong = wrong.at[at].set(se3.quat_exp(se3.quat_log(q[at]) + dx[s.v_start : s.v_start + 3]))
    return jnp.where(flags[0] > 0, wrong, right)


def rank_with_rigid_functions(counts=(2, 3)):
    """Rank of the mass matrix of one link bending in a plane whose deflection may contain rigid motions: frame (shift,
    turn) beside deflections 1, x, x^2, ... (rank, size)."""
    x, w = np.polynomial.legendre.leggauss(12)
    x = 0.5 * (x + 1)
    rows = np.stack([x**k for k in range(counts[0])] + [x**k for k in range(counts[1])])
    return int(np.linalg.matrix_rank((rows * w) @ rows.T)), len(rows)


def ranks(model, q):
    """Rank of M_q as printed (six wrench unknowns behind a rank-5 projection) for a chain of revolute joints: (rank,
    size)."""
    term = model.term(fx.Drive())
    m = term.motion(0.0, q, jnp.zeros(term.layout.nv), None)
    n, inertia = len(term.layout.stages), np.asarray(term.mass(m.eta).zz)
    A = np.asarray(term.par.screw[:, :, 0])
    P = [np.eye(6) - np.outer(a, a) / (a @ a) for a in A]
    M = np.zeros((12 * n, 12 * n))
    for i in range(n):
        w, z = slice(12 * i, 12 * i + 6), slice(12 * i + 6, 12 * i + 12)
        M[w, z], M[z, z], M[z, w] = P[i], inertia[i], -P[i]
        if i:
            full = np.asarray(m.kin.full[i])
            M[w, 12 * i - 6 : 12 * i] = -P[i] @ full
            M[12 * i - 6 : 12 * i, w] = full.T @ P[i]
    return int(np.linalg.matrix_rank(M, tol=1e-9)), 12 * n


def march(model, y, dt: float, steps: int):
    """Classical Runge-Kutta of every printed error at once: (energies (lanes, steps), momenta (lanes, steps, 6)); lane
    0 is right."""
    lanes = jnp.concatenate([jnp.zeros((1, len(FLAGS))), jnp.eye(len(FLAGS))])

    def one(flags):
        term = lane_term(model, flags)

        def look(q, v):
            m = term.motion(0.0, q, v, None)
            pull = term._times(term.mass(m.eta), m.z, m.rate)
            return sum(term.energies(0.0, q, v, None)), gather(
                m.kin, pull.wrench, jnp.zeros_like(m.z)
            )[1]

        def step(carry, _):
            q, v = carry

            def stage(slopes, row):
                ahead, weight = row
                at, rate = move(term, flags, q, ahead * dt * slopes[0]), v + ahead * dt * slopes[1]
                a = printed_acceleration(model, flags, at, rate)
                return (rate, a), (weight * rate, weight * a)

            # The frames turn by the mean rate: second order in rotations, classical in the rest; errors of the study
            # are many orders larger.
            rows = jnp.array([[0.0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1.0, 1 / 6]])
            _, (dq, dv) = jax.lax.scan(stage, (jnp.zeros_like(v), jnp.zeros_like(v)), rows)
            q, v = move(term, flags, q, dt * jnp.sum(dq, axis=0)), v + dt * jnp.sum(dv, axis=0)
            return (q, v), look(q, v)

        first = look(y.mech.q, y.mech.v)
        rest = jax.lax.scan(step, (y.mech.q, y.mech.v), None, length=steps)[1]
        return jax.tree_util.tree_map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    return jax.jit(jax.vmap(one))(lanes)
