"""A compilation cache on disk."""

import os
import subprocess
import sys

PROGRAM = "import jax; print(jax.jit(lambda x: 2 * x)(1.0))"


def test_reading_a_cached_program_prints_nothing(tmp_path):
    """With the flags of the tests, which are those of the Makefile."""
    env = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    for _ in range(2):
        out = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True
        )
        assert (out.returncode, out.stdout.strip(), out.stderr) == (0, "2.0", "")
        assert list(tmp_path.iterdir())
