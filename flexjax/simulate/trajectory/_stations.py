"""Stations: positions along a link, s = 0 to 1, at which a trajectory stores its sections."""

from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from flexjax._types import NumbersLike, is_traced

EXPECTED = (
    "expected a whole number of at least one, or increasing positions from 0 (base of a link) to 1"
    " (its tip) in one dimension, e.g. stations=11 or stations=[0, 0.5, 1]"
)
# Positions that miss an end by rounding (sums of 0.1, single precision) are that end.
ROUNDING = 1e-6


def read_stations(stations: int | NumbersLike, dtype: DTypeLike) -> tuple[jax.Array, bool]:
    """The checked stations, and whether both ends of a link are known to be among them.

    Traced stations are not checked, and none is known to be an end.
    """
    if isinstance(stations, int | np.integer) and not isinstance(stations, bool):
        if stations < 1:
            _refuse(stations)
        return jnp.asarray(np.linspace(0.0, 1.0, int(stations)), dtype), bool(stations > 1)
    if is_traced(stations):
        if stations.ndim != 1 or stations.shape[0] < 1:
            _refuse(f"shape {stations.shape}")
        return jnp.asarray(stations, dtype), False
    try:
        s = np.asarray(stations, float)
    except (TypeError, ValueError):
        _refuse(repr(stations))
    if s.ndim != 1 or s.shape[0] < 1:
        _refuse(s.tolist())
    for end in (0.0, 1.0):
        s = np.where(np.abs(s - end) <= ROUNDING, end, s)
    if not (np.all((s >= 0) & (s <= 1)) and np.all(np.diff(s) > 0)):
        _refuse(s.tolist())
    return jnp.asarray(s, dtype), bool(s[0] == 0 and s[-1] == 1)


def _refuse(value: object) -> NoReturn:
    raise ValueError(f"stations: {value}; {EXPECTED}.")
