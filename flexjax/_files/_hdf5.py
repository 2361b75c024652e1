"""Checks of an HDF5 (netCDF-4) file before anything in it is read."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from flexjax._files._error import FileError, reading
from flexjax._files._limit import FLOOR, RATIO, check_declared

EXPECTED = "a netCDF-4 file"
REMEDY = "The file is damaged or of another kind; save it again."
INSIDE = "Expected all values in the file itself; copy them into it (h5repack does)."
TEXT = np.dtype("S1")
FEW = 100  # entries of an attribute that need no closer look


def check_hdf5(path: Path, where: str) -> None:
    """Refuse a file that refers to other files, or declares more content than it can hold.

    External storage, external links and virtual datasets make a reader open any file that this
    process may read. Links are looked up by kind, never followed, before an object is opened.
    """
    import h5py

    with reading(where, EXPECTED, REMEDY), h5py.File(path, "r") as file:
        _Walk(path, where).visit(file)


class _Walk:
    def __init__(self, path: Path, where: str):
        self.where, self.stored = where, path.stat().st_size
        self.declared = 0
        self.seen: set[int] = set()

    def visit(self, file: Any) -> None:
        import h5py.h5o

        todo = [("/", file)]
        while todo:
            name, node = todo.pop()
            address = h5py.h5o.get_info(node.id).addr
            group = isinstance(node, h5py.Group)
            if address in self.seen:
                if group:
                    raise FileError(
                        f"{self.where}: the group {name!r} contains itself; expected a tree of "
                        "groups. " + REMEDY
                    )
                continue
            self.seen.add(address)
            self._attributes(name, node)
            if group:
                todo += self._children(name, node)
            elif isinstance(node, h5py.Dataset):
                self._dataset(name, node)

    def _children(self, name: str, group: Any) -> list:
        import h5py.h5l

        found = []
        for key in group.id:  # names as bytes; opens nothing
            path = f"{name.rstrip('/')}/{key.decode('utf-8', 'replace')}"
            kind = group.id.links.get_info(key).type
            if kind == h5py.h5l.TYPE_SOFT:
                continue  # leads to an object of this file, which is visited by its own name
            if kind != h5py.h5l.TYPE_HARD:
                raise FileError(f"{self.where}: {path!r} is a link to another file. {INSIDE}")
            found.append((path, group[key]))
        return found

    def _dataset(self, name: str, dataset: Any) -> None:
        if dataset.external:
            outside = dataset.external[0][0]
            raise FileError(f"{self.where}: {name!r} has its values in {outside!r}. {INSIDE}")
        if dataset.is_virtual:
            raise FileError(f"{self.where}: {name!r} is a view of other datasets. {INSIDE}")
        self._declare(name, dataset.shape, dataset.dtype)
        if dataset.chunks:  # read whole, even if the values are fewer
            size = math.prod(dataset.chunks) * dataset.dtype.itemsize
            check_declared(f"{self.where}: a chunk of {name!r}", size, self.stored)
        self._texts(name, dataset)

    def _attributes(self, name: str, node: Any) -> None:
        import h5py

        for k in range(h5py.h5a.get_num_attrs(node.id)):
            attribute = h5py.h5a.open(node.id, index=k)
            label = f"{name}@{attribute.name.decode('utf-8', 'replace')}"
            self._declare(label, attribute.shape, attribute.dtype)
            if isinstance(node, h5py.Dataset) and not _scales(attribute, node.ndim):
                raise FileError(
                    f"{self.where}: {label!r} is an attribute of shape {attribute.shape} and type "
                    f"{attribute.dtype}; expected references to dimensions. {REMEDY}"
                )
            count = math.prod(attribute.shape or ())
            if attribute.dtype.kind != "O":
                continue
            if count > FEW:
                check_declared(f"{self.where}: {label!r}", count * self.stored, self.stored)
            # Any number of attributes may share one long text.
            texts = np.atleast_1d(np.asarray(node.attrs[attribute.name], object)).ravel()
            self._declare(label, (sum(len(x) for x in texts if hasattr(x, "__len__")),), TEXT)

    def _declare(self, name: str, shape: tuple[int, ...] | None, dtype: np.dtype) -> None:
        self.declared += math.prod(shape or ()) * dtype.itemsize
        check_declared(f"{self.where}: {name!r}", self.declared, self.stored)

    def _texts(self, name: str, dataset: Any) -> None:
        """Count texts of variable length: any number of entries may share one long text."""
        if dataset.dtype.kind != "O" or not dataset.shape:
            return
        # A text is not longer than its file, so that one block of them stays within the limit.
        block = max(1, max(FLOOR, RATIO * self.stored) // max(self.stored, 1))
        rows = [slice(i, i + block) for i in range(0, dataset.shape[0], block)]
        for row in rows if dataset.ndim == 1 else np.ndindex(dataset.shape):
            self.declared += sum(
                len(x) for x in np.atleast_1d(dataset[row]) if hasattr(x, "__len__")
            )
            check_declared(f"{self.where}: {name!r}", self.declared, self.stored)


def _scales(attribute: Any, ndim: int) -> bool:
    """Whether an attribute, if it lists dimensions, has the type that HDF5 takes for granted: it
    reads one of another type into a buffer that may be too small."""
    import h5py.h5t as h5t

    kind = attribute.get_type()
    if attribute.name == b"DIMENSION_LIST":
        vlen = kind.get_class() == h5t.VLEN and kind.get_super().get_class() == h5t.REFERENCE
        return vlen and attribute.shape == (ndim,)
    if attribute.name == b"REFERENCE_LIST":
        parts = range(kind.get_nmembers()) if kind.get_class() == h5t.COMPOUND else ()
        classes = [kind.get_member_type(k).get_class() for k in parts]
        return classes == [h5t.REFERENCE, h5t.INTEGER] and len(attribute.shape or ()) == 1
    return True
