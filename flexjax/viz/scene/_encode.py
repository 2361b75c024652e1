"""Arrays as text, for pages."""

import base64

import numpy as np


def encode(array: np.ndarray) -> str:
    """Encode an array as base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def decode(text: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape)
