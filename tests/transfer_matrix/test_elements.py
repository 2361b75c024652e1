"""The published form's elements one by one: a step against all equations of the chain (Newton and
Euler, Newmark on every point, Table I) solved as one dense system by Newton's method, which shares
no code with the sweeps.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation import Start

LENGTH, SIDE, E, RHO, DT, BETA, GAMMA, G = 0.3, 0.01, 7e9, 2700.0, 2e-3, 0.3, 0.5, 9.81
TURN, TORQUE = fx.sine(0.4, 1.3), fx.sine(0.8, 2.0)


def _robot(segmented=False, **joint):
    """A link on the tested element, followed by another link under a torque."""
    material, section = fx.Material(E=E, nu=0.3, rho=RHO), fx.Rectangle(SIDE, SIDE)
    links = [fx.Link(n, LENGTH, section=section, material=material) for n in "ab"]
    joints = [fx.Joint("j1", "revolute", "ground", "a"), fx.Joint("j2", "revolute", "a", "b")]
    at = joint.pop("at", 0)
    joints[at] = fx.Joint(joints[at].name, "revolute", joints[at].parent, joints[at].child, **joint)
    robot = fx.Robot.serial(links, joints, planar=True, gravity=(0.0, -G, 0.0))
    return robot, (2 if segmented else 1)


# Robot and what drives the two joints. The first case is rigid segments alone on free hinges.
CASES = {
    "rigid segment": (dict(), {}),
    "torsion spring": (dict(segmented=True), {}),
    "angle motor": (dict(), {"j1": fx.Motion(TURN)}),
    "torque motor": (dict(), {"j1": fx.Effort(TORQUE)}),
    "lumped joint mass": (dict(at=1, mass=0.15), {}),
    "rotor inertia": (dict(at=1, motor=fx.Motor(rotor=2e-3, gear=1.0)), {"j2": fx.Effort(TORQUE)}),
    "flexible joint": (dict(stiffness=40.0), {"j1": fx.Motion(TURN)}),
}


def _turned(th, v):
    return np.array([np.cos(th) * v[0] - np.sin(th) * v[1], np.sin(th) * v[0] + np.cos(th) * v[1]])


def _dense_step(name, n, per_link, t, points, centres, angles):
    """Angles (n,) and inboard points (n, 2) at ``t``; each argument (value, rate, acceleration)
    before the step.
    """
    A = 1 / (BETA * DT**2)
    ahead_I, ahead_C, ahead_th = (
        x + DT * v + (0.5 - BETA) * DT**2 * a for x, v, a in (points, centres, angles)
    )
    dl = LENGTH / per_link
    mass, second = RHO * SIDE**2 * dl, SIDE**4 / 12
    turn, torque = (float(s.evaluate(t)[0]) for s in (TURN, TORQUE))
    com, lever, weight = np.array([dl / 2, 0.0]), np.array([dl, 0.0]), np.array([0.0, -G])

    def residual(z):
        th, r, q, moment = (
            z[:n],
            z[n : 3 * n].reshape(n, 2),
            z[3 * n : 5 * n].reshape(n, 2),
            z[5 * n :],
        )
        out = []
        for i in range(n):
            behind = q[i + 1] if i + 1 < n else 0 * weight
            c, reach, alpha = _turned(th[i], com), _turned(th[i], lever), A * (th[i] - ahead_th[i])
            a_I, lumped = (
                A * (r[i] - ahead_I[i]),
                0.15 if name == "lumped joint mass" and i == 1 else 0.0,
            )
            # History of the segment's own centre: the state keeps that of segment and lumped mass
            # together.
            own = ((mass + lumped) * ahead_C[i] - lumped * ahead_I[i]) / mass
            a_C = A * (r[i] + c - own)
            out += list(mass * (a_C - weight) + lumped * (a_I - weight) - q[i] + behind)
            # The torque on the parent side of the connection behind this body: the rotor there sits
            # on this one.
            rotor = (
                2e-3 * A * (th[i + 1] - ahead_th[i + 1])
                if name == "rotor inertia" and i == 0
                else 0.0
            )
            next_moment = (moment[i + 1] if i + 1 < n else 0.0) + rotor
            inertia = mass * dl**2 / 3
            swung = mass * (c[0] * (a_I - weight)[1] - c[1] * (a_I - weight)[0])
            out.append(
                inertia * alpha
                + swung
                - moment[i]
                + next_moment
                + reach[0] * behind[1]
                - reach[1] * behind[0]
            )
            out += list(r[i] - (r[i - 1] + _turned(th[i - 1], lever) if i else 0.0))
            bent = th[i] - (th[i - 1] if i else 0.0)
            if i % per_link:
                out.append(moment[i] + E * second / dl * bent)
            elif name == "angle motor" and i == 0:
                out.append(bent - turn)
            elif name == "flexible joint" and i == 0:
                out.append(moment[i] + 40.0 * (bent - turn))
            elif name == "torque motor" and i == 0:
                out.append(moment[i] - torque)
            elif name == "rotor inertia" and i == 1:
                out.append(moment[i] + 2e-3 * alpha - torque)
            else:
                out.append(moment[i])
        return np.array(out)

    z = np.concatenate([ahead_th, ahead_I.ravel(), np.zeros(3 * n)])
    for _ in range(8):
        J = np.stack(
            [residual(z + 1e-30j * e).imag / 1e-30 for e in np.eye(z.size)], 1
        )  # complex step: exact
        scale = np.abs(J).max(axis=1)
        z = z - np.linalg.solve(J / scale[:, None], residual(z + 0j).real / scale)
    return z[:n], z[n : 3 * n].reshape(n, 2)


@pytest.mark.parametrize("name", CASES)
def test_element_against_newton_and_euler(name, record_number):
    shape, joints = CASES[name]
    robot, per_link = _robot(**shape)
    drive = fx.Drive(joints=joints)
    method = fx.TransferMatrix(segments=per_link, variant="paper", beta=BETA)
    model = method.bind(robot)
    term, n = model.term(drive), 2 * per_link
    start = Start(
        joints={
            k: x for k, x in (("j1", 0.3), ("j2", -0.5)) if not isinstance(joints.get(k), fx.Motion)
        }
    )
    y = model.initial_state(drive, jnp.asarray(0.0), start)
    carried = jax.jit(lambda y: term.start(jnp.asarray(0.0), DT, y, None))(y)
    step = jax.jit(lambda t, y, carried: term.advance(t, t + DT, y, carried, None, BETA, GAMMA)[:2])
    for k in range(6):
        before = [np.asarray(x) for x in (y.mech.q, y.mech.v, carried.acceleration)]
        y, carried = step(k * DT, y, carried)
    motors = term.angles - n
    where = (slice(0, n), slice(n + motors, 3 * n + motors), slice(3 * n + motors, 5 * n + motors))
    angles, points, centres = (
        [x[w].reshape(n, 2) if i else x[w] for x in before] for i, w in enumerate(where)
    )
    th, r = _dense_step(name, n, per_link, 6 * DT, points, centres, angles)
    q = np.asarray(y.mech.q)
    assert np.abs(th - angles[0]).max() > 1e-4  # it moves
    gap = max(np.abs(q[where[0]] - th).max(), np.abs(q[where[1]].reshape(n, 2) - r).max())
    record_number(f"published elements, {name}: step against a dense solve [rad], [m]", gap, 1e-10)
