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
            _elements(memoryview(content)[128:], order, 0, where, len(content))
        else:
            _version_4(content, where)
        return loadmat(path, simplify_cells=True)


def _elements(data: memoryview, order: str, depth: int, where: str, stored: int) -> int:
    """Check the elements in ``data``; how many bytes they take uncompressed."""
    if depth > DEPTH:
        raise FileError(f"{where}: nested deeper than {DEPTH}; expected {EXPECTED}. {REMEDY}")
    at, total = 0, 0
    while at + 8 <= len(data):
        kind, size, body, following = _tag(data, at, order, where)
        if kind == COMPRESSED:
            inner = _inflate(data[body : body + size], where, stored)
            total += len(inner) + _elements(inner, order, depth + 1, where, stored)
        elif kind == MATRIX:
            _matrix(data[body : body + size], order, depth, where, stored)
            total += size
        check_declared(where, total, stored)
        at = following
    return total


def _tag(data: memoryview, at: int, order: str, where: str) -> tuple[int, int, int, int]:
    """(type, bytes, where its body begins, where the next one begins) of the element at ``at``."""
    kind, size = struct.unpack_from(order + "II", data, at)
    if kind >> 16:  # small: type and size in one word, the body in the other
        return kind & 0xFFFF, kind >> 16, at + 4, at + 8
    body = at + 8
    if size > len(data) - body:
        raise FileError(
            f"{where}: an element declares {size} bytes where {len(data) - body} are left; "
            f"expected {EXPECTED}. {REMEDY}"
        )
    return kind, size, body, body + size + (-size % 8 if kind != COMPRESSED else 0)


def _matrix(data: memoryview, order: str, depth: int, where: str, stored: int) -> None:
    """Array flags, dimensions, name, then the content."""
    if not data:
        return  # an empty entry of a cell
    _, _, body, at = _tag(data, 0, order, where)
    (flags,) = struct.unpack_from(order + "I", data, body)
    if flags & 0xFF > 16:  # function handles and opaque objects: no dimensions follow
        return
    _, size, body, at = _tag(data, at, order, where)
    shape = struct.unpack_from(f"{order}{size // 4}i", data, body)
    if flags & 0xFF in (CELL, STRUCT, OBJECT) and math.prod(map(abs, shape)) > max(1, len(data)):
        raise FileError(
            f"{where}: an array of shape {shape} in {len(data)} bytes; "
            f"expected {EXPECTED}. {REMEDY}"
        )
    _elements(data[at:], order, depth + 1, where, stored)


def _inflate(data: memoryview, where: str, stored: int) -> memoryview:
    """Decompressed up to one byte more than what is allowed."""
    inner = zlib.decompressobj().decompress(data, max(FLOOR, RATIO * stored) + 1)
    check_declared(where, len(inner), stored)
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
