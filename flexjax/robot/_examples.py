"""The example robots of the package: robot files whose first comment line is their summary."""

import os
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("examples")


class Examples(dict):
    """Summary of each example robot by name; prints as a list."""

    def __str__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:<{width}}  {about}" for name, about in self.items())


@cache
def _read() -> tuple[tuple[str, str], ...]:
    files = sorted(FOLDER.glob("*.toml"), key=lambda file: file.stem)
    return tuple(
        (file.stem, file.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# "))
        for file in files
    )


def examples() -> Examples:
    """List the example robots; ``load_robot(name)`` loads one of them.

    Returns:
        A dict from name to a one-line summary, which prints as a list.

    >>> import flexjax as fx
    >>> "two-link" in fx.examples()
    True
    """
    return Examples(_read())


def example_path(name: str | os.PathLike[str]) -> Path | None:
    """The file of the example ``name``; ``None`` if there is no such example."""
    return FOLDER / f"{name}.toml" if isinstance(name, str) and name in examples() else None
