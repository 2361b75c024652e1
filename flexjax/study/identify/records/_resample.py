"""A recorded channel on another time grid, without invented readings."""

import numpy as np

ROUND = 1e-6  # of a step: times that differ by less are the same
ADJACENT = 1.5  # of the channel's own spacing: samples further apart have a gap between them


def resampled(
    ts: np.ndarray, values: np.ndarray, grid: np.ndarray, step: float, *, filled: bool
) -> np.ndarray:
    """``values`` at ``ts`` (NaN: no sample) on an even ``grid``.

    ``filled``: interpolate between samples.
    """
    good = np.isfinite(values)
    times, values = ts[good], values[good]
    if filled or len(times) < 2:
        spacing = float(np.median(np.diff(ts)))
    else:
        spacing = float(np.median(np.diff(times)))
    if step > ADJACENT * spacing:
        new = _averaged(times, values, grid, step)
    else:
        new = _looked_up(times, values, grid, step, spacing)
    return np.where(np.isnan(new), np.interp(grid, times, values), new) if filled else new


def _slopes(times: np.ndarray, values: np.ndarray, longest: float) -> np.ndarray:
    """Slope at each sample, from neighbours on this side of any gap."""
    slopes = np.zeros(len(times))
    for run in np.split(np.arange(len(times)), np.flatnonzero(np.diff(times) > longest) + 1):
        if len(run) > 1:
            slopes[run] = np.gradient(values[run], times[run])
    return slopes


def _averaged(times: np.ndarray, values: np.ndarray, grid: np.ndarray, step: float) -> np.ndarray:
    """Mean over one step around each grid time; a step with no sample in it is a gap."""
    index = np.floor((times - grid[0]) / step + 0.5 + ROUND).astype(int)
    inside = (index >= 0) & (index < len(grid))
    index, times, values = index[inside], times[inside], values[inside]
    count = np.bincount(index, minlength=len(grid))
    known = count > 0
    total = np.bincount(index, weights=values, minlength=len(grid))[known]
    centre = np.bincount(index, weights=times, minlength=len(grid))[known]
    mean, at = total / count[known], centre / count[known]
    # The samples of a step may lie to one side of its middle: move the mean along the slope.
    slopes = _slopes(at, mean, 2 * ADJACENT * step)
    new = np.full(len(grid), np.nan)
    new[known] = mean + slopes * (grid[known] - at)
    return new


def _looked_up(
    times: np.ndarray, values: np.ndarray, grid: np.ndarray, step: float, spacing: float
) -> np.ndarray:
    """The reading of the nearest sample, moved along the slope there, or between two neighbours."""
    if not len(times):
        return np.full(len(grid), np.nan)
    right = np.clip(np.searchsorted(times, grid), 0, len(times) - 1)
    left = np.clip(np.searchsorted(times, grid, side="right") - 1, 0, len(times) - 1)
    before, after = np.abs(grid - times[left]), np.abs(times[right] - grid)
    nearest = np.where(before <= after, left, right)
    near = np.minimum(before, after) <= (0.5 + ROUND) * step
    whole = times[right] - times[left] <= ADJACENT * spacing
    inside = (grid >= times[0]) & (grid <= times[-1])
    between = inside & whole & (np.maximum(before, after) <= (1 + ROUND) * step)
    moved = values[nearest] + _slopes(times, values, ADJACENT * spacing)[nearest] * (
        grid - times[nearest]
    )
    value = np.where(inside & whole, np.interp(grid, times, values), moved)
    return np.where(near | between, value, np.nan)
