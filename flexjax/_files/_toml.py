"""Read TOML with bounded memory and time."""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from flexjax._files._error import FileError

LARGEST = 2**24  # bytes of a text file; the largest robots take some hundred thousand
DEEPEST = 64  # tables within tables; a robot file has four
# Texts and comments are skipped; what remains are the dots of keys, and what ends a key.
TOKENS = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*'
    r"|(?P<dot>\.)|(?P<end>[=,{}\[\]\n])",
    re.DOTALL,
)


def read_bounded(path: str | os.PathLike[str], where: str) -> bytes:
    """The content of a regular file of at most 16 MB; OSError where there is none.

    A device or a pipe is not opened: reading it might never end.
    """
    path = Path(path)
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{where}: is a device or a pipe; expected a text file. Copy it to one.")
    with open(path, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise FileError(
            f"{where}: is {found.st_size / 1e6:.3g} MB long; expected at most "
            f"{LARGEST / 1e6:.3g} MB of text. It is damaged, or another file."
        )
    return content


def parse_toml(text: str) -> dict[str, Any]:
    """The document of a TOML text; ValueError says what is wrong with it."""
    too_deep = f"nested too deeply; expected at most {DEEPEST} levels of tables and lists"
    # The parser takes memory as the square of the parts of a dotted key.
    if _longest_key(text) > DEEPEST:
        raise ValueError(too_deep)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if _deeper(document, DEEPEST):
        raise ValueError(too_deep)
    return document


def read_toml(path: str | os.PathLike[str], kind: str) -> dict:
    """The document of a file; ``kind`` names it in an error, e.g. ``"drive file"``."""
    where = f"{kind} {str(path)!r}"
    try:
        return parse_toml(read_bounded(path, where).decode("utf-8"))
    except OSError as error:
        raise ValueError(f"{where}: cannot be read ({error.strerror}).") from None
    except FileError:
        raise
    except ValueError as error:  # also an integer with thousands of digits
        raise ValueError(f"{where}: is not valid TOML: {error}") from None


def _longest_key(text: str) -> int:
    longest = parts = 0
    for token in TOKENS.finditer(text):
        if token["dot"]:
            parts += 1
            longest = max(longest, parts)
        elif token["end"]:
            parts = 0
    return longest


def _deeper(document: Any, limit: int) -> bool:
    """Whether tables and lists are nested deeper than ``limit``."""
    level = [document]
    for _ in range(limit + 1):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
