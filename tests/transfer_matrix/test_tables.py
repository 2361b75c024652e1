"""Static tables: built once for a structure and a drive, not in every trace."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import flexjax as fx
from flexjax.formulation.transfer_matrix import _layout
from tests.transfer_matrix.test_spatial import flat_arm, flat_drive


@pytest.mark.parametrize("planar", [True, False])
def test_tables_are_built_once(planar, monkeypatch):
    built = []
    make = _layout.JointAxes.__init__

    def counted(self, *args):
        built.append(type(self).__name__)
        make(self, *args)

    monkeypatch.setattr(_layout.JointAxes, "__init__", counted)
    _layout._tables.cache_clear()
    model = fx.TransferMatrix(segments=2).bind(flat_arm(planar))
    ts = jnp.linspace(0.0, 0.01, 3)

    def tip(model, drive):
        return fx.simulate(model, drive, ts, stations=2, throw=False).tip

    dynamic, static = eqx.partition((model, flat_drive()), eqx.is_array)
    traced = jax.make_jaxpr(lambda x: tip(*eqx.combine(x, static)))
    traced(dynamic)
    traced(dynamic)
    assert built == ["ConnectionMasks" if planar else "JointAxes"]
