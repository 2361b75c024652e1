"""Robots and small helpers shared by the tests of the screw synthesis."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

import flexjax as fx
from flexjax.formulation import Start

REFERENCE = json.loads(
    (Path(__file__).resolve().parents[1] / "reference" / "000-screw-synthesis.json").read_text()
)
CONSTANTS = {
    "EA": 9e4,
    "EIy": 675.0,
    "EIz": 168.75,
    "GJ": 178.0,
    "rhoA": 0.54,
    "rhoIx": 0.00050625,
    "rhoIy": 0.000405,
    "rhoIz": 0.00010125,
}
SLENDER = {"rhoIy": 0.0, "rhoIz": 0.0}  # no rotary inertia of bending: Euler and Bernoulli's beam
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.5))


def arm(types, gravity=(0.0, -9.81, 0.0), length=0.8, axes=AXES, payloads=(), **constants):
    """A spatial serial arm with one joint of each given type."""
    links = [
        fx.Link(f"link{i}", length, constants=fx.BeamConstants(**(CONSTANTS | constants)))
        for i in range(len(types))
    ]
    parents = ["ground", *(link.name for link in links[:-1])]
    joints = []
    for i, kind in enumerate(types):
        extra = {}
        if kind in ("revolute", "universal"):
            extra["axis"] = axes[i % len(axes)]
        if kind == "universal":
            extra["axis2"] = axes[(i + 1) % len(axes)]
        if kind == "prismatic":
            extra["axis"] = (0.3, 1.0, 0.0)
        joints.append(fx.Joint(f"joint{i}", kind, parents[i], f"link{i}", **extra))
    return fx.Robot.serial(links, joints, planar=False, gravity=gravity, payloads=payloads)


def somewhere(model, seed=0, bend=0.02, speed=1.0):
    """(term, q, v): a generic configuration and velocity."""
    term, lay = model.term(fx.Drive()), model.layout
    rng = np.random.default_rng(seed)
    scale = jnp.where(jnp.arange(lay.nv) < lay.nv - sum(lay.shapes), 1.0, bend)
    q = model.initial_state(fx.Drive(), jnp.zeros(()), Start()).mech.q
    return (
        term,
        term.move(q, scale * rng.normal(size=lay.nv)),
        jnp.asarray(speed * rng.normal(size=lay.nv)),
    )


@eqx.filter_jit
def matrices(term, q):
    """Mass and stiffness about ``q`` at rest."""
    unit = jnp.eye(term.layout.nv, dtype=q.dtype)
    return jax.vmap(lambda e: term.momentum(q, e))(unit), jax.jacfwd(term.potential_gradient)(q)


def frequencies(model):
    """Natural frequencies [rad/s] about the straight, unloaded configuration, all joints free."""
    q = model.initial_state(fx.Drive(), jnp.zeros(()), Start()).mech.q
    M, K = (np.asarray(x) for x in matrices(model.term(fx.Drive()), q))
    return np.sqrt(np.maximum(scipy.linalg.eigh(0.5 * (K + K.T), 0.5 * (M + M.T))[0], 0.0))
