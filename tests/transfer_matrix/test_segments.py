"""Cosines and sines of batches, and where the mass of curved segments lies."""

import jax
import jax.numpy as jnp
import numpy as np

import flexjax as fx
from flexjax.formulation.transfer_matrix._link import segment_bodies
from flexjax.formulation.transfer_matrix.sweep import cos_sin
from flexjax.mechanism import rigid_inertia


def test_cosines_of_many_angles(record_number):
    """Every quadrant and its borders, and angles of many turns."""
    borders = np.pi / 4 * np.arange(-40, 41)
    x = np.concatenate(
        [
            np.linspace(-30.0, 30.0, 20001),
            borders,
            np.nextafter(borders, 100.0),
            1e5 * np.linspace(-1.0, 1.0, 1001),
        ]
    )
    c, s = jax.jit(jax.vmap(cos_sin))(jnp.asarray(x))
    record_number(
        "cosine and sine of a batch",
        max(np.abs(c - np.cos(x)).max(), np.abs(s - np.sin(x)).max()),
        5e-16,
    )
    slope = jax.jit(jax.vmap(jax.grad(lambda x: cos_sin(x)[0] + 2 * cos_sin(x)[1])))(jnp.asarray(x))
    record_number("their derivatives", np.abs(slope + np.sin(x) - 2 * np.cos(x)).max(), 2e-15)
    single = jax.jit(jax.vmap(cos_sin))(jnp.asarray(x[:50], jnp.float32))[0]
    assert single.dtype == jnp.float32


def test_mass_of_a_curved_link(record_number):
    """Unstressed segments of a curved, tapered link are together the rigid link: mass, first
    moments, inertia.
    """
    link = fx.Link(
        "bow",
        0.5,
        section=fx.Rectangle(0.02, 0.012),
        section_end=fx.Rectangle(0.02, 0.008),
        material=fx.Material.named("aluminium"),
        curvature=(0.0, 0.0, 0.8),
    )
    bodies = segment_bodies(link, 3, rotary=True, planar=True)
    angle, point, total = 0.0, np.zeros(2), np.zeros(4)
    for k in range(3):
        angle += float(bodies.rest_angle[k, 0])
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        m, first = float(bodies.mass[k]), turn @ np.asarray(bodies.moment[k])
        about = float(bodies.inertia[k]) + 2 * point @ first + m * point @ point
        total += [m, *(m * point + first), about]
        point = point + turn @ np.asarray(bodies.reach[k])
        angle += float(bodies.rest_angle[k, 1])
    M = np.asarray(rigid_inertia(link))
    want = np.array([M[0, 0], M[1, 5], -M[0, 5], M[5, 5]])
    record_number(
        "curved link in three segments against the rigid one",
        np.max(np.abs(total / want - 1)),
        1e-6,
    )


def test_gradient_of_sections_without_rotary_inertia():
    """The time in which a half segment bends contains the root of its inertia, here zero."""

    def total(constants):
        link = fx.Link("a", 0.5, constants=constants)
        return jnp.sum(segment_bodies(link, 2, rotary=True, planar=False).compliance_times_lag)

    slope = jax.jit(jax.grad(total))(fx.BeamConstants(EA=1e5, EIy=2.0, EIz=3.0, GJ=1.0, rhoA=0.5))
    assert all(np.isfinite(x) for x in jax.tree.leaves(slope))
