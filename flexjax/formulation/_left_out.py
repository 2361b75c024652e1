"""What a run lacked because its formulation leaves it out, with its size.

From coordinates and parameters, on the host: no program is compiled for it.
"""

from typing import Any

import jax.tree_util as jtu
import numpy as np

from flexjax.formulation._base import AbstractFormulation
from flexjax.robot import Link, Piece, Robot

# Of a link's length, or of its compliance, from which a run says what it lacks.
MATTERS = 0.01


def coordinates(traj: Any) -> np.ndarray:
    """Coordinates (T, nq) of a finished run, NaN after a failure."""
    return np.asarray(traj.beside("coordinates"), float)


def large_bending(formulation: AbstractFormulation, bends: dict[str, float]) -> list[str]:
    """Links that bend beyond the order of a formulation's energies.

    Arguments:
        formulation: the formulation. The factor of its ``bend_power`` is about one, for forces and
            moments at the end and for weight (docs/validation.md).
        bends: largest deflection of a link's tip over its length, by the link's name.
    """
    name, power = type(formulation).__name__, formulation.bend_power
    if power is None:
        return []
    return [
        f"links.{link} bends by {bend:.0%} of its length. {name} leaves out products of slopes "
        f"that move its tip by about {bend**power:.1g} of the length; use PortHamiltonian or "
        "TransferMatrix."
        for link, bend in bends.items()
        if bend**power > MATTERS
    ]


def lacks_shear(formulation: AbstractFormulation, robot: Robot) -> list[str]:
    """Links whose shear matters, in a formulation without."""
    name, found = type(formulation).__name__, []
    for link in robot.links:
        share = shear_share(link) if link.elastic else 0.0
        if share > MATTERS:
            found.append(
                f"links.{link.name} is short and thick: shear, which {name} leaves out, would add "
                f"{share:.1%} to its deflection under a force at the tip; use PortHamiltonian."
            )
    return found


def shear_share(link: Link) -> float:
    """Deflection of a clamped link by shear over that by bending, for a force at its tip."""
    link = jtu.tree_map(np.asarray, link)
    length = float(link.length)
    return max(_shear_number(piece, length) for piece in link.pieces or (link,)) / length**2


def _shear_number(piece: Piece | Link, length: float) -> float:
    """3 EI/GA, in the direction where it is larger; constants without shear have none."""
    c, section, material = piece.constants, piece.section, piece.material
    if c is not None:
        pairs = [(c.EIz, c.GAy), (c.EIy, c.GAz)]
        return max(float(3 * EI / GA) if GA is not None else 0.0 for EI, GA in pairs)
    assert section is not None and material is not None  # the robot's checks refuse others
    stiff = float(material.E / material.shear_modulus)
    sizes = section.half_sizes()
    if sizes is not None:
        # An upper bound without jax, which most links stay below: I/A is less than the square of
        # half the size, and no shear factor is less than 0.4.
        bound = 3 * stiff * max(map(float, sizes)) ** 2 / 0.4
        if bound < MATTERS * length**2:
            return bound
    p = section.properties()
    return 3 * stiff * max(float(p.Iz / (p.ky * p.A)), float(p.Iy / (p.kz * p.A)))
