"""What the tests of the transfer-matrix formulation share: reference numbers, robots, drives, and
solves that share no code with the sweeps.
"""

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.drive.signal import AbstractSignal

REFERENCE = Path(__file__).parent.parent / "reference" / "002_transfer_matrix.json"


@cache
def reference() -> dict:
    return json.loads(REFERENCE.read_text())


class Seamless(AbstractSignal):
    """A signal without its breaks: the reference codes step over them, flexjax would restart the
    accelerations there.
    """

    signal: AbstractSignal

    def evaluate(self, t, at=None):
        return self.signal.evaluate(t, None)

    def breaks(self):
        return jnp.zeros(0)


def three_drive() -> fx.Drive:
    """Eq. 17 with the value held that the curve reaches."""
    return fx.Drive(
        joints={f"joint{i}": fx.Motion(Seamless(fx.cosine(np.pi / 12, 0.8))) for i in (1, 2, 3)}
    )


def single_drive() -> fx.Drive:
    return fx.Drive(joints={"motor": fx.Motion(Seamless(fx.cycloid(0.0, np.pi / 3, 0.4)))})


def bent_state(model, drive, speed=2.0):
    """A smooth deflected and moving state with plausible accelerations, for any segments."""
    from flexjax.formulation import Start
    from flexjax.numerics.term import Mechanical, State

    y = model.initial_state(drive, jnp.asarray(0.0), Start())
    n = model.layout.n
    s = (jnp.arange(n) + 0.5) / n
    th, w = 0.3 + 0.2 * jnp.sin(3.0 * s), speed * (1 + 0.3 * s)
    return State(
        Mechanical(y.mech.q.at[:n].set(th), y.mech.v.at[:n].set(w)), y.work, y.dissipated, y.memory
    ), 50.0 * jnp.cos(2.0 * s)


def marcher(method, robot, drive, end):
    """A compiled function of the number of steps to ``end``: the tip there, and the energies at the
    start and at the end. The number is traced, so that refining the step compiles once.
    """
    from flexjax.formulation import Start

    model = method.bind(robot)
    term = model.term(drive)
    inner = getattr(term, "inner", term)

    def reduced(y):
        return y.mech if inner is term else term.reduced(y.mech)

    @jax.jit
    def run(steps):
        dt = end / steps
        t0 = jnp.asarray(0.0)
        y0 = model.initial_state(drive, t0, Start())

        def step(i, carry):
            y, carried, _ = term.advance(
                i * dt, (i + 1) * dt, carry[0], carry[1], None, method.beta, method.gamma
            )
            return y, carried

        y, _ = jax.lax.fori_loop(0, steps, step, (y0, term.start(t0, dt, y0, None)))
        tip = inner.points(inner.instant(end, None), reduced(y))[0][-1]
        return tip, model.energy(t0, y0, drive), model.energy(end, y, drive)

    return run


def extended_sweep(el, root):
    """The Riccati sweep in numpy's extended precision (64 bits of mantissa), element by element."""
    x = {k: np.asarray(getattr(el, k)).astype(np.longdouble) for k in el.__dataclass_fields__}
    n = len(x["torque"])
    S, p = np.zeros((3, 3), np.longdouble), np.zeros(3, np.longdouble)
    rows, T, t = np.zeros((n, 4), np.longdouble), [None] * n, [None] * n
    third = np.array([0, 0, 1], np.longdouble)
    for i in reversed(range(n)):
        T[i], left = np.eye(3, dtype=np.longdouble), np.eye(3, dtype=np.longdouble)
        T[i][:2, 2], left[2, :2] = x["column"][i], x["row"][i]
        t[i] = np.array([*x["shift"][i], 0], np.longdouble)
        S, p = left @ S @ T[i] + x["mass"][i][:, :3], left @ (S @ t[i] + p) + x["mass"][i][:, 3]
        rows[i] = [*S[2], p[2]]
        row, col = S[2] + x["coupling"][i] * third, S[:, 2] + x["coupling"][i] * third
        g = x["free"][i] / (x["stiffness"][i] + S[2, 2])
        d = g * (x["torque"][i] - p[2]) + x["given"][i]
        S, p = (
            S - g * np.outer(col, row) + x["inertia"][i] * np.outer(third, third),
            p + col * d - x["rotor_torque"][i] * third,
        )
    e, out_e, out_n = np.asarray(root).astype(np.longdouble), [], []
    for i in range(n):
        g = x["free"][i] / (x["stiffness"][i] + rows[i][2])
        D = (
            g * (x["torque"][i] - rows[i][3] - (rows[i][:3] + x["coupling"][i] * third) @ e)
            + x["given"][i]
        )
        e = e + D * third
        out_e.append(e)
        out_n.append(rows[i][:3] @ e + rows[i][3])
        e = T[i] @ e + t[i]
    return np.array(out_e), np.array(out_n)


def dense_solve(el, root):
    """All unknowns (e, D, f of every element) in one matrix, solved by LU."""
    x = {k: np.asarray(getattr(el, k)) for k in el.__dataclass_fields__}
    n = len(x["torque"])
    A, b = np.zeros((7 * n, 7 * n)), np.zeros(7 * n)
    third = np.array([0.0, 0.0, 1.0])
    for i in range(n):
        # Unknowns: e (3) and f = (q, n) (3) behind connection i, and its D.
        E, F, D, r = 7 * i, 7 * i + 3, 7 * i + 6, 7 * i
        A[r : r + 3, E : E + 3] = np.eye(3)
        A[r + 2, D] = -1.0
        if i == 0:
            b[r : r + 3] = root
        else:
            T = np.eye(3)
            T[:2, 2] = x["column"][i - 1]
            A[r : r + 3, E - 7 : E - 4] = -T
            b[r : r + 2] = x["shift"][i - 1]
        left = np.eye(3)
        left[2, :2] = x["row"][i]
        A[r + 3 : r + 6, F : F + 3] = np.eye(3)
        A[r + 3 : r + 6, E : E + 3] -= x["mass"][i][:, :3]
        b[r + 3 : r + 6] = x["mass"][i][:, 3]
        if i + 1 < n:
            j = i + 1
            # f on the inboard side of the next connection: its own f plus what the rotor there
            # takes.
            A[r + 3 : r + 6, F + 7 : F + 10] -= left
            A[r + 5, D + 7] -= x["coupling"][j] - x["inertia"][j]
            A[r + 5, E + 9] -= x["inertia"][j]
            b[r + 5] -= x["rotor_torque"][j]
        if x["free"][i] > 0:
            A[r + 6, F + 2], A[r + 6, D] = 1.0, x["stiffness"][i] - x["coupling"][i]
            A[r + 6, E + 2] += x["coupling"][i]
            b[r + 6] = x["torque"][i]
        else:
            A[r + 6, D], b[r + 6] = 1.0, x["given"][i]
    scale = np.abs(A).max(axis=1)
    z = np.linalg.solve(A / scale[:, None], b / scale)
    z = z.reshape(n, 7)
    return z[:, :3], z[:, 5], third
