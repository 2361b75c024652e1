"""The interfaces of flexible links: what only some have is required where it is used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.finite_element._link import FiniteElementLinks
from flexjax.formulation.screw_synthesis._link import ModalLinks
from flexjax.mechanism.chain import (
    AbstractLinks,
    AbstractPointLinks,
    AbstractSlidingLinks,
    point_link_refusals,
    point_masses,
    sliding_links,
)
from flexjax.numerics.screw import se2, se3


def test_links_that_cannot_slide_are_refused():
    links = ModalLinks.__new__(ModalLinks)
    with pytest.raises(TypeError, match="links: ModalLinks; expected AbstractSlidingLinks"):
        sliding_links(links)


def test_finite_elements_have_the_interface_and_modes_do_not():
    assert issubclass(FiniteElementLinks, AbstractSlidingLinks)
    assert issubclass(ModalLinks, AbstractLinks) and not issubclass(
        ModalLinks, AbstractSlidingLinks
    )


class Rods(AbstractPointLinks):
    """Two coordinates: extension and bending (plane), or bending about two axes (space)."""

    length: jax.Array
    stations: jax.Array
    masses: jax.Array
    tau: jax.Array
    space: bool

    def place(self, eta, s):
        L, (a, b) = self.length, (eta[:, 0], eta[:, 1])
        if self.space:
            x, y, z = s * L, 0.5 * L * s**2 * jnp.sin(a), L * s**2 * b * (1 + a)
            rotvec = jnp.stack([a * b * s, -b * s, a * s], 1)
            turned = jax.vmap(se3.rotation_exp)(rotvec)
            return se3.Pose(turned, jnp.stack([x, y, z], 1))
        x, y = s * L * (1 + a), 0.5 * L * s**2 * jnp.sin(b)
        return se2.Pose(jax.vmap(se2.rotation_exp)((b * s)[:, None]), jnp.stack([x, y], 1))

    def elastic_energy(self, eta):
        return 2.0 * eta[:, 0] ** 2 + eta[:, 1] ** 2 + eta[:, 0] ** 2 * eta[:, 1]


def _cross(spin, r):
    """spin x r for (B, 1 or 3) and (B, k, d)."""
    if r.shape[2] == 2:
        return spin[:, :, None] * jnp.stack([-r[..., 1], r[..., 0]], -1)
    return jnp.cross(spin[:, None], r)


@pytest.mark.parametrize("space", [False, True], ids=["plane", "space"])
def test_point_links_follow_newton(space):
    """Mass and bias against second derivatives of the points' positions in time; forces and factors
    against the energy."""
    rng, d, dim = np.random.default_rng(0), 3 if space else 2, 6 if space else 3
    rods = Rods(*(jnp.asarray(rng.uniform(0.5, 1.0, n)) for n in (2, (2, 4), (2, 4), 2)), space)
    state = [jnp.asarray(rng.normal(size=(2, n))) for n in (2, 2, 2, dim, dim)]

    def points(x):
        return jnp.stack([rods.place(x, s).position for s in rods.stations.T], 1)

    @jax.jit
    def sides(eta, rate, acc, z, zd):
        u, w = z[:, None, :d], z[:, d:]

        def position(t):
            """To the second order in time, in axes that coincide with the frame's at t = 0."""
            r = points(eta + t * rate + 0.5 * t**2 * acc)
            spun, drift = _cross(w, r), _cross(w, jnp.broadcast_to(u, r.shape))
            swept = zd[:, None, :d] + drift + _cross(w, spun) + _cross(zd[:, d:], r)
            return r + t * (u + spun) + 0.5 * t**2 * swept

        velocity = lambda t: jax.jvp(position, (t,), (1.0,))[1]
        force = rods.masses[..., None] * jax.jvp(velocity, (0.0,), (1.0,))[1]
        r, J = points(eta), jax.jacfwd(points)(eta)
        axes = jnp.broadcast_to(jnp.eye(dim - d)[:, None], (dim - d, 2, dim - d))
        moment = jnp.stack([jnp.sum(_cross(axis, r) * force, (1, 2)) for axis in axes], 1)
        mass, (hz, he) = rods.mass(eta), rods.bias(eta, rate, z)
        whole = jnp.block([[mass.zz, mass.ze], [jnp.swapaxes(mass.ze, 1, 2), mass.ee]])
        found = jnp.einsum("bij,bj->bi", whole, jnp.concatenate([zd, acc], 1))
        shape = jnp.einsum("bkdbm,bkd->bm", J, force)
        stiffness = jax.vmap(jax.hessian(lambda x: rods.elastic_energy(x[None])[0]))(eta)
        matrix = mass.ee + (0.3 * rods.tau + 0.7)[:, None, None] * stiffness
        solution = rods.solve(rods.factor(eta, mass, 0.3, 0.7), acc[:, :, None])
        energy = lambda x: rods.elastic_energy(x[None])[0]
        damped = rods.tau[:, None] * jnp.einsum("bij,bj->bi", stiffness, rate)
        return (
            (
                found + jnp.concatenate([hz, he], 1),
                jnp.concatenate([force.sum(1), moment, shape], 1),
            ),
            (rods.elastic_force(eta), jax.vmap(jax.grad(energy))(eta)),
            (rods.damping_force(eta, rate), damped),
            (jnp.einsum("bij,bjk->bik", matrix, solution)[:, :, 0], acc),
        )

    for found, expected in sides(*state):
        np.testing.assert_allclose(found, expected, atol=1e-11)


def test_points_of_a_link_have_its_mass():
    arm = fx.load_robot("metal-link")
    link = arm.links[0]
    s, masses = point_masses(arm, link, (0.0, 0.2, 1.0))
    whole = 2700.0 * 0.01**2 * float(link.length)
    np.testing.assert_allclose(masses.sum(), whole + sum(p.mass for p in arm.payloads), rtol=1e-12)
    np.testing.assert_allclose(
        jnp.sum(masses * s) * link.length, whole * link.length / 2, rtol=1e-9
    )
    faults = point_link_refusals(fx.load_robot("rigid-3r"))
    assert faults and all("rigid or curved; expected an elastic" in fault for fault in faults)
