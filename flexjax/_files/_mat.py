"""Variables of a MATLAB file (version 4 or 5), with bounded memory.

The reader of scipy reserves memory for what headers declare. So the tags of the file are walked
first: every element has to lie within the one around it.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

from flexjax._files._error import FileError, reading
from flexjax._files._limit import FLOOR, RATIO, check_declared

EXPECTED = "a MATLAB file of version 4 to 7"
REMEDY = "The file is damaged or of another kind; save it again in MATLAB with '-v7'."
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, OBJECT = 1, 2, 3  # classes of arrays whose entries are arrays
DEPTH = 20
SIZES_4 = (8, 4, 4, 2, 2, 1)  # bytes of an entry by the P digit of a version 4 header


def read_mat(path: Path, where: str) -> dict[str, Any]:
    """Variables by name: arrays, texts, and structs as dicts. Objects of MATLAB are never run."""
    from scipy.io import loadmat

    with reading(where, EXPECTED, REMEDY):
        content = path.read_bytes()
        if content[124:128] and b"\0" not in content[:4]:
            if content.startswith(b"MATLAB 7.3"):
                raise FileError(
                    f"{where}: is a MATLAB 7.3 file; expected version 4 to 7. "
                    "Save it with '-v7', or as CSV or netCDF."
                )
            order = {b"IM": "<", b"MI": ">"}[content[126:128]]
            _Walk(order, where, len(content)).elements(memoryview(content)[128:], 0)
        else:
            _version_4(content, where)
        return loadmat(path, simplify_cells=True)


class _Walk:
    """Checks elements; ``total`` counts the bytes of all that were decompressed."""

    def __init__(self, order: str, where: str, stored: int):
        self.order, self.where, self.stored = order, where, stored
        self.total = 0

    def elements(self, data: memoryview, depth: int) -> None:
        if depth > DEPTH:
            raise FileError(
                f"{self.where}: nested deeper than {DEPTH}; expected {EXPECTED}. {REMEDY}"
            )
        at = 0
        while at + 8 <= len(data):
            kind, size, body, following = self._tag(data, at)
            if kind == COMPRESSED:
                self.elements(self._inflate(data[body : body + size]), depth + 1)
            elif kind == MATRIX:
                self._matrix(data[body : body + size], depth)
            at = following

    def _tag(self, data: memoryview, at: int) -> tuple[int, int, int, int]:
        """(type, bytes, where its body begins, where the next one begins)."""
        kind, size = struct.unpack_from(self.order + "II", data, at)
        if kind >> 16:  # small: type and size in one word, the body in the other
            return kind & 0xFFFF, kind >> 16, at + 4, at + 8
        body = at + 8
        if size > len(data) - body:
            raise FileError(
                f"{self.where}: an element declares {size} bytes where {len(data) - body} are "
                f"left; expected {EXPECTED}. {REMEDY}"
            )
        return kind, size, body, body + size + (-size % 8 if kind != COMPRESSED else 0)

    def _matrix(self, data: memoryview, depth: int) -> None:
        """Array flags, dimensions, name, then the content."""
        if not data:
            return  # an empty entry of a cell
        _, _, body, at = self._tag(data, 0)
        (flags,) = struct.unpack_from(self.order + "I", data, body)
        if flags & 0xFF > 16:  # function handles and opaque objects: no dimensions follow
            return
        _, size, body, at = self._tag(data, at)
        shape = struct.unpack_from(f"{self.order}{size // 4}i", data, body)
        if flags & 0xFF in (CELL, STRUCT, OBJECT):
            # Every entry is an element of eight bytes or more, for every field of a struct.
            fields = 1 if flags & 0xFF == CELL else self._fields(data, at, flags & 0xFF)
            if math.prod(map(abs, shape)) * fields > max(1, len(data)):
                raise FileError(
                    f"{self.where}: an array of shape {shape} with {fields} fields in {len(data)} "
                    f"bytes; expected {EXPECTED}. {REMEDY}"
                )
        self.elements(data[at:], depth + 1)

    def _fields(self, data: memoryview, at: int, kind: int) -> int:
        """Number of fields: behind the name (and the class of an object), width and names."""
        for _ in range(1 if kind == STRUCT else 2):
            at = self._tag(data, at)[3]
        _, size, body, at = self._tag(data, at)
        (width,) = struct.unpack_from(self.order + "i", data, body)
        return self._tag(data, at)[1] // max(width, 1)

    def _inflate(self, data: memoryview) -> memoryview:
        """Decompressed up to one byte more than what is allowed."""
        limit = max(FLOOR, RATIO * self.stored)
        inner = zlib.decompressobj().decompress(data, limit - self.total + 1)
        self.total += len(inner)
        check_declared(self.where, self.total, self.stored)
        return memoryview(inner)


def _version_4(content: bytes, where: str) -> None:
    at, (first,) = 0, struct.unpack_from("<i", content)
    order = "<" if 0 <= first <= 5000 else ">"
    while at < len(content):
        kind, rows, columns, complex_, name = struct.unpack_from(order + "5i", content, at)
        size = SIZES_4[kind // 10 % 10] * rows * columns * (2 if complex_ else 1)
        at += 20 + name + size
        if min(rows, columns, name) < 0 or at > len(content):
            raise FileError(
                f"{where}: an array of {rows} by {columns} does not fit into {len(content)} bytes; "
                f"expected {EXPECTED}. {REMEDY}"
            )
