"""Every transformation of jax that a user may write, eager and compiled, in every formulation.

One short run of one link. These tests ask whether a transformation goes through and whether all of
them agree; other tests ask whether the physics is right.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax._rules import batch_size
from tests.contract_cases import RIGID, SMALLEST, each, light, pendulum

TS = np.array([0.0, 5e-3, 1e-2])
FIRST = RIGID[0]  # the smallest programs
X = jnp.array([1.0, 1.1, 0.9])
V = jnp.array([0.3, -0.2, 0.5])  # a direction


def batch(x):
    return jnp.stack([x, jnp.array([0.95, 1.2, 1.0])])


def parts(name, x):
    """A model and a drive with density, payload and gain scaled by the components of ``x``."""
    robot = pendulum().replace("links.link.material.rho", 1200.0 * x[0])
    robot = robot.replace("payloads.tool.mass", 0.05 * x[1])
    drive = fx.Drive(joints={"root": fx.PD(3.0 * x[2], 0.1, fx.constant(0.6))})
    return SMALLEST[name]().bind(robot), drive


def simulated(name, x, start=None):
    model, drive = parts(name, x)
    return fx.simulate(model, drive, TS, dt=5e-3, start=start, stations=3, throw=False)


@functools.cache
def loss(name):
    def fn(x):
        traj = simulated(name, x)
        return traj.tip[-1, 1] + 0.1 * traj.energy.elastic[-1] + 0.01 * traj.qd[-1, 0]

    return fn


def differences(f, step=1e-3):
    """Directional derivative along V from values alone: independent of every transformation."""
    a, b = ((f(X + h * V) - f(X - h * V)) / (2 * h) for h in (step, 2 * step))
    return np.asarray((4 * a - b) / 3)


@functools.cache
def compiled(name):
    """Value and gradient in one program, for all rows that need either."""
    return jax.jit(jax.value_and_grad(loss(name)))


@functools.cache
def gradient(name):
    """Compiled reverse mode, after a comparison with differences."""
    slope = compiled(name)(X)[1]
    close(slope @ V, differences(lambda x: compiled(name)(x)[0]), 1e-7)
    return slope


def close(got, wanted, rtol=1e-9):
    scale = np.max(np.abs(np.asarray(wanted)))
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=rtol, atol=rtol * scale)


# Each gives the derivative of f along V.
FIRST_ORDER = {
    "grad": lambda f: lambda x: jax.grad(f)(x) @ V,
    "value_and_grad": lambda f: lambda x: jax.value_and_grad(f)(x)[1] @ V,
    "jacfwd": lambda f: lambda x: jax.jacfwd(f)(x) @ V,
    "jacrev": lambda f: lambda x: jax.jacrev(f)(x) @ V,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (V,))[1],
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](1.0)[0] @ V,
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](V),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(batch(x))[0] @ V,
    "grad of vmap": lambda f: lambda x: jax.grad(lambda xs: jax.vmap(f)(xs).sum())(batch(x))[0] @ V,
    "checkpoint": lambda f: lambda x: jax.grad(jax.checkpoint(f))(x) @ V,
}


def matrix(quick: dict[str, list[str]]):
    """(how, name) for every transformation and formulation; what is not in ``quick`` is slow."""
    return [
        pytest.param(
            how,
            name,
            id=f"{name}-{how}",
            marks=[] if how in quick.get(name, []) else [pytest.mark.slow],
        )
        for name in SMALLEST
        for how in FIRST_ORDER
    ]


EVERY = dict.fromkeys(RIGID, list(FIRST_ORDER))


@pytest.mark.parametrize("how, name", matrix(dict.fromkeys(light(), ["linearize"]) | EVERY))
def test_first_order_eager(how, name):
    close(FIRST_ORDER[how](loss(name))(X), gradient(name) @ V)


@pytest.mark.parametrize("how, name", matrix(EVERY))
def test_first_order_compiled(how, name):
    close(jax.jit(FIRST_ORDER[how](loss(name)))(X), gradient(name) @ V)


SECOND_ORDER = {
    "hessian": lambda f: lambda x: jax.hessian(f)(x) @ V,
    "jvp of grad": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (V,))[1],
    "reverse over forward": lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (V,))[1]),
    "reverse over reverse": lambda f: jax.grad(lambda x: jax.grad(f)(x) @ V),
    "forward over forward": lambda f: lambda x: jax.jvp(jax.jacfwd(f), (x,), (V,))[1],
    "vmap of hessian": lambda f: lambda x: jax.vmap(jax.hessian(f))(batch(x))[0] @ V,
}


@functools.cache
def second(name):
    """Differences of gradients along V."""
    return differences(lambda x: compiled(name)(x)[1])


def second_order(hows, quick: list[str]):
    """(name, how): the rigid arm in the modes of ``quick``, the rest slow. The mechanism is the
    same in every formulation, and ``test_rules.py`` is its quick test."""
    pairs = [(name, how) for name in SMALLEST for how in hows]
    return pytest.mark.parametrize(
        "name, how",
        [
            pytest.param(*x, marks=[] if x[0] in RIGID and x[1] in quick else pytest.mark.slow)
            for x in pairs
        ],
    )


@second_order(SECOND_ORDER, ["hessian", "reverse over forward"])
def test_second_order_compiled(name, how):
    close(jax.jit(SECOND_ORDER[how](loss(name)))(X), second(name), 1e-6)


@second_order(["jvp of grad", "reverse over forward"], ["jvp of grad"])
def test_second_order_eager(name, how):
    close(SECOND_ORDER[how](loss(name))(X), second(name), 1e-6)


@pytest.mark.parametrize("name", each(light()))
def test_derivatives_of_a_healthy_run_have_no_nan(name):
    """Not even in what reverse mode stores, where a masked branch would show. The run itself is in
    the contract."""
    f = loss(name)
    with jax.debug_nans(True):
        close(jax.grad(f)(X), gradient(name))
        close(jax.jit(jax.grad(f))(X), gradient(name))
        close(jax.jvp(f, (X,), (V,))[1], gradient(name) @ V)


def test_modes_have_no_nan():
    """The arm has one mode. Entries beyond it are left out, or infinite in a traced call."""

    def first(x):
        model, drive = parts(FIRST, x)
        return fx.modes(model, drive=drive, n=2).frequencies

    with jax.debug_nans(True):
        eager, traced = first(X), jax.jit(first)(X)
        slope = jax.jit(jax.jacrev(first))(X)
    assert eager.shape == (1,) and float(traced[1]) == np.inf
    close(traced[0], eager[0])
    close(slope[0] @ V, differences(lambda x: first(x)[0]), 1e-6)
    assert not np.any(np.asarray(slope[1]))


@pytest.mark.parametrize("name", each(RIGID))
def test_scan_over_final_states(name):
    """Runs chained by ``traj.final`` inside a scan, as in a receding horizon."""

    def chained(x):
        def run(state, _):
            traj = simulated(name, x, state)
            return traj.final, traj.tip[-1, 1]

        return jax.lax.scan(run, simulated(name, x).final, None, length=2)[1]

    state, tips = simulated(name, X).final, []
    for _ in range(2):
        traj = simulated(name, X, state)
        state = traj.final
        tips.append(traj.tip[-1, 1])
    both = jax.jit(lambda x: (chained(x), jax.jacrev(chained)(x)))
    values, slope = both(X)
    close(chained(X), tips)
    close(values, tips)
    wanted = differences(lambda x: both(x)[0])
    close(jax.jvp(chained, (X,), (V,))[1], wanted, 1e-6)
    close(jax.jacrev(chained)(X) @ V, wanted, 1e-6)
    close(slope @ V, wanted, 1e-6)


def test_gradient_reaches_what_a_controller_closes_over():
    """No argument of simulate is traced here, and yet the run is differentiated."""
    model, _ = parts(FIRST, X)

    def end(gain):
        drive = fx.Drive(joints={"root": fx.Feedback(lambda t, q, qd, _: gain * (0.6 - q))})
        return fx.simulate(model, drive, TS, dt=5e-3, stations=2).q[-1, 0]

    close(jax.grad(end)(3.0), (end(3.001) - end(2.999)) / 2e-3, 1e-6)


def test_warnings_read_known_numbers_only(monkeypatch):
    """Without jit the status of a differentiated run is known, and its coordinates are not."""
    seen = []

    def warn(self, model, traj):
        return seen.append(np.asarray(traj.q)) or []

    monkeypatch.setattr(type(SMALLEST[FIRST]()), "run_warnings", warn)
    jax.jvp(loss(FIRST), (X,), (V,))
    assert not seen
    simulated(FIRST, X)
    assert len(seen) == 1


@pytest.mark.parametrize("what", ["frequency", "equilibrium"])
def test_modes_and_equilibria(what):
    def frequency(x):
        model, drive = parts(FIRST, x)
        return fx.modes(model, drive=drive, n=1).frequencies[0]

    def angle(x):
        return fx.equilibrium(*parts(FIRST, x)).mech.q[0]

    f = {"frequency": frequency, "equilibrium": angle}[what]
    wanted = differences(f)
    close(jax.grad(f)(X) @ V, wanted, 1e-6)
    close(jax.linearize(f, X)[1](V), wanted, 1e-6)
    close(jax.vmap(jax.grad(f))(batch(X))[0] @ V, wanted, 1e-6)
    slope = jax.jit(lambda x: jax.grad(f)(x) @ V)
    close(slope(X), wanted, 1e-6)
    # An eigenvector and the root of an equilibrium change with the parameters too.
    second = jax.jit(lambda x: (jax.grad(slope)(x), jax.hessian(f)(x) @ V))
    for curvature in second(X):
        close(curvature @ V, differences(slope), 1e-6)


@pytest.mark.parametrize("name", SMALLEST)
def test_methods_of_a_model_compile(name):
    """``jax.jit`` hashes what it compiles, and a bound method is hashed with its model."""
    model, drive = parts(name, X)
    start = fx.Start(joints={"root": 0.2}, rates={"root": 0.5})
    y = jax.jit(model.initial_state)(drive, 0.0, start)
    same = model.initial_state(drive, jnp.zeros(()), start)
    for a, b in zip(jax.tree_util.tree_leaves(y), jax.tree_util.tree_leaves(same), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)
    assert hash(model.initial_state) == hash(model.initial_state)
    assert model == model


def test_methods_of_terms_and_signals_compile():
    model, drive = parts(FIRST, X)
    y = model.initial_state(drive, jnp.zeros(()), fx.Start())
    term, signal = model.term(drive), fx.quintic(0.0, 1.0, 2.0)
    np.testing.assert_allclose(
        jax.jit(term.rate)(0.0, y, None).v, term.rate(0.0, y, None).v, rtol=1e-9
    )
    np.testing.assert_allclose(jax.jit(signal.evaluate)(0.5)[0], signal(0.5), rtol=1e-12)


def test_batch_size_is_that_of_the_vmaps_around():
    seen = []

    def f(x, y=1.0):
        seen.append(batch_size((x, y)))
        return x * y

    ones = jnp.ones
    f(1.0)
    jax.jit(f)(2.0)
    jax.vmap(f)(ones(5))
    jax.vmap(jax.grad(f))(ones(6))
    jax.grad(lambda x: jax.vmap(f)(x).sum())(ones(7))
    jax.jit(jax.vmap(jax.jacfwd(f)))(ones(8))
    jax.vmap(lambda x: jax.vmap(lambda y: f(x, y))(ones(3)))(ones(4))
    assert seen == [1, 1, 5, 6, 7, 8, 12]
