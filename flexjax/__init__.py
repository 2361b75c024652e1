"""flexjax: differentiable simulation of flexible-link robots.

Importing this package imports nothing else: each public name is fetched from its module at first use (PEP 562), so that
`flexjax --help` answers at once and no global setting of jax is touched.
"""

from importlib import import_module

__version__ = "0.1.0"

# The public names and the module each one lives in. This table is the whole public interface.
_EXPORTS: dict[str, str] = {}

__all__ = ["__version__", *_EXPORTS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'flexjax' has no attribute {name!r}; dir(flexjax) lists the public names")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
