"""A run starts from a state of its own model only; other states are refused before compilation."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx

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
    options = {"FiniteElement": {"elements": 2}, "ScrewSynthesis": {"modes": 4}}.get(name, {})
    return getattr(fx, name)(**options).bind(arm(links))


@cache
def final(name: str, links: int = 1):
    return fx.simulate(model(name, links), None, TS, dt=0.01, stations=2, throw=False).final


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (("RigidArm", 1), "start: a state of RigidArm; expected one of FiniteElement"),
        (("ScrewSynthesis", 1), "start: a state of ScrewSynthesis; expected one of FiniteElement"),
        (("TransferMatrix", 1), "start: a state of TransferMatrix; expected one of FiniteElement"),
        (("FiniteElement", 2), "start.mech.q: shape (10,); expected (5,)"),
    ],
)
def test_states_of_other_models_are_refused(start, said):
    for use in (
        lambda m, y: fx.simulate(m, None, TS, dt=0.01, start=y),
        lambda m, y: jax.jit(lambda y: fx.simulate(m, None, TS, dt=0.01, start=y).tip)(y),
        lambda m, y: fx.equilibrium(m, None, y),
        lambda m, y: fx.modes(m, y),
        lambda m, y: fx.linearise(m, None, y),
    ):
        with pytest.raises(ValueError) as error:
            use(model("FiniteElement"), final(*start))
        assert said in str(error.value)
        assert "arm" in str(error.value) and "traj.final" in str(error.value)


def test_memory_of_another_drive_is_refused():
    hold = fx.Sampled(lambda t, q, qd, p: 0.0 * qd[0], period=0.01)
    drive = fx.Drive(joints={"joint0": hold})
    with pytest.raises(ValueError, match=r"start\.memory.*initial_memory"):
        fx.simulate(model("RigidArm"), drive, TS, dt=0.01, start=final("RigidArm"))
    y = fx.simulate(model("RigidArm"), drive, TS, dt=0.01).final
    with pytest.raises(ValueError, match=r"start\.memory.*initial_memory"):
        fx.simulate(model("RigidArm"), None, TS, dt=0.01, start=y)


def test_own_states_pass():
    m = model("RigidArm")
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


def test_starts_that_are_not_finite_are_refused():
    m = model("RigidArm")
    for start, said in (
        ({"joint0": jnp.nan}, "start.joints.joint0: nan; expected a finite number"),
        (fx.Start(rates={"joint0": jnp.inf}), "start.rates.joint0: inf; expected a finite number"),
        (
            eqx.tree_at(lambda y: y.mech.q, final("RigidArm"), jnp.array([jnp.nan])),
            "start.mech.q.0: nan; expected a finite number",
        ),
    ):
        with pytest.raises(ValueError) as error:
            fx.simulate(m, None, TS, dt=0.01, start=start)
        assert said in str(error.value)
    with pytest.raises(ValueError, match="start: list; expected fx.Start"):
        fx.modes(m, [0.1])
