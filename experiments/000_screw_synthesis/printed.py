"""The stacked system with single printed errors enabled.

All flags zero gives the corrected system; flags are numbers, so that one compiled program serves
all cases. The assembly repeats the formulation's `stacked_system` on purpose: errors make the
system unsymmetric, which the recursion does not support.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation.screw_synthesis._paper import _positions, _slices
from flexjax.mechanism.chain.geometry._kinematics import behind, inward, mtv, mv
from flexjax.numerics.screw import se3
from flexjax.numerics.term import Instant

AREA = 4.5e-3  # [m^2] of the link in config.toml, from its ratios of inertias
FLAGS = {
    # The rotation vector of a free base integrates the body angular velocity.
    "angles integrate omega (1, 22, 109-112)": 0,
    # The inertia in the frame's equations is multiplied by the section area.
    "area counted twice (27, 31)": 1,
    # The torque row of G has the printed sign.
    "G torque sign (28)": 2,
    # The torque equation of the link lacks w x J_s (w + theta_dot) of the sections.
    "no gyroscopic term (29)": 3,
    # The torque of the tip force about the frame has the opposite sign.
    "lever arm of the tip force (30)": 4,
    # The displacement equation has gravity rotated by R instead of R^T.
    "gravity in wrong axes (34, 81)": 5,
    # The velocity products in the displacement equation have the printed sign.
    "Coriolis sign (81, 88)": 6,
    # The displacement equation has the angular acceleration twice.
    "r x w_dot twice (82)": 7,
    # The interaction wrenches do not act on the modal coordinates.
    "wrenches not on modes (83, 85, 103)": 8,
    # The next link ignores slope and twist of the tip.
    "no tip rotation (8, 9, 40, 46)": 9,
    # Wrenches are transported by the adjoint of twists instead of its dual.
    "twist adjoint for wrenches (49, 50, 60, 68)": 10,
    # The rate of the adjoint has the printed sign.
    "Lemma 1 sign (51, 52)": 11,
    # The constraint lacks the velocity product of the deformation screw.
    "ad_z z_xi lost (55, 56)": 12,
    # The bending moments have the stiffness of the other axis.
    "M_y, M_z swapped (37-39)": 13,
}
# These errors give another mechanical system, which conserves its own energy.
CONSISTENT = ("no tip rotation (8, 9, 40, 46)", "M_y, M_z swapped (37-39)")


def flagged_term(model, flags):
    """The chain with the errors that leave a mechanical system; it conserves its own energy."""
    no_rotation, swapped = (flags[FLAGS[name]] for name in CONSISTENT)
    links = model.links
    K = (1 - swapped) * links.integrals.K + swapped * _exchanged(links)
    links = eqx.tree_at(
        lambda x: (x.end.Psi, x.integrals.K), links, ((1 - no_rotation) * links.end.Psi, K)
    )
    return eqx.tree_at(lambda t: t.links, model.term(fx.Drive()), links)


def _exchanged(links):
    """Stiffness of uniform links with EI_y and EI_z exchanged; both directions have equal modes."""
    where = np.array(links.basis.direction)
    order = np.arange(len(where))
    y, z = order[where == 1], order[where == 2]
    swap = order.copy()
    swap[y], swap[z] = z, y
    return links.integrals.K[:, swap][:, :, swap]


def printed_acceleration(model, flags, q, v):
    """v' from the stacked dense system with the errors that ``flags`` (len(FLAGS),) enable."""
    area, torque, gyro, lever, axes, coriolis, twice, on_modes = flags[1:9]
    twist_adjoint, lemma, lost = flags[10:13]
    term = flagged_term(model, flags)
    links, layout, parameters = term.links, term.layout, term.parameters
    m = term.motion(Instant(0.0), q, v)
    mass, X, Xt, S = term.mass(m.eta), m.kin.X, m.kin.Xt, m.kin.tip.S
    i = links.integrals
    hz, he = links.bias(m.eta, m.rate, m.z)
    w = m.z[:, 3:]
    hz = hz.at[:, 3:].add(-gyro * jnp.cross(w, mv(i.J, w) + mv(i.JPsi, m.rate)))
    gravity = parameters.gravity
    down = jax.vmap(lambda R: R @ gravity - R.T @ gravity)(m.world.rotation)
    he = (1 - 2 * coriolis) * he - axes * mtv(i.C1, down)
    zz = (1 + area * (AREA - 1)) * mass.zz
    top = mass.ze.at[:, 3:].multiply(1 - 2 * torque)
    left = mass.ze.at[:, 3:].multiply(1 + twice)
    force = -links.elastic_force(m.eta)
    extra, tip_rate = (1 - 2 * lemma) * term._joint_rate(m), (1 - lost) * term._tip_rate(m)
    dim, count = 6, len(layout.stages)
    w_at, z_at, end = _positions([dim - s.dofs for s in layout.stages], dim)
    e_at = _slices(layout.shapes, end)
    M, rhs = jnp.zeros((e_at[-1][1],) * 2), jnp.zeros(e_at[-1][1])
    momenta = mv(parameters.inertia, m.z)
    bias_rigid = -jax.vmap(lambda z, p: se3.ad_star(z) @ p)(m.z, momenta)
    B = [
        jnp.linalg.qr(parameters.screw[k][:, : s.dofs], mode="complete")[0][:, s.dofs :]
        if s.dofs
        else jnp.eye(dim)
        for k, s in enumerate(layout.stages)
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
            # The difference Xt^T - rotation is the torque r x F of the tip force about the frame.
            rotation = m.kin.tip.pose.rotation[k]
            frame = frame - 2 * lever * (Xt[k].T - jax.scipy.linalg.block_diag(rotation, rotation))
            M = M.at[z0:z1, n0:n1].set(frame @ back @ B[k + 1])
            M = M.at[e0:e1, n0:n1].set((1 - on_modes) * S[k, :, :n].T @ back @ B[k + 1])
    x = jnp.linalg.solve(M, rhs)
    z = jnp.stack([x[a:b] for a, b in z_at])
    eta = jnp.stack([jnp.pad(x[a:b], (0, layout.shape_count - (b - a))) for a, b in e_at])
    tip = mv(Xt, z) + mv(S, eta) + tip_rate
    relative = z - mv(X, behind(tip, m.base_acceleration)) - extra
    return term._join(jnp.sum(parameters.screw * relative[:, :, None], axis=1), eta)


def move(term, flags, q, dx):
    """Displace ``q``; with the first error, ``dx`` is added to the rotation vectors of balls."""
    right = wrong = term.move(q, dx)
    for s in term.layout.coordinates.balls:
        at = slice(s.q_start, s.q_start + 4)
        wrong = wrong.at[at].set(se3.quat_exp(se3.quat_log(q[at]) + dx[s.v_start : s.v_start + 3]))
    return jnp.where(flags[0] > 0, wrong, right)


def rank_with_rigid_functions(counts=(2, 3)):
    """Rank and size of the mass matrix of a planar link whose deflection includes rigid motions.

    The unknowns are translation and rotation of the frame, and deflections 1, x, x^2, ...
    """
    x, w = np.polynomial.legendre.leggauss(12)
    x = 0.5 * (x + 1)
    rows = np.stack([x**k for k in range(counts[0])] + [x**k for k in range(counts[1])])
    return int(np.linalg.matrix_rank((rows * w) @ rows.T)), len(rows)


def ranks(model, q):
    """Rank and size of the printed M_q for a chain of revolute joints.

    It has six wrench unknowns per joint behind a projection of rank five.
    """
    term = model.term(fx.Drive())
    m = term.motion(Instant(0.0), q, jnp.zeros(term.layout.nv))
    n, inertia = len(term.layout.stages), np.asarray(term.mass(m.eta).zz)
    A = np.asarray(term.parameters.screw[:, :, 0])
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
    """Integrate all cases at once with the classical Runge-Kutta method.

    Returns:
        Energies (cases, steps) and momenta (cases, steps, 6); case 0 is the corrected system.
    """
    cases = jnp.concatenate([jnp.zeros((1, len(FLAGS))), jnp.eye(len(FLAGS))])

    def one(flags):
        term = flagged_term(model, flags)

        def observe(q, v):
            m = term.motion(Instant(0.0), q, v)
            force = term._times(term.mass(m.eta), m.z, m.rate)
            momentum = inward(m.kin, force.wrench, jnp.zeros_like(m.z))[1]
            return sum(term.energies(Instant(0.0), q, v)), momentum

        def step(carry, _):
            q, v = carry

            def stage(slopes, row):
                ahead, weight = row
                at, rate = move(term, flags, q, ahead * dt * slopes[0]), v + ahead * dt * slopes[1]
                a = printed_acceleration(model, flags, at, rate)
                return (rate, a), (weight * rate, weight * a)

            # The frames rotate with the mean rate, which is of second order; the errors of the
            # study are many orders of magnitude larger.
            rows = jnp.array([[0.0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1.0, 1 / 6]])
            _, (dq, dv) = jax.lax.scan(stage, (jnp.zeros_like(v), jnp.zeros_like(v)), rows)
            q, v = move(term, flags, q, dt * jnp.sum(dq, axis=0)), v + dt * jnp.sum(dv, axis=0)
            return (q, v), observe(q, v)

        first = observe(y.mech.q, y.mech.v)
        rest = jax.lax.scan(step, (y.mech.q, y.mech.v), None, length=steps)[1]
        return jax.tree_util.tree_map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    return jax.jit(jax.vmap(one))(cases)
