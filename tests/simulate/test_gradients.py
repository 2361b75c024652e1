"""check_gradients: what its differences are worth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexjax as fx
from flexjax.simulate.analysis._gradients import extrapolate


@pytest.mark.parametrize("noise", [0.0, 1e-13, 1e-11, 1e-9])
def test_differences_choose_their_step_by_the_noise(noise, record_number):
    """A smooth function with round-off of a known size in it: the error falls with the noise, and
    the estimate covers it.
    """
    rng = np.random.default_rng(0)

    def f(x):
        return np.exp(x) * np.sin(3 * x) + noise * rng.uniform(-1, 1)

    def slope(h):
        return (f(0.7 + h) - f(0.7 - h)) / (2 * h)

    exact = np.exp(0.7) * (np.sin(2.1) + 3 * np.cos(2.1))
    found = [extrapolate([slope(1e-3 * 3**k) for k in range(5)]) for _ in range(20)]
    errors, uncertainties = (
        np.array(x) for x in ([abs(x - exact) for x, _ in found], [d for _, d in found])
    )
    record_number(f"differences, noise {noise:g}", np.max(errors) / abs(exact), 1e-10 + 1e3 * noise)
    assert np.mean(errors <= 3 * uncertainties + 1e-12) > 0.9


def test_a_wrong_derivative_is_found():
    @jax.custom_jvp
    def f(x):
        return jnp.sum(x**3)

    f.defjvp(lambda p, t: (f(*p), jnp.sum(3.003 * p[0] ** 2 * t[0])))
    table = fx.check_gradients(f, (jnp.array([1.0, 2.0]),))
    assert 0.9e-3 < table.worst < 1.1e-3 and "+-" in str(table)
    assert fx.check_gradients(lambda x: jnp.sum(x**3), (jnp.array([1.0, 2.0]),)).worst < 1e-9


def test_bad_arguments_are_told():
    with pytest.raises(ValueError, match="levels: 2"):
        fx.check_gradients(jnp.sum, (jnp.ones(2),), levels=2)
    with pytest.raises(ValueError, match="expected a scalar"):
        fx.check_gradients(lambda x: x, (jnp.ones(2),))
    with pytest.raises(ValueError, match="expected a tuple"):
        fx.check_gradients(jnp.sum, jnp.ones(2))


def test_differences_at_an_end_of_the_range():
    """A parameter at its bound, or nearer to it than the largest step, is still compared."""

    def inside(s):
        return jnp.sum(jnp.where(s <= 1.0, s**3, jnp.nan))

    table = fx.check_gradients(inside, (jnp.array([1.0, 0.995, 0.5]),))
    np.testing.assert_allclose(table.finite, [3.0, 3 * 0.995**2, 0.75], rtol=1e-6)
    assert table.worst < 1e-6


def test_arguments_without_floats_give_an_empty_table():
    table = fx.check_gradients(lambda n: jnp.asarray(float(n)), (3,))
    assert table.names == () and table.worst == 0.0 and "worst" in str(table)
