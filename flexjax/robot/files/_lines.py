"""Line numbers of the tables and keys of a TOML text, which `tomllib` does not report.

The text has been read by `tomllib`, so it is valid TOML. The scan only needs to tell strings,
comments, arrays and tables apart.
"""

import re

from flexjax.robot.parts._fault import items

Path = tuple[str | int, ...]
SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:[^"\\\n]|\\.)*"|' r"'[^'\n]*'", re.S
)
PLAIN = re.compile(r"[^,\]}#\n]*")


def lines_of(text: str) -> dict[Path, int]:
    """The line of every table, key and list item of a valid TOML text, by its path."""
    return _Scan(text).lines


def labelled_lines(text: str, document: dict) -> dict[str, int]:
    """Lines by the path that faults are reported under, e.g. ``links.upper.length``."""
    labels: dict[Path, str] = {
        (key, i): label
        for key, rows in document.items()
        if isinstance(rows, list)
        for i, row in enumerate(rows)
        for label, item in items(document, key)
        if item is row
    }
    found: dict[str, int] = {}
    for path, line in lines_of(text).items():
        start = labels.get(path[:2], ".".join(map(str, path[:2])))
        found.setdefault(".".join([start, *map(str, path[2:])]), line)
    return found


def line_of(path: str, lines: dict[str, int]) -> int:
    """The line of a path, or of the innermost table around it; 1 for the file itself."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines.get(path, 1)


class _Scan:
    """One pass over a text; ``at`` is the current position."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        self.counts: dict[Path, int] = {}  # items of each array of tables so far
        table: Path = ()
        self._skip(SPACE)
        while self.at < len(text):
            if text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(SPACE)

    def _skip(self, pattern: re.Pattern) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError(f"line {self._line()}: expected TOML that tomllib reads.")
        self.at = found.end()
        return found.group()

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def _record(self, path: Path) -> None:
        self.lines.setdefault(path, self._line())

    def _keys(self) -> list[str]:
        """A key, or several joined with dots."""
        keys: list[str] = []
        while True:
            found = KEY.match(self.text, self.at)
            if found is None:
                raise ValueError(f"line {self._line()}: expected a key of TOML.")
            keys.append(next(group for group in found.groups() if group is not None))
            self.at = found.end()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _header(self) -> Path:
        """``[table]`` or ``[[list of tables]]``."""
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        line_start = self.at
        self.at += brackets
        path: Path = ()
        keys = self._keys()
        for i, key in enumerate(keys):
            path = (*path, key)
            if brackets == 2 and i == len(keys) - 1:
                self.lines.setdefault(path, self.text.count("\n", 0, line_start) + 1)
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
            self._record(path)
        self.at += brackets
        return path

    def _pair(self, table: Path) -> None:
        """``key = value``."""
        self._skip(SPACE)
        path = table
        for key in self._keys():
            path = (*path, key)
            self._record(path)
        self.at += 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip(SPACE)
        first = self.text[self.at]
        if first in "\"'":
            self._skip(STRING)
        elif first in "[{":
            self._group(path, "]" if first == "[" else "}")
        else:
            self._skip(PLAIN)

    def _group(self, path: Path, end: str) -> None:
        """An array or an inline table."""
        self.at += 1
        index = 0
        self._skip(SPACE)
        while self.text[self.at] != end:
            if end == "]":
                self._record((*path, index))
                self._value((*path, index))
            else:
                self._pair(path)
            index += 1
            self._skip(SPACE)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(SPACE)
        self.at += 1


def line_in_message(error: Exception) -> int:
    """The line in a message of `tomllib`; 1 if it has none."""
    found = re.search(r"at line (\d+)", str(error))
    return int(found.group(1)) if found else 1
