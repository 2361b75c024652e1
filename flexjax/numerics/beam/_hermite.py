"""Tables of piecewise cubics on n equal elements of [0, 1], clamped at 0.

Hermite cubics have value and slope at the nodes as coefficients (C1). The slope is with respect to
the element coordinate in [0, 1]. So the tables do not depend on the length of the link, and a
moving mesh on a link of variable length uses the same ones.
"""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Cubics:
    """Piecewise cubics.

    Arguments:
        powers: (n, 4, 4) coefficients of 1, x, x^2, x^3 (x in [0, 1] on the element) of the four
            functions of each element.
        index: (n, 4) indices of their unknowns; ``size``, one past the last, for clamped ones.
        size: number of unknowns.
    """

    powers: np.ndarray
    index: np.ndarray
    size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cubics) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @functools.cached_property
    def _content(self) -> tuple:
        return self.size, self.powers.shape, self.powers.tobytes(), self.index.tobytes()

    @property
    def elements(self) -> int:
        return self.powers.shape[0]


@functools.cache
def interpolation(table: Cubics) -> np.ndarray:
    """Coefficients (size, 2, n) from values and slopes (per element) at all nodes but the first.

    B-splines use the values and the last slope only.
    """
    n = table.elements
    rows = np.zeros((2, n, table.size + 1))
    ends = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
    for e in range(n):
        rows[:, e, table.index[e]] += ends @ table.powers[e]
    rows = rows[..., :-1].reshape(2 * n, table.size)
    used = np.arange(2 * n) if table.size == 2 * n else np.append(np.arange(n), 2 * n - 1)
    out = np.zeros((table.size, 2 * n))
    out[:, used] = np.linalg.inv(rows[used])
    return out.reshape(table.size, 2, n)


def clamped(powers: np.ndarray, index: np.ndarray, size: int) -> Cubics:
    """Remove the first two functions, the only ones with nonzero value or slope at 0."""
    return Cubics(powers, np.where(index < 2, size - 2, index - 2), size - 2)


@functools.cache
def hermite_cubics(elements: int) -> Cubics:
    """2 n functions: value and slope at every node except the first.

    >>> hermite_cubics(3).size
    6
    """
    one = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]], float)
    index = 2 * np.arange(elements)[:, None] + np.arange(4)[None, :]
    return clamped(np.broadcast_to(one, (elements, 4, 4)), index, 2 * elements + 2)
