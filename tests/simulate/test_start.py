"""A run starts from a state of its own model only; other states are refused before compilation."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate._start import starting_state
from tests.contract_cases import CONTRACTS, RIGID, method

TS = jnp.linspace(0.0, 0.02, 3)


def arm(links: int = 1) -> fx.Robot:
    material = fx.Material(E=70e9, nu=0.3, rho=2700.0)
    names = ["ground", *(f"link{i}" for i in range(links))]
    return fx.Robot(
        "arm",
        tuple(
            fx.Link(name, 0.5, section=fx.Rectangle(0.03, 0.004), material=material)
            for name in names[1:]
        ),
        tuple(fx.Joint(f"joint{i}", "revolute", names[i], names[i + 1]) for i in range(links)),
        planar=True,
    )


@cache
def model(name: str, links: int = 1):
    return method(name, "start").bind(arm(links))


@cache
def rest(name: str, links: int = 1):
    """A state as users have it, marked with its formulation."""
    return starting_state(model(name, links), fx.Drive(), None)


def test_some_formulations_have_states_of_the_same_shape():
    """So that shapes alone cannot refuse all that the next test gives."""
    shapes = [tuple(x.shape for x in jax.tree.leaves(rest(name).mech)) for name in CONTRACTS]
    assert len(set(shapes)) < len(shapes)


@pytest.mark.parametrize("name", CONTRACTS)
def test_states_of_other_models_are_refused(name):
    own = model(name)
    uses = (
        lambda y: fx.simulate(own, None, TS, dt=0.01, start=y),
        lambda y: jax.jit(lambda y: fx.simulate(own, None, TS, dt=0.01, start=y).tip)(y),
        lambda y: fx.equilibrium(own, None, y),
        lambda y: fx.modes(own, None, y),
        lambda y: fx.linearise(own, None, y),
    )
    foreign = [
        (rest(other), f"start: a state of {other}; expected one of {name}. ")
        for other in CONTRACTS
        if other != name
    ]
    if not method(name, "start").refusals(arm(2)):
        q, more = rest(name).mech.q, rest(name, 2).mech.q
        foreign.append((rest(name, 2), f"start.mech.q: shape {more.shape}; expected {q.shape}"))
    for y, said in foreign:
        for use in uses:
            with pytest.raises(ValueError) as error:
                use(y)
            assert said in str(error.value)
            assert "arm" in str(error.value) and "traj.final" in str(error.value)


def test_memory_of_another_drive_is_refused():
    hold = fx.Sampled(lambda t, q, qd, p: 0.0 * qd[0], period=0.01)
    drive = fx.Drive(joints={"joint0": hold})
    with pytest.raises(ValueError, match=r"start\.memory.*initial_state"):
        fx.simulate(model(RIGID[0]), drive, TS, dt=0.01, start=rest(RIGID[0]))
    y = fx.simulate(model(RIGID[0]), drive, TS, dt=0.01).final
    with pytest.raises(ValueError, match=r"start\.memory.*initial_state"):
        fx.simulate(model(RIGID[0]), None, TS, dt=0.01, start=y)


def test_own_states_pass():
    m = model(RIGID[0])
    y = m.initial_state(fx.Drive(), 0.0, fx.Start({"joint0": 0.3}))
    whole = fx.simulate(m, None, jnp.linspace(0.0, 0.04, 5), dt=0.01, start={"joint0": 0.3})

    def on(y, _):
        return fx.simulate(m, None, TS, dt=0.01, start=y).final, None

    last, _ = jax.lax.scan(on, y, None, length=2)
    np.testing.assert_allclose(last.mech.q, whole.final.mech.q, rtol=1e-12)
    last, _ = jax.lax.scan(on, whole.final, None, length=2)
    single = jax.tree.map(lambda x: x.astype(jnp.float32), whole.final)
    assert fx.simulate(m, None, TS, dt=0.01, start=single).q.dtype == whole.q.dtype
    assert fx.simulate(m, None, TS, dt=0.01, start=fx.equilibrium(m, None)).ok
    made = fx.State(y.mech, y.work, y.dissipated)  # from its parts, without a memory
    assert fx.simulate(m, None, TS, dt=0.01, start=made).ok


def test_starts_that_are_not_finite_are_refused():
    m = model(RIGID[0])
    for start, said in (
        ({"joint0": jnp.nan}, "start.joints.joint0: nan; expected a finite number"),
        (fx.Start(rates={"joint0": jnp.inf}), "start.rates.joint0: inf; expected a finite number"),
        (
            eqx.tree_at(lambda y: y.mech.q, rest(RIGID[0]), jnp.array([jnp.nan])),
            "start.mech.q.0: nan; expected a finite number",
        ),
    ):
        with pytest.raises(ValueError) as error:
            fx.simulate(m, None, TS, dt=0.01, start=start)
        assert said in str(error.value)
    with pytest.raises(ValueError, match="start: list; expected fx.Start"):
        fx.modes(m, at=[0.1])
