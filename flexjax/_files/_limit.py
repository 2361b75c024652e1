"""How much memory a file may ask for."""

from flexjax._files._error import FileError

FLOOR = 2**28  # bytes that any file may declare: 256 MB
RATIO = 100  # a recording compresses to a tenth of its size, not to a hundredth


def check_declared(where: str, declared: int, stored: int) -> None:
    """Refuse content that is far larger than its file (a damaged header, a decompression bomb)."""
    if declared > max(FLOOR, RATIO * stored):
        raise FileError(
            f"{where}: declares {declared / 1e9:.3g} GB of content in a file of "
            f"{stored / 1e6:.3g} MB; expected at most {RATIO} times the file. "
            "The file is damaged or made to exhaust memory; save it again, without compression."
        )
