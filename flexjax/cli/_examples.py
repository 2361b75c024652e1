"""The robots that ship with flexjax. Examples:

flexjax examples
flexjax examples --copy two-link arm.toml
"""

import dataclasses
from pathlib import Path


@dataclasses.dataclass
class Args:
    """List the example robots, or copy one."""

    copy: tuple[str, str] | None = None
    """name of an example, and the file to write it to"""
    json: bool = False
    """print the result as JSON"""


def run(args: Args):
    from flexjax.robot._examples import example_path, examples

    if args.copy is None:
        return str(examples()), dict(examples()), 0
    name, target = args.copy
    if name not in examples():
        raise ValueError(f"example: {name!r}; expected one of {', '.join(examples())}.")
    path = Path(target)
    if path.exists():
        raise ValueError(f"file: {target!r} exists; choose another name.")
    path.write_bytes(example_path(name).read_bytes())
    return f"wrote {target}", {"file": target}, 0
