"""Rules for one link: exactly one description, sections, material, pieces, body."""

from typing import Any

import numpy as np

from flexjax.robot.parts._choices import MATERIALS
from flexjax.robot.parts._fault import Faults, number, numbers
from flexjax.robot.parts._fields import SMALLER
from flexjax.robot.parts._part import section_class

ONE_OF = "exactly one of section with material, constants, pieces, or (for a rigid link) body"


def check_link(faults: Faults, path: str, link: dict) -> None:
    given = [key for key in ("section", "constants", "pieces", "body") if key in link]
    if len(given) != 1:
        have = " and ".join(given) or ("material without section" if "material" in link else None)
        faults.add(
            path,
            have,
            ONE_OF,
            "Keep the one that describes the link and remove the others."
            if given
            else "Add one of them.",
        )
    _check_beam(faults, path, link)
    length = number(link.get("length"))
    if length == 0 and "body" not in link:
        faults.add(
            f"{path}.length",
            0.0,
            "a positive number",
            "Only a rigid link given by its body may have zero length.",
        )
    if "body" in link:
        _check_body(faults, path, link)
    pieces = link.get("pieces")
    if isinstance(pieces, list):
        _check_pieces(faults, path, link, pieces)


def _check_body(faults: Faults, path: str, link: dict) -> None:
    if link.get("rigid", False) is False:
        faults.add(
            f"{path}.rigid",
            False,
            "true for a link given by its body",
            "Set rigid = true, or give section and material.",
        )
    for key in ("section_end", "curvature", "damping", "material"):
        if key in link:
            faults.add(
                f"{path}.{key}",
                link[key],
                f"no {key} for a link given by its body",
                f"Remove {key}.",
            )
    _check_inertia(faults, f"{path}.body.inertia", link["body"])


def _check_pieces(faults: Faults, path: str, link: dict, pieces: list) -> None:
    for key in ("section_end", "material"):
        if key in link:
            faults.add(
                f"{path}.{key}",
                link[key],
                f"no {key} for a link made of pieces",
                f"Give {key} in the pieces.",
            )
    for i, piece in enumerate(pieces):
        if isinstance(piece, dict):
            _check_piece(faults, f"{path}.pieces.{i}", piece)
    fractions = [
        number(piece.get("fraction")) if isinstance(piece, dict) else None for piece in pieces
    ]
    known = [f for f in fractions if f is not None]
    if len(known) == len(pieces) and abs(sum(known) - 1) > 1e-6:
        faults.add(
            f"{path}.pieces",
            sum(known),
            "fractions that sum to 1",
            "Each piece has a fraction of the link's length.",
        )


def _check_piece(faults: Faults, path: str, piece: dict) -> None:
    given = [key for key in ("section", "constants") if key in piece]
    if len(given) != 1:
        faults.add(
            path,
            " and ".join(given) or None,
            "exactly one of section with material, or constants",
            "Describe every piece completely.",
        )
    _check_beam(faults, path, piece)


def _check_beam(faults: Faults, path: str, beam: dict) -> None:
    """Section, taper and material of a link or a piece."""
    if "section" in beam and "material" not in beam:
        names = ", ".join(MATERIALS)
        faults.add(
            f"{path}.material",
            None,
            "a material for the section",
            f"Give E, rho and nu or G, or one of the names {names}.",
        )
    if "section_end" in beam and "section" not in beam:
        faults.add(
            f"{path}.section_end",
            beam["section_end"],
            "a section to taper from",
            "Add section, or remove section_end.",
        )
    if "constants" in beam and "material" in beam:
        faults.add(
            f"{path}.material",
            beam["material"],
            "no material beside constants",
            "Constants include stiffness and mass. Remove material.",
        )
    for key in ("section", "section_end"):
        _check_section(faults, f"{path}.{key}", beam.get(key))
    if "section" in beam and "section_end" in beam:
        start, end = section_class(beam["section"]), section_class(beam["section_end"])
        if start is not None and end is not None and start != end:
            shape, other = (beam[key].get("shape", "given") for key in ("section", "section_end"))
            expected = f"the shape of section ({shape})"
            faults.add(f"{path}.section_end", other, expected, "A taper keeps its shape.")
    material = beam.get("material")
    if isinstance(material, str) and material not in MATERIALS:
        faults.add(
            f"{path}.material",
            material,
            f"one of {', '.join(MATERIALS)}",
            "Or give its constants: { E = , nu = , rho = }.",
        )
    if isinstance(material, dict) and "E" in material and ("nu" in material) == ("G" in material):
        have = "nu and G" if "nu" in material else None
        faults.add(
            f"{path}.material",
            have,
            "exactly one of nu and G",
            "Give Poisson's ratio nu or the shear modulus G.",
        )


def _check_section(faults: Faults, path: str, section: Any) -> None:
    if not isinstance(section, dict):
        return
    value = {key: number(v) for key, v in section.items()}
    cls = section_class(section)
    for small, large, share in SMALLER.get(cls or "", ()):
        a, b = value.get(small), value.get(large)
        if a is not None and b is not None and a > 0 and b > 0 and a >= share * b:
            text = f"less than {'half ' if share == 0.5 else ''}the {large} ({b:g} m)"
            faults.add(f"{path}.{small}", a, text, "All sizes are in metres.")


def _check_inertia(faults: Faults, path: str, body: Any) -> None:
    values = numbers(body.get("inertia")) if isinstance(body, dict) else None
    if values is None or len(values) != 6:
        return
    xx, yy, zz, xy, xz, yz = values
    lowest = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
    if lowest < -1e-6 * max(abs(v) for v in values):
        faults.add(
            path,
            values,
            "an inertia without negative principal values",
            "The order is xx, yy, zz, xy, xz, yz.",
        )
