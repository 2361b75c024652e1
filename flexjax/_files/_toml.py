"""Read a TOML file."""

import os
import tomllib
from pathlib import Path


def read_toml(path: str | os.PathLike, kind: str) -> dict:
    """The document of a file; ``kind`` names it in an error, e.g. ``"drive file"``."""
    where = f"{kind} {str(path)!r}"
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except OSError as error:
        raise ValueError(f"{where}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: is not valid TOML: {error}") from None
