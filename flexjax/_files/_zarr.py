"""Checks of a zarr store before anything in it is read."""

import itertools
import json
import math
import os
import struct
from pathlib import Path

import numpy as np

from flexjax._files._error import FileError, reading
from flexjax._files._limit import FLOOR, RATIO, check_declared

EXPECTED = "a zarr store written by fx.save_trajectory"
REMEDY = "The store is damaged or of another kind; save it again."
DEEPEST = 20  # folders within folders
COMPRESSORS = {"blosc", "zstd"}
CODECS = {"vlen-utf8", "bytes", "crc32c", "transpose", *COMPRESSORS}  # no pickle among them
COMPLETE = "all_chunks_stored"  # attribute of stores in which a missing chunk is a fault


def check_zarr(path: Path, where: str, *, filling: bool = False) -> None:
    """Refuse a store that refers to other files, runs code, lacks chunks or declares too much.

    ``filling``: chunks are still being written and are read one by one, so arrays may be far larger
    than what is stored."""
    with reading(where, EXPECTED, REMEDY):
        files = list(_files(path, where))
        stored = sum(file.stat().st_size for file in files)
        declared, under = 0, _chunks(path, files)
        complete = _attributes(path).get(COMPLETE, False)
        for file in files:
            if file.name in METADATA:
                json.loads(file.read_bytes())
            if file.name not in (".zarray", "zarr.json"):
                continue
            array = _Array(file, where)
            if array.shape is None:
                continue  # a group
            declared += math.prod(array.shape) * array.itemsize
            if not filling:
                check_declared(where, declared, stored)
            check_declared(f"{where}: a chunk of {array.name!r}", array.size, stored)
            chunks = under.get(file.parent, [])
            if len(chunks) < array.count and complete:
                raise FileError(
                    f"{where}: {file.parent.name!r} has {len(chunks)} of {array.count} chunks; "
                    f"expected all of them. {REMEDY}"
                )
            for chunk in chunks:
                array.check(chunk, stored)


METADATA = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")


def _files(path: Path, where: str):
    for root, folders, names in os.walk(path):
        for name in (*folders, *names):
            entry = Path(root) / name
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                raise FileError(
                    f"{where}: {str(entry.relative_to(path))!r} is a link or a device; expected "
                    "all values in the store itself. Copy them into it (cp -rL does)."
                )
        yield from (Path(root) / name for name in names)


def _chunks(path: Path, files: list[Path]) -> dict[Path, list[Path]]:
    """The files below every folder of the store that are no metadata."""
    under: dict[Path, list[Path]] = {}
    for file in files:
        if file.name in METADATA:
            continue
        folders = file.relative_to(path).parents
        if len(folders) > DEEPEST:
            raise FileError(
                f"{path.name!r}: folders within {len(folders)} folders; expected {EXPECTED}. "
                + REMEDY
            )
        for folder in folders:
            under.setdefault(path / folder, []).append(file)
    return under


def _attributes(path: Path) -> dict:
    for name, key in ((".zattrs", None), ("zarr.json", "attributes")):
        if (path / name).is_file():
            found = json.loads((path / name).read_bytes())
            return found if key is None else found.get(key, {})
    return {}


class _Array:
    """What the metadata of an array (or group) declare."""

    def __init__(self, file: Path, where: str):
        meta = json.loads(file.read_bytes())
        self.where, self.name = where, file.parent.name
        if file.name == ".zarray":
            self.shape, chunks, dtype = meta["shape"], meta["chunks"], meta["dtype"]
            codecs = [c["id"] for c in [*(meta.get("filters") or []), meta.get("compressor")] if c]
        elif meta.get("node_type") == "array":
            self.shape, dtype = meta["shape"], meta["data_type"]
            chunks = meta["chunk_grid"]["configuration"]["chunk_shape"]
            codecs = [c["name"] for c in meta["codecs"]]
        else:
            self.shape = None
            return
        odd = [c for c in codecs if c not in CODECS]
        if odd:
            raise FileError(
                f"{where}: {self.name!r} is stored with the codec {odd[0]!r}; expected one of "
                f"{', '.join(sorted(CODECS))}. Save it again with fx.save_trajectory."
            )
        self.compressor = next((c for c in codecs if c in COMPRESSORS), None)
        self.text = dtype in ("|O", "string")
        self.itemsize = 8 if self.text else np.dtype(dtype).itemsize
        self.size = math.prod(chunks) * self.itemsize
        if min((*self.shape, *chunks), default=0) < 0 or len(chunks) != len(self.shape):
            raise FileError(
                f"{where}: {self.name!r} has shape {self.shape} in chunks of {chunks}; "
                f"expected {EXPECTED}. {REMEDY}"
            )
        self.count = math.prod(
            -(-n // max(c, 1)) for n, c in itertools.zip_longest(self.shape, chunks, fillvalue=1)
        )

    def check(self, chunk: Path, stored: int) -> None:
        """Whether a chunk decompresses to its declared size at most."""
        content = chunk.read_bytes()
        size = _decompressed(content, self.compressor)
        most = max(FLOOR, RATIO * stored) if self.text else self.size + 4  # crc32c adds four bytes
        if size is None or size > most:
            raise FileError(
                f"{self.where}: a chunk of {self.name!r} declares {size} bytes; "
                f"expected at most {most}. {REMEDY}"
            )
        if self.text:
            import numcodecs
            from numcodecs.compat import ensure_bytes

            if self.compressor is not None:
                codec = numcodecs.get_codec({"id": self.compressor})
                content = ensure_bytes(codec.decode(content))
            (entries,) = struct.unpack_from("<I", content)
            if 4 * entries > len(content):
                raise FileError(
                    f"{self.where}: a chunk of {self.name!r} declares {entries} texts in "
                    f"{len(content)} bytes; expected four bytes for each or more. {REMEDY}"
                )


def _decompressed(content: bytes, compressor: str | None) -> int | None:
    """Decompressed size of a chunk, from its header; None if that does not contain it."""
    if compressor is None:
        return len(content)
    if compressor == "blosc":
        return struct.unpack_from("<I", content, 4)[0]
    magic, flags = struct.unpack_from("<IB", content)
    if magic != 0xFD2FB528:
        return None
    single = flags >> 5 & 1
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[flags & 3]
    form, more = (("<B" if single else None, 0), ("<H", 256), ("<I", 0), ("<Q", 0))[flags >> 6]
    return None if form is None else struct.unpack_from(form, content, at)[0] + more
