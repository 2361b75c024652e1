"""Write a robot file with comments: a serial arm, from a few questions or from options.

In a terminal the command asks for every value that no option gives.

Examples:

  flexjax new my-arm.toml --lengths 0.5 0.4 --payload 0.2
  flexjax new space-arm.toml --space --lengths 0.3 0.3 --section tube:0.03:0.002 --material steel
"""

import dataclasses
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

from tyro import conf

from flexjax.cli import _check, _common
from flexjax.robot.parts._choices import MATERIALS, SECTIONS
from flexjax.robot.parts._part import parts

SHAPES = {
    shape: [part.name for part in parts(cls) if part.required]
    for shape, cls in SECTIONS.items()
    if shape != "given"
}
Answer = TypeVar("Answer")


@dataclasses.dataclass
class Args:
    """Write a robot file with comments."""

    file: conf.Positional[Annotated[str, conf.arg(metavar="FILE")]]
    """path of the file to write (.toml)"""
    lengths: Annotated[tuple[float, ...], conf.arg(metavar="LENGTH")] = ()
    """length of each link from the ground to the tip [m]; by default 0.5 and 0.4"""
    section: Annotated[str, conf.arg(metavar="SHAPE:SIZES")] = ""
    """section of all links with its sizes [m]: rectangle:WIDTH:HEIGHT, circle:DIAMETER,
    tube:DIAMETER:WALL or i:HEIGHT:WIDTH:FLANGE:WEB; by default rectangle:0.03:0.005"""
    material: str = ""
    """material of all links, e.g. steel; by default aluminium"""
    payload: float | None = None
    """mass of a payload at the tip [kg]; by default none"""
    space: bool = False
    """the first joint rotates about the vertical axis; by default the arm moves in a plane"""
    ask: bool = sys.stdin is not None and sys.stdin.isatty()
    """ask for the values that no option gives"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    from flexjax._files import write_whole
    from flexjax.robot.files._file import file_faults

    path = Path(args.file)
    _check.check_paths((args.file,), (".toml",), "file")
    if path.exists():
        raise ValueError(f"file: {args.file!r}; expected a new file, but it exists.")
    shapes = "; ".join(":".join([shape, *sizes]) for shape, sizes in SHAPES.items())

    def value(given: str, question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        if given or not args.ask:
            return read(given or default)
        return _ask(question, default, read)

    given = " ".join(map(str, args.lengths))
    lengths = value(given, "lengths of the links [m]", "0.5 0.4", _lengths)
    section = value(args.section, f"section [m] ({shapes})", "rectangle:0.03:0.005", _section)
    material = value(args.material, f"material ({', '.join(MATERIALS)})", "aluminium", _material)
    given = "" if args.payload is None else str(args.payload)
    payload = value(given, "mass of a payload at the tip [kg], 0 for none", "0", _payload)
    space = value("yes" * args.space, "first joint about the vertical axis (yes, no)", "no", _yes)
    text = robot_text(path.stem, lengths, section, material, payload, space)
    file_faults(tomllib.loads(text)).raise_as(f"robot file {args.file!r}")
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
    lines = [f"wrote {path}", f"next: flexjax describe {path}"]
    return "\n".join(lines), {"file": str(path), "links": len(lengths)}, 0


def _ask(question: str, default: str, read: Callable[[str], Answer]) -> Answer:
    """Ask until the answer can be read; an empty answer is the default."""
    while True:
        sys.stderr.write(f"{question} [{default}]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise ValueError(f"{question}: no answer; give the value as an option, with --no-ask.")
        try:
            return read(line.strip() or default)
        except ValueError as error:
            _common.log(str(error))


def _lengths(text: str) -> tuple[float, ...]:
    try:
        lengths = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        lengths = ()
    if not lengths:
        raise ValueError(f"lengths: {text!r}; expected one positive number per link in m.")
    _check.check_numbers("lengths", lengths, "one positive number per link in m")
    return lengths


def _section(text: str) -> dict[str, str | float]:
    """The section of a text such as ``tube:0.03:0.002``."""
    shape, *words = text.split(":")
    if shape not in SHAPES:
        raise ValueError(f"section: {text!r}; expected a shape out of {', '.join(SHAPES)}.")
    names = SHAPES[shape]
    try:
        sizes = [float(word) for word in words]
    except ValueError:
        sizes = []
    if len(sizes) != len(names):
        expected = ":".join([shape, *(name.upper() for name in names)])
        raise ValueError(f"section: {text!r}; expected {expected}, with sizes in m.")
    _check.check_numbers("section", tuple(sizes), "positive sizes in m")
    return {"shape": shape, **dict(zip(names, sizes, strict=True))}


def _material(name: str) -> str:
    if name not in MATERIALS:
        raise ValueError(f"material: {name!r}; expected one of {', '.join(MATERIALS)}.")
    return name


def _payload(text: str) -> float:
    try:
        mass = float(text)
    except ValueError:
        mass = -1.0
    if not 0 <= mass < float("inf"):
        raise ValueError(f"payload: {text!r}; expected a mass of zero or more in kg.")
    return mass


def _yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise ValueError(f"{text!r}; expected yes or no.")
    return text.lower() in ("y", "yes")


def robot_text(
    name: str,
    lengths: tuple[float, ...],
    section: dict[str, str | float],
    material: str,
    payload: float,
    space: bool,
) -> str:
    """The text of a robot file of a serial arm, with comments."""
    from flexjax.robot.files._toml import toml_value

    n = len(lengths)
    lines = [
        "# A serial arm. Units are SI, angles are in rad; docs/files.md describes every field.",
        "# `flexjax check FILE` reports faults, `flexjax describe FILE` prints masses and natural",
        "# frequencies, `flexjax simulate FILE` runs it.",
        "schema = 1",
        f"name = {toml_value(name)}",
        "gravity = [0.0, -9.81, 0.0]  # world axes: y points up",
    ]
    for i, length in enumerate(lengths):
        lines += [
            "",
            "[[links]]",
            f'name = "link{i + 1}"',
            f"length = {length!r}  # along local x, from base to tip",
            f"section = {toml_value(section)}  # height along local y, width along local z",
            f"material = {toml_value(material)}  # or {{ E = , nu = , rho = }}",
            "damping = { strain_rate = 1e-4 }  # tau of sigma = E (eps + tau eps_dot), in s",
            "# rigid = true  # for a link that does not deform",
        ]
    for i in range(n):
        axis = [0.0, 1.0, 0.0] if space and i == 0 else [0.0, 0.0, 1.0]
        lines += [
            "",
            "[[joints]]",
            f'name = "joint{i + 1}"',
            'type = "revolute"',
            f'parent = "{f"link{i}" if i else "ground"}"',
            f'child = "link{i + 1}"',
            f"axis = {axis}  # in child axes",
            "home = 0.0  # angle at the start",
            "damping = 0.01  # N m s/rad",
            "# stiffness = 200.0  # N m/rad, of a flexible joint; without it the joint is rigid",
            "# motor = { rotor = 1e-6, gear = 50.0, limit = 10.0 }  # kg m2, -, N m",
        ]
    if payload > 0:
        lines += [
            "",
            "[[payloads]]",
            'name = "tool"',
            f'link = "link{n}"',
            f"mass = {payload!r}  # kg, at the tip",
            "# inertia = 1e-4  # kg m2, about its centre of mass",
        ]
    for i in range(1, n + 1):
        lines += [
            "",
            "[[sensors]]",
            f'name = "joint{i}-angle"',
            'kind = "encoder"',
            f'on = "joint{i}"',
        ]
    lines += [
        "",
        "[[sensors]]",
        'name = "tip-y"',
        'kind = "tip"',
        f'on = "link{n}"',
        "direction = [0.0, 1.0, 0.0]",
    ]
    return "\n".join(lines) + "\n"
