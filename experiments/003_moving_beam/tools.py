"""Helpers of the cases: integration of states, the tip, the first mode of a cantilever.

The cases use only elastic unknowns. States are therefore integrated without poses, strains and
reactions, which shortens compilation.
"""

import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from flexjax.formulation import Start
from flexjax.simulate.loop._march import march

HERE = Path(__file__).resolve().parent
CONFIG = tomllib.loads((HERE / "config.toml").read_text())


def integrate(model, drive, ts, dt, start=None, solver=None):
    """Configurations and velocities at ``ts``, energies, status, time of failure."""
    ts = jnp.asarray(ts)
    substeps = max(1, int(np.ceil(float(np.max(np.diff(ts))) / dt * (1 - 1e-6))))
    solver = model.default_solver(drive) if solver is None else solver

    @jax.jit
    def run(model, drive, start):
        y0 = model.initial_state(drive, ts[0], Start()) if start is None else start
        ys, _, outcome = march(model, drive, solver, ts, substeps, y0, checkpoint=False)
        energy = jax.vmap(lambda t, y: model.energy(t, y, drive))(ts, ys)
        return ys, energy, outcome.status, outcome.t_fail

    ys, energy, status, t_fail = run(model, drive, start)
    good = ~(np.asarray(ts) > float(t_fail) - 1e-12)
    q = np.where(good[:, None], np.asarray(ys.mech.q), np.nan)
    return q, np.asarray(ys.mech.v), energy, int(status), float(t_fail)


def tip(model, q):
    """(ux, uy, uz) of the outer end, in the joint frame."""
    layout = model.layout
    last = q[:, layout.dofs + (layout.elements - 1) * layout.width :]
    if layout.planar:
        return last[:, 0], last[:, 1], np.zeros(len(q))
    return last[:, 0], last[:, 2], last[:, 4]


def first_mode(x):
    """First mode of a cantilever, normalised to one at the tip."""
    b = 1.87510406871
    s = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    return 0.5 * (jnp.cosh(b * x) - jnp.cos(b * x) - s * (jnp.sinh(b * x) - jnp.sin(b * x)))
