"""Elements in a stage against their definition: the closed form of the strains, power, tangent, and
the mean gradient of a nonlinear strain energy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from flexjax.formulation.port_hamiltonian._link import Elements, station_weights, strain_rate
from flexjax.numerics.linalg._components_first import mv
from flexjax.numerics.screw._components_first import ad

d, N = 3, 2


def quartic(q, stiffness):
    return 0.5 * jnp.sum(q * (stiffness @ q)) + 0.3 * jnp.sum(q**2) ** 2


def elements(kind):
    rng = np.random.default_rng(0)
    draw = lambda *s: jnp.asarray(rng.normal(size=s))
    root = draw(d, d, 1, N)
    full = jnp.einsum("ikln,jkln->ijln", root, root) + 3 * jnp.eye(d)[:, :, None, None]
    diagonal = jnp.einsum("iiln->iln", full)
    tau = None if kind == "plain" else jnp.full((1, 1, 1), 0.2)
    density = quartic if kind == "nonlinear" else None
    shape = 0.3 * draw(d, 1, N)
    stiffness = diagonal if kind == "plain" else full
    length = jnp.full(1, 0.4)
    return Elements(length, shape, shape, stiffness, tau, density), 0.1 * draw(d, 1, N), draw


@eqx.filter_jit
def stage(e, start, h, V):
    kinematics = e.kinematics(start, h, V)
    on_a, on_b, Q, loss = e.forces(start, h, kinematics)

    def forces(V):
        return jnp.stack(e.forces(start, h, e.kinematics(start, h, V))[:2])

    linear = mv(e.stiffness, Q) if e.stiffness.ndim > Q.ndim else e.stiffness * Q
    return dict(
        kinematics=kinematics,
        forces=(on_a, on_b),
        Q=Q,
        loss=loss,
        rate=strain_rate(kinematics[1], V),
        wrench=e.wrench(Q, start),
        linear=linear,
        energies=(e.energy(start), e.energy(Q), e.energy(2 * Q - start)),
        tangent=jnp.stack(e.tangent(start, h, kinematics)),
        exact=jax.jacfwd(forces)(V),
        damping=e.damped_wrench(Q, start, lambda: (Q - start) / h)[0] - e.wrench(Q, start),
        turn=ad(0.5 * (V[:, :, :-1] + V[:, :, 1:])),
    )


@pytest.mark.parametrize("kind", ["plain", "nonlinear"])
def test_a_stage(kind):
    e, start, draw = elements(kind)
    h, V = jnp.full((1, 1, 1), 0.3), draw(d, 1, N + 1)
    s = stage(e, start, h, V)
    Q, rate = s["Q"], s["rate"]
    np.testing.assert_allclose(Q - start, h * rate, atol=1e-13)
    for n in range(N):
        turn = np.eye(d) + 0.3 * s["turn"][:, :, 0, n]
        np.testing.assert_allclose(turn @ s["kinematics"][0][:, :, 0, n], np.eye(d), atol=1e-13)
    on_a, on_b = s["forces"]
    power = jnp.sum(V[:, :, :-1] * on_a) + jnp.sum(V[:, :, 1:] * on_b)
    wrench = s["wrench"] + s["damping"]
    assert float(power) == pytest.approx(-float(jnp.sum(wrench * rate)), rel=1e-12)
    assert float(s["loss"]) == pytest.approx(float(jnp.sum(s["damping"] * rate)), abs=1e-13)
    before, middle, after = (float(x) for x in s["energies"])
    work = float(jnp.sum(s["wrench"] * 2 * (Q - start)))
    assert after - before == pytest.approx(work, rel=1e-12)
    if kind == "plain":
        assert middle == pytest.approx(0.5 * float(jnp.sum(Q * s["linear"])), rel=1e-13)
        np.testing.assert_allclose(s["wrench"], s["linear"], atol=1e-14)
        assert not np.any(s["damping"])
    else:
        np.testing.assert_allclose(s["damping"], 0.2 * mv(e.stiffness, (Q - start) / h), atol=1e-13)
        q, l = Q[:, 0] / 0.4, 0.4
        quadratic = 0.5 * float(jnp.sum(Q * s["linear"]))
        assert middle == pytest.approx(quadratic + l * 0.3 * float(jnp.sum(jnp.sum(q**2, 0) ** 2)))
    # Blocks aa, ab, ba, bb; of the derivative with respect to all nodes those of an element's own.
    for n in range(N):
        for k, (row, node) in enumerate([(0, n), (0, n + 1), (1, n), (1, n + 1)]):
            wanted = s["exact"][row, :, 0, n, :, 0, node]
            np.testing.assert_allclose(s["tangent"][k, :, :, 0, n], wanted, atol=1e-12)


def test_weights_of_stations():
    weights = jax.vmap(lambda s: station_weights(s, 2))(jnp.array([0.0, 0.25, 0.5, 0.875, 1.0]))
    wanted = [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.25, 0.75], [0, 0, 1]]
    np.testing.assert_allclose(weights, wanted)
