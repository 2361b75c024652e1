"""One error for files that cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager


class FileError(ValueError):
    """A file is damaged, too large for what it declares, or refers to other files.

    >>> import flexjax as fx
    >>> from pathlib import Path
    >>> size = Path("damaged.nc").write_text("not a trajectory")
    >>> try:
    ...     fx.load_trajectory("damaged.nc")
    ... except fx.FileError:
    ...     print("cannot be read")
    cannot be read
    """


@contextmanager
def reading(where: str, expected: str, remedy: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into a :class:`FileError`.

    ``where`` names the file (``data file 'x.npz'``). The original exception stays as the cause.
    """
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # a parser raises anything: EOFError, KeyError, struct.error, ...
        kind = "" if isinstance(error, ValueError) else type(error).__name__
        reason = ": ".join(filter(None, [kind, str(error).strip()[:1000]]))
        raise FileError(
            f"{where}: cannot be read ({reason}); expected {expected}. {remedy}"
        ) from error
