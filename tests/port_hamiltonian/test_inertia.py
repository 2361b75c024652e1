"""Elements of a link that does not deform: they move, weigh and resist as the rigid link does,
whatever its curvature, taper and pieces.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.formulation.port_hamiltonian._link import element_table, station_weights
from flexjax.formulation.port_hamiltonian._nodes import place_on_arc
from flexjax.mechanism import beam_properties, centreline_pose, link_quadrature
from flexjax.numerics.screw import se3
from flexjax.numerics.screw._components_first import ad, cayley_screw

SOFT = fx.Material(E=2e9, nu=0.3, rho=1200.0)
TAPER = dict(
    section=fx.Rectangle(0.03, 0.014), section_end=fx.Rectangle(0.012, 0.01), material=SOFT
)
PIECES = (fx.Piece(0.37, material=SOFT, section=fx.Tube(0.02, 0.002)), fx.Piece(0.63, **TAPER))
LINKS = {
    "tapered": fx.Link("link", 0.4, **TAPER),
    "curved": fx.Link(
        "link", 0.4, section=fx.Rectangle(0.03, 0.014), material=SOFT, curvature=(1.0, -2.0, 3.0)
    ),
    "all": fx.Link("link", 0.4, pieces=PIECES, curvature=(1.0, -2.0, 3.0)),
}


def carried(link, n):
    """(n + 1, 6, 6): twists of the nodes from that of the base, as the elements carry them when no
    strain changes.
    """
    shape = (
        jnp.concatenate(
            [jnp.array([1.0, 0.0, 0.0]), jnp.zeros(3) if link.curvature is None else link.curvature]
        )
        * link.length
        / n
    )
    turn = np.asarray(ad(cayley_screw(shape)))
    step = np.linalg.solve(np.eye(6) + 0.5 * turn, np.eye(6) - 0.5 * turn)
    return np.stack([np.linalg.matrix_power(step, k) for k in range(n + 1)])


def rigid_inertia(link):
    """Twelve points on every piece: the five of the library's are right to 6e-10 for a link that
    turns by 1.5 rad.
    """
    s, w = link_quadrature(link, 12)
    p = beam_properties(link, s)
    back = jax.vmap(lambda s: se3.adjoint_inverse(centreline_pose(link, s)))(s)
    sections = jnp.stack([p.rhoA, p.rhoA, p.rhoA, p.rhoIx, p.rhoIy, p.rhoIz], axis=1)
    return jnp.einsum("s,ski,sk,skj->ij", w * link.length, back, sections, back)


@pytest.mark.parametrize("name", LINKS)
def test_an_undeformed_link_is_the_rigid_one(name, record_number):
    link, n = LINKS[name], 3
    there = carried(link, n)
    table = element_table(link, n, blend=1.0)
    own, weight, moment = (np.asarray(x) for x in table.nodal())
    off = np.asarray(table.coupling)
    off = off[..., None] * np.eye(6) if off.ndim == 2 else off
    found = sum(there[k].T @ own[k] @ there[k] for k in range(n + 1))
    for k in range(n):
        pair = there[k].T @ off[k] @ there[k + 1]
        found = found + pair + pair.T
    exact = np.asarray(rigid_inertia(link))
    record_number(
        f"{name}: inertia of an undeformed link in three elements, relative",
        np.max(np.abs(found - exact)) / np.max(np.abs(exact)),
        1e-13,
    )
    poses = [centreline_pose(link, jnp.asarray(k / n)) for k in range(n + 1)]
    record_number(
        f"{name}: twists of its nodes",
        max(np.max(np.abs(there[k] - se3.adjoint_inverse(g))) for k, g in enumerate(poses)),
        1e-13,
    )
    # It hangs where it is: mass and first moment of what weighs on the nodes.
    first = sum(weight[k] * g.position + g.rotation @ moment[k] for k, g in enumerate(poses))
    np.testing.assert_allclose(np.sum(weight), exact[0, 0], rtol=1e-13)
    np.testing.assert_allclose(first, [exact[5, 1], exact[3, 2], exact[4, 0]], atol=1e-15)
    assert np.all(np.linalg.eigvalsh(own) > 0)


def test_a_wrench_on_the_arc_has_its_resultant():
    link, n, s = LINKS["curved"], 3, jnp.asarray(0.45)
    share = station_weights(s, n)
    turn, lever = (jnp.moveaxis(x, -1, 0) for x in place_on_arc(link, s, share, 3))
    wrench = jnp.array([1.0, -2.0, 0.5, 0.1, 0.3, -0.2])
    nodes = jax.vmap(lambda k: centreline_pose(link, k / n))(jnp.arange(n + 1.0))
    on_nodes = share[:, None] * jax.vmap(lambda R, c: se3.transport_wrench(se3.Pose(R, c), wrench))(
        turn, lever
    )
    found = jnp.sum(jax.vmap(se3.transport_wrench)(nodes, on_nodes), axis=0)
    np.testing.assert_allclose(
        found, se3.transport_wrench(centreline_pose(link, s), wrench), atol=1e-14
    )


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.0999, 0.1001, 1.3])
def test_arcs_as_cayley_maps(size):
    """Also where the series ends, with its derivative."""
    xi = jnp.array([0.3, -0.1, 0.2, *(size * np.array([2.0, -1.0, 2.0]) / 3.0)])

    def gap(xi):
        turn = ad(cayley_screw(xi))
        return (jnp.eye(6) + 0.5 * turn) @ se3.adjoint_inverse(se3.exp(xi)) - (
            jnp.eye(6) - 0.5 * turn
        )

    np.testing.assert_allclose(gap(xi), 0.0, atol=1e-14)
    np.testing.assert_allclose(jax.jacfwd(gap)(xi), 0.0, atol=1e-13)
