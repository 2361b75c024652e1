"""Records whose fields are computed when they are first read.

jax removes what nobody reads only after it was traced, and tracing is what a first call waits for.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.tree_util as jtu
from jax.extend.core import get_opaque_trace_state

from flexjax._compile import under_transformation

Read = Callable[[Sequence[str]], Mapping[str, Any]]


class Source:
    """Values by name, each computed once by ``compute(names)``, which may return others beside.

    Values that are traced belong to one transformation. Read inside another one, they are computed
    there and not kept.
    """

    def __init__(self, compute: Read):
        self._compute, self._found = compute, {}
        self._concrete, self._state = not under_transformation(), get_opaque_trace_state()

    def __call__(self, names: Sequence[str]) -> Mapping[str, Any]:
        missing = [name for name in names if name not in self._found]
        if not missing:
            return self._found
        if self._concrete and under_transformation():
            # A compiled function closes over the record. Here jax also runs the constants of the
            # program one by one, which takes seconds; elsewhere it does not.
            with jax.ensure_compile_time_eval():
                self._found.update(self._compute(missing))
        elif self._concrete:
            self._found.update(self._compute(missing))
        elif get_opaque_trace_state() == self._state:
            self._found.update(self._compute(missing))
        else:
            return {**self._found, **self._compute(missing)}
        return self._found


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Deferrable:
    """Base of frozen dataclasses that are pytrees of all their fields.

    Fields that :meth:`deferred` leaves out are read from a source. Whatever takes the record as a
    pytree (jit, vmap, tree_map) reads all of them.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        jtu.register_pytree_with_keys(
            cls, _flatten_with_keys, functools.partial(_unflatten, cls), _flatten
        )

    @classmethod
    def deferred(cls, read: Read, **known: Any) -> Self:
        """A record with the fields ``known``; ``read(names)`` gives the others."""
        new = object.__new__(cls)
        new.__dict__.update(known, _read=read)
        return new

    if not TYPE_CHECKING:  # otherwise every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            read = self.__dict__.get("_read")
            if read is None or name not in _names(type(self)):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return read([name])[name]

    def beside(self, name: str) -> Any:
        """A value of the source that is no field; None if the record has no source."""
        read = self.__dict__.get("_read")
        return None if read is None else read([name])[name]

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(_names(type(self)), _values(self), strict=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def _values(record: Deferrable) -> list[Any]:
    names, own = _names(type(record)), record.__dict__
    missing = [name for name in names if name not in own]
    found = {**own, **own["_read"](missing)} if missing else own
    return [found[name] for name in names]


def _flatten(record: Deferrable):
    return _values(record), None


def _flatten_with_keys(record: Deferrable):
    keys = (jtu.GetAttrKey(name) for name in _names(type(record)))
    return list(zip(keys, _values(record), strict=True)), None


def _unflatten(cls: type, _, values):
    new = object.__new__(cls)
    new.__dict__.update(zip(_names(cls), values, strict=True))
    return new
