"""Run-time check of the shapes in annotations, for jaxtyping's import hook.

typeguard 4 reads the names of dimensions as Python, and ' n' is none; beartype is no dependency.
Only arrays are checked: pyright checks other types.
"""

import inspect
import types
from collections.abc import Callable
from functools import wraps
from typing import Any, Union, get_args, get_origin

from jaxtyping import AbstractArray


def _has_array(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return True
    return any(_has_array(x) for x in get_args(annotation))


def matches(value: Any, annotation: Any) -> bool:
    """Whether arrays in ``value`` have the shapes and types of the annotation."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(matches(value, x) for x in inner)
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        fits = isinstance(value, tuple) and len(value) == len(inner)
        return fits and all(matches(x, a) for x, a in zip(value, inner, strict=True))
    if origin in (tuple, list):
        return isinstance(value, origin) and all(matches(x, inner[0]) for x in value)
    if annotation is float:
        return isinstance(value, (float, int))
    if annotation is None or isinstance(annotation, type):
        return isinstance(value, type(None) if annotation is None else annotation)
    return True


def check_shapes(function: Callable) -> Callable:
    """The type checker that the hook applies to every function, inside jaxtyping's context."""
    signature = inspect.signature(function)
    wanted = {
        name: tuple[p.annotation, ...] if p.kind is p.VAR_POSITIONAL else p.annotation
        for name, p in signature.parameters.items()
        if _has_array(p.annotation) and p.kind is not p.VAR_KEYWORD
    }
    result = signature.return_annotation
    if not wanted and not _has_array(result):
        return function

    @wraps(function)
    def checked(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        for name, annotation in wanted.items():
            if name in given and not matches(given[name], annotation):
                raise TypeError(f"{function.__qualname__}: {name} is no {annotation}")
        out = function(*args, **kwargs)
        if _has_array(result) and not matches(out, result):
            raise TypeError(f"{function.__qualname__}: the result is no {result}")
        return out

    return checked
