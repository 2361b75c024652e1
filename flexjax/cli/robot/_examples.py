"""List the example robots, or copy one to a file.

Examples:

  flexjax examples
  flexjax examples --copy two-link arm.toml
"""

import dataclasses
import difflib
from pathlib import Path
from typing import Annotated

from tyro import conf

from flexjax.cli import _check


@dataclasses.dataclass
class Args:
    """List the example robots, or copy one."""

    copy: Annotated[tuple[str, ...], conf.arg(metavar="NAME FILE")] = ()
    """name of an example, and path of the file to write"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    from flexjax._files import write_whole
    from flexjax.robot._examples import example_path, examples

    if not args.copy:
        return str(examples()), dict(examples()), 0
    if len(args.copy) != 2:
        raise ValueError(
            f"copy: {' '.join(args.copy)!r}; expected the name of an example and the path of the "
            "file to write, e.g. --copy two-link arm.toml."
        )
    name, target = args.copy
    source = example_path(name)
    if source is None:
        near = difflib.get_close_matches(name, examples(), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"example: {name!r}; expected one of {', '.join(examples())}.{hint}")
    path = Path(target)
    _check.check_paths((target,), (".toml",), "file")
    if path.exists():
        raise ValueError(f"file: {target!r}; expected a new file, but it exists. Choose another.")
    content = source.read_bytes()
    write_whole(path, lambda part: part.write_bytes(content))
    return f"wrote {target}", {"file": target}, 0
