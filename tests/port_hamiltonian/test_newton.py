"""The structured Newton matrix is the derivative of the residual, its transpose solves the
transposed system: on every mechanism of the zoo.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import flexjax as fx
from flexjax.formulation import Start
from flexjax.numerics.solver._implicit_midpoint import solve_stage
from tests.port_hamiltonian import zoo
from tests.screw.laws import quick_jit

CASES = {
    "spatial": (
        zoo.spatial,
        dict(elements=3),
        {"f": fx.PD(30.0, 2.0, fx.constant(0.3)), "u": fx.Effort(fx.constant((0.1, -0.2)))},
    ),
    "planar": (zoo.planar, dict(elements=4, mass=0.5), {"elbow": fx.Motion(fx.sine(0.3, 2.0))}),
    "parallelogram": (
        lambda: fx.load_robot("macchelli-parallelogram"),
        dict(elements=3),
        {"base-A": fx.PD(300.0, 11.25, fx.constant(0.6))},
    ),
    "closed_spatial": (zoo.closed_spatial, dict(elements=2), {"j1": fx.Effort(fx.constant(0.3))}),
}


def random_state(model, drive, scale=0.3, seed=0):
    """A generic state off equilibrium: random strains, twists and rates."""
    key = jax.random.key(seed)
    y = model.initial_state(drive, jnp.zeros(()), Start())
    term = model.term(drive)
    structure = model.structure
    dx = term.rate(jnp.zeros(()), y, None)
    leaves, tree = jax.tree_util.tree_flatten(dx)
    keys = jax.random.split(key, len(leaves))
    moved = [scale * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    dx = jax.tree_util.tree_unflatten(tree, moved)
    live = ~np.array(structure.rigid)[None, :, None]
    small = 0.1 if structure.loops else 1.0
    dx = type(dx)(dx.q * small, dx.v, jnp.where(live, dx.V, 0.0), jnp.where(live, 0.1 * dx.Q, 0.0))
    return type(y)(term.retract(y.mech, dx), y.work, y.dissipated, y.memory)


# The arms in space compile for a minute each.
@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.slow) if "spatial" in n else n for n in CASES],
)
def case(request):
    make, options, joints = CASES[request.param]
    model = fx.PortHamiltonian(**options).bind(make())
    drive = fx.Drive(joints=joints)
    return request.param, model, drive, quick_jit(lambda: random_state(model, drive))()


def test_matrix_is_the_derivative(case, record_number):
    name, model, drive, y = case
    term = model.term(drive)

    @quick_jit
    def check(y):
        h = jnp.asarray(2e-3)
        stage = term.prepare(jnp.asarray(0.1), y.mech, h, (jnp.asarray(0.102), 2.0), None, y.memory)
        u = term.guess(y.mech)
        u = type(u)(u.joints, u.nodes, 0.5 + jnp.arange(u.loops.shape[0], dtype=h.dtype))
        flat, restore = ravel_pytree(u)
        J = jax.jacfwd(lambda x: ravel_pytree(term.residual(stage, restore(x)))[0])(flat)
        matrix = term.linearise(stage, u)[1]
        direction = jnp.sin(1.0 + jnp.arange(flat.shape[0], dtype=h.dtype))
        back = ravel_pytree(matrix.solve(restore(J @ direction)))[0] - direction
        other = ravel_pytree(matrix.transpose().solve(restore(J.T @ direction)))[0] - direction
        return jnp.max(jnp.abs(back)), jnp.max(jnp.abs(other))

    forward, transposed = check(y)
    # A revolute joint that closes a loop in space pairs moments of both sides: left out of the
    # matrix, and reported by `exact`.
    limit = 1e-8 if term.exact else 1e-2
    record_number(f"Newton matrix against the derivative, {name}", forward, limit)
    record_number(f"transposed Newton matrix against the derivative, {name}", transposed, limit)


BATCHES = CASES | {
    "pendulum": (
        lambda: fx.Robot.serial([fx.Link("a", 0.8, constants=zoo.constants())]),
        dict(elements=4),
        {},
    )
}


@pytest.mark.parametrize(
    "name",
    [
        "pendulum",
        pytest.param("planar", marks=pytest.mark.slow),
        pytest.param("parallelogram", marks=pytest.mark.slow),
    ],
)
def test_batch_has_the_roots_of_its_lanes(name, record_number):
    """Newton's form for batches (last axis; finished runs stay) against one run after the
    other: steps of different length, one from farther away.
    """
    make, options, joints = BATCHES[name]
    model, drive = fx.PortHamiltonian(**options).bind(make()), fx.Drive(joints=joints)
    term, y = model.term(drive), quick_jit(lambda: random_state(model, drive))()

    def root(h, factor):
        stage = term.prepare(jnp.asarray(0.1), y.mech, h, (0.1 + h, 2.0), None, y.memory)
        u, ok = solve_stage(
            term, stage, jax.tree_util.tree_map(lambda x: factor * x, term.guess(y.mech)), 1e-3 / h
        )
        return u.joints, u.nodes, ok

    lanes = jnp.array([1e-4, 5e-4, 1e-3]), jnp.array([1.0, 1.0, 0.8])
    together, alone = quick_jit(jax.vmap(root))(*lanes), quick_jit(root)
    for i in range(3):
        joints, nodes, ok = alone(lanes[0][i], lanes[1][i])
        assert bool(ok) and bool(together[2][i])
        size = float(jnp.max(jnp.abs(nodes)))
        gap = max(
            float(jnp.max(jnp.abs(a[i] - b), initial=0.0))
            for a, b in zip(together[:2], (joints, nodes), strict=True)
        )
        record_number(f"root of lane {i} in a batch, {name}, relative", gap / size, 1e-11)
