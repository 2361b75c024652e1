"""Find samples at which a channel is cut off at the end of its range."""

import numpy as np

LEAST = 4  # equal samples in a row


def saturated(values: np.ndarray) -> tuple[int, int] | None:
    """First and last row of the first stretch that is cut off, or None.

    It consists of equal samples at the largest or smallest value, which the channel reaches and
    leaves fast: by more than twelve of its smallest steps within four samples. A quantised signal
    that turns over four samples moves by at most eight of them, and one that settles by fewer.
    """
    values = np.asarray(values, float)
    steps = np.abs(np.diff(values))
    steps = steps[np.isfinite(steps) & (steps > 0)]
    if not len(steps):
        return None
    for end in (np.nanmax(values), np.nanmin(values)):
        at = np.concatenate([[False], values == end, [False]])
        edges = np.flatnonzero(np.diff(at.astype(int)))
        for first, after in zip(edges[::2], edges[1::2], strict=True):
            count = after - first
            if count < LEAST or first == 0 or after == len(values):
                continue
            ends = values[max(first - LEAST, 0)], values[min(after + LEAST, len(values)) - 1]
            if np.min(np.abs(np.array(ends) - end)) > 12 * steps.min():
                return int(first), int(after - 1)
    return None
