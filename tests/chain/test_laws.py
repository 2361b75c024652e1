"""What links owe to a chain, each against its definition: forces and gradients against derivatives
of the energies, velocity products against Lagrange's equations, factors against their matrix.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.mechanism.chain import AbstractLinks
from flexjax.mechanism.chain.geometry._links import AbstractSections, MotionPair
from flexjax.numerics.linalg import mm, mtv, mv, transpose
from flexjax.numerics.screw import se2, se3

L, MU, EI, EA, TAU, DRAG = 0.7, 0.9, 1.3, 80.0, 0.02, 0.3
BEAM = fx.BeamConstants(EA=EA, EIy=2.0, EIz=EI, GJ=0.8, rhoA=MU)
DAMPED = fx.Link("damped", L, constants=BEAM, damping=fx.Damping(strain_rate=TAU, mass=DRAG))
GUIDED = fx.Link("guided", 0.5, constants=BEAM)
GUIDE = fx.Joint("guide", "prismatic", "damped", "guided", rotation=[0, 0, 0.4])
ONE = fx.Robot.serial([DAMPED], planar=True)
TWO = fx.Robot("two", [DAMPED, GUIDED], [ONE.joints[0], GUIDE], planar=True)
CASES = {
    "modes, linear": (fx.ScrewSynthesis(modes=2, variant="paper"), ONE),
    "elements": (fx.FiniteElement(elements=2), ONE),
    "elements in a guide": (fx.FiniteElement(elements=2), TWO),
}


def momenta(links, eta, z, rate):
    mass = links.mass(eta)
    return mv(mass.zz, z) + mv(mass.ze, rate), mtv(mass.ze, z) + links.apply(mass, rate)


def product(links, eta, a, b):
    """The mass form of two motions (z, rate)."""
    wrench, shape = momenta(links, eta, *b)
    return jnp.sum(a[0] * wrench) + jnp.sum(a[1] * shape)


def body_twist(space, pose, rate):
    back = transpose(pose.rotation)
    spin, linear = mm(back, rate.rotation), mv(back, rate.position)
    if space is se2:
        return jnp.concatenate([linear, spin[:, 1, :1]], axis=1)
    angular = [spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]]
    return jnp.concatenate([linear, jnp.stack(angular, axis=1)], axis=1)


@eqx.filter_jit
def both_sides(links, eta, a, b, wrenches):
    """Pairs that must be equal, by name."""
    space = se2 if a[0].shape[1] == 3 else se3
    pair = MotionPair(jnp.stack([a[0], b[0]]), jnp.stack([a[1], b[1]]))
    z, rate = a
    p, p_rate = jax.jvp(lambda e: momenta(links, e, z, rate), (eta,), (rate,))
    carried = jax.vmap(lambda z, p: space.ad_star(z) @ p)(z, p[0])
    kinetic = jax.grad(lambda e: 0.5 * product(links, e, a, a))(eta)
    wrench, shape = links.bias(eta, rate, z)
    gradient = jax.grad(lambda e: 0.5 * product(links, e, a, b))(eta)
    tip = links.tip(eta)
    pose, pose_rate = jax.jvp(lambda e: links.tip(e).pose, (eta,), (rate,))
    there = links.section(eta, jnp.ones_like(links.length))
    return {
        "symmetric mass": (product(links, eta, a, b), product(links, eta, b, a)),
        "elastic force": (
            links.elastic_force(eta),
            jax.grad(lambda e: jnp.sum(links.elastic_energy(e)))(eta),
        ),
        "kinetic gradient": (links.kinetic_gradient(eta, pair), gradient),
        "wrench of velocities": (wrench, p_rate[0] - carried),
        "shape force of velocities": (shape, p_rate[1] - kinetic),
        "tip gradient": (
            links.tip_gradient(eta, pair, wrenches, space),
            AbstractSections.tip_gradient(links, eta, pair, wrenches, space),
        ),
        "tip's Jacobian": (mv(tip.S, rate), body_twist(space, pose, pose_rate)),
        "tip is a section": ((tip.pose.position, tip.S), (there.pose.position, there.S)),
    }


@pytest.mark.parametrize("name", CASES)
def test_links_keep_the_laws(name):
    formulation, robot = CASES[name]
    links = formulation.bind(robot).links
    assert isinstance(links, AbstractLinks)
    rng, m, dim = np.random.default_rng(0), links.mass, links.mass
    extends = robot is TWO
    m = links.numbers.a.shape[1] + extends if "elements" in name else links.integrals.K.shape[1]
    dim, B = 3 if "elements" in name else 6, links.length.shape[0]
    draw = lambda *s: jnp.asarray(rng.normal(size=s))
    eta = 0.1 * draw(B, m)
    eta = eta.at[:, -1].set(0.35) if extends else eta
    a, b = ((draw(B, dim), draw(B, m)) for _ in range(2))
    for law, sides in both_sides(links, eta, a, b, draw(2, B, dim)).items():
        for x, y in zip(*map(jax.tree.leaves, sides), strict=True):
            assert np.max(np.abs(x - y)) < 1e-11 * (1 + np.max(np.abs(y))), law


@pytest.mark.parametrize("name", ["modes, linear", "elements"])
def test_damping_and_factors_of_a_uniform_link(name):
    formulation, robot = CASES[name]
    links = formulation.bind(robot).links
    m = links.numbers.a.shape[1] if "elements" in name else links.integrals.K.shape[1]
    cv, cq, rng = 0.3, 0.2, np.random.default_rng(1)
    eta, x = (jnp.asarray(0.1 * rng.normal(size=(1, m))) for _ in range(2))

    @eqx.filter_jit
    def found(links, eta, x):
        mass, still = links.mass(eta), links.mass(jnp.zeros_like(eta))
        force = links.damping_force(eta, x)
        applied = links.apply(mass, x) + cv * force + cq * links.elastic_force(x)
        solved = links.solve(links.factor(eta, mass, cv, cq), applied[:, :, None])[:, :, 0]
        own = links.apply(mass, x)
        plain = links.solve(links.factor(eta, mass, None, None), own[:, :, None])[:, :, 0]
        return force, TAU * links.elastic_force(x) + DRAG * links.apply(still, x), solved, plain

    force, wanted, solved, plain = found(links, eta, x)
    np.testing.assert_allclose(force, wanted, atol=1e-12)
    np.testing.assert_allclose(solved, x, atol=1e-12)
    np.testing.assert_allclose(plain, x, atol=1e-12)


def test_strain_energy_of_a_constant_curvature():
    """EI kappa^2 L / 2, of the deflection kappa x^2 / 2, which cubics have exactly."""
    links = fx.FiniteElement(elements=2).bind(ONE).links
    kappa, x = 0.6, np.array([0.5, 1.0])
    # Value and slope, in elements, at the nodes.
    shape = np.stack([0.5 * kappa * (L * x) ** 2, kappa * L**2 * x / 2], axis=1).reshape(1, -1)
    energy = links.elastic_energy(jnp.asarray(shape))
    np.testing.assert_allclose(energy, 0.5 * EI * kappa**2 * L, rtol=1e-12)
