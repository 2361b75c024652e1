"""Arrays of an .npz archive, with bounded memory and without pickle."""

import math
import zipfile
from pathlib import Path

import numpy as np

from flexjax._files._error import FileError, reading
from flexjax._files._limit import check_declared

EXPECTED = "an .npz archive of numeric arrays"
REMEDY = "The file is damaged or of another kind; save it again with numpy.savez."

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npz(path: Path, where: str) -> dict[str, np.ndarray]:
    """The arrays of an archive by name."""
    if not path.is_file():  # a pipe would be waited for
        raise FileError(f"{where}: is no file; expected {EXPECTED}. {REMEDY}")
    with reading(where, EXPECTED, REMEDY), zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        check_declared(where, sum(m.file_size for m in members), path.stat().st_size)
        odd = [m for m in members if m.compress_type not in METHODS]
        if odd:  # others reserve as much memory as their header says
            raise FileError(
                f"{where}: {odd[0].filename!r} is compressed by method {odd[0].compress_type}; "
                f"expected stored or deflated, as numpy writes. {REMEDY}"
            )
        return {m.filename.removesuffix(".npy"): _array(archive, m, where) for m in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> np.ndarray:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format
        head = header.read_array_header_1_0 if version == (1, 0) else header.read_array_header_2_0
        shape, _, dtype = head(file)
    if dtype.hasobject:
        raise FileError(
            f"{where}: {member.filename!r} contains Python objects; expected numbers. "
            "Objects would be unpickled, which can run code: save numbers only."
        )
    if min(shape, default=0) < 0 or math.prod(shape) * max(dtype.itemsize, 1) > member.file_size:
        raise FileError(
            f"{where}: {member.filename!r} has shape {shape} of {dtype} in {member.file_size} "
            f"bytes; expected {EXPECTED}. {REMEDY}"
        )
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
