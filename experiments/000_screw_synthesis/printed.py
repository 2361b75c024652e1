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
from flexjax.chain._kinematics import behind, gather, mv
from flexjax.formulation.screw_synthesis._chain import _positions, _slices
from flexjax.screw import se3

FLAGS = {
    "G torque sign (28)": "torque row of G with the printed sign",
    "no gyroscopic term (29)": "w x J w left out of the link's torque equation",
    "Coriolis sign (81, 88)": "velocity products of the displacement equation with the printed sign",
    "wrenches not on modes (83, 85, 103)": "interaction wrenches do not act on the modal coordinates",
    "no tip rotation (8, 9, 40, 46)": "the next link does not see slope and twist of the tip",
    "twist adjoint for wrenches (49, 50, 60, 68)": "wrenches moved by the adjoint of twists instead of its dual",
    "Lemma 1 sign (51, 52)": "rate of the adjoint with the printed sign",
    "ad_z z_xi lost (55, 56)": "velocity product of the deformation screw left out of the constraint",
    "M_y, M_z swapped (37-39)": "bending moments with the stiffness of the other axis",
}


def printed_acceleration(model, flags, q, v):
    """v' from the stacked dense system with errors as ``flags`` (len(FLAGS),) say."""
    torque, gyro, coriolis, on_modes, no_turn, twist_adjoint, lemma, lost, swapped = flags
    links = model.links
    links = eqx.tree_at(lambda x: x.end.Psi, links, (1 - no_turn) * links.end.Psi)
    term = eqx.tree_at(lambda t: t.links, model.term(fx.Drive()), links)
    lay, par = term.layout, term.par
    m = term.motion(0.0, q, v, None)
    mass, X, Xt, S = term.mass(m.eta), m.kin.X, m.kin.Xt, m.kin.tip.S
    hz, he = links.bias(m.eta, m.rate, m.z)
    plain, _ = links.bias(m.eta, m.rate, m.z.at[:, 3:].set(0.0))  # without rotation nothing is gyroscopic
    hz = hz.at[:, 3:].add(-gyro * (hz - plain)[:, 3:])
    gz = mass.ze.at[:, 3:].multiply(1 - 2 * torque)
    elastic = (1 - swapped) * links.elastic_force(m.eta) + swapped * _swapped_force(links, m.eta)
    force = -elastic
    extra, tip_rate = (1 - 2 * lemma) * term._joint_rate(m), (1 - lost) * term._tip_rate(m)
    dim, count = 6, len(lay.stages)
    w_at, z_at, end = _positions([dim - s.dofs for s in lay.stages], dim)
    e_at = _slices(lay.shapes, end)
    M, rhs = jnp.zeros((e_at[-1][1],) * 2), jnp.zeros(e_at[-1][1])
    bias_rigid = -jax.vmap(lambda z, p: se3.ad_star(z) @ p)(m.z, mv(par.inertia, m.z))
    B = [
        jnp.linalg.qr(par.screw[i][:, : s.dofs], mode="complete")[0][:, s.dofs :] if s.dofs else jnp.eye(dim)
        for i, s in enumerate(lay.stages)
    ]
    for i in range(count):
        (w0, w1), (z0, z1), (e0, e1) = w_at[i], z_at[i], e_at[i]
        n = e1 - e0
        M = M.at[w0:w1, z0:z1].set(B[i].T)
        before = X[i] @ m.base_acceleration
        if i:
            (y0, y1), (f0, f1) = z_at[i - 1], e_at[i - 1]
            M = (
                M.at[w0:w1, y0:y1]
                .set(-B[i].T @ X[i] @ Xt[i - 1])
                .at[w0:w1, f0:f1]
                .set(-B[i].T @ X[i] @ S[i - 1, :, : f1 - f0])
            )
            before = X[i] @ tip_rate[i - 1]
        rhs = rhs.at[w0:w1].set(B[i].T @ (extra[i] + before))
        M = (
            M.at[z0:z1, z0:z1]
            .set(mass.zz[i])
            .at[z0:z1, e0:e1]
            .set(gz[i, :, :n])
            .at[e0:e1, z0:z1]
            .set(mass.ze[i, :, :n].T)
        )
        M = M.at[e0:e1, e0:e1].set(mass.ee[i, :n, :n]).at[z0:z1, w0:w1].set(-B[i])
        rhs = rhs.at[z0:z1].add(-hz[i] - bias_rigid[i]).at[e0:e1].add((force[i] - (1 - 2 * coriolis) * he[i])[:n])
        if i + 1 < count:
            n0, n1 = w_at[i + 1]
            back = (1 - twist_adjoint) * X[i + 1].T + twist_adjoint * jnp.linalg.inv(X[i + 1])
            frame = (1 - twist_adjoint) * Xt[i].T + twist_adjoint * jnp.linalg.inv(Xt[i])
            M = (
                M.at[z0:z1, n0:n1]
                .set(frame @ back @ B[i + 1])
                .at[e0:e1, n0:n1]
                .set((1 - on_modes) * S[i, :, :n].T @ back @ B[i + 1])
            )
    x = jnp.linalg.solve(M, rhs)
    z = jnp.stack([x[a:b] for a, b in z_at])
    eta = jnp.stack([jnp.pad(x[a:b], (0, lay.shape_count - (b - a))) for a, b in e_at])
    tip = mv(Xt, z) + mv(S, eta) + tip_rate
    relative = z - mv(X, behind(tip, m.base_acceleration)) - extra
    return term._join(jnp.sum(par.screw * relative[:, :, None], axis=1), eta)


def _swapped_force(links, eta):
    """Elastic force with EI_y and EI_z exchanged (uniform links): both bending families have the same functions
    here."""
    where = np.array(links.basis.direction)
    order = np.arange(len(where))
    y, z = order[where == 1], order[where == 2]
    swap = order.copy()
    swap[y], swap[z] = z, y
    K = links.integrals.K
    diagonal = jnp.diagonal(K, axis1=1, axis2=2)
    return (diagonal[:, swap]) * eta


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
    term = model.term(fx.Drive())
    flags = jnp.concatenate([jnp.zeros((1, len(FLAGS))), jnp.eye(len(FLAGS))])

    def look(q, v):
        m = term.motion(0.0, q, v, None)
        pull = term._times(term.mass(m.eta), m.z, m.rate)
        return sum(term.energies(0.0, q, v, None)), gather(m.kin, pull.wrench, jnp.zeros_like(m.z))[1]

    def one(flag):
        def f(q, v):
            return printed_acceleration(model, flag, q, v)

        def step(carry, _):
            q, v = carry
            k1 = f(q, v)
            v2 = v + 0.5 * dt * k1
            k2 = f(term.move(q, 0.5 * dt * v), v2)
            v3 = v + 0.5 * dt * k2
            k3 = f(term.move(q, 0.5 * dt * v2), v3)
            v4 = v + dt * k3
            k4 = f(term.move(q, dt * v3), v4)
            # The frames turn by the mean rate: second order in rotations, classical in the rest; errors of the study
            # are many orders larger.
            q = term.move(q, dt * (v + 2 * v2 + 2 * v3 + v4) / 6)
            v = v + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6
            return (q, v), look(q, v)

        return jax.lax.scan(step, (y.mech.q, y.mech.v), None, length=steps)[1]

    return jax.jit(jax.vmap(one))(flags)
