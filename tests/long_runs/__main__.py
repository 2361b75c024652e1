"""Long runs: ``python -m tests.long_runs --steps 1000000``.

Integrates the smallest case of every formulation and a four-bar, prints drifts of energy,
constraint and memory, and repeats the run bitwise. The numbers go to the validation page.
"""

import argparse
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "xla"))
if platform.machine() == "x86_64":  # see the Makefile
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")


def main() -> int:
    import jax

    jax.config.update("jax_enable_x64", True)
    from tests._report import commit
    from tests.long_runs._run import RUNS, long_run
    from tests.validation.__main__ import keep

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--repeated", type=int, help="steps of the second run; all by default")
    parser.add_argument("--cases", nargs="*", default=list(RUNS), choices=list(RUNS))
    args = parser.parse_args()
    at = commit()
    for name in args.cases:
        repeated = args.steps if args.repeated is None else args.repeated
        found = long_run(name, args.steps, repeated) | {"commit": at}
        keep("long_runs", found, name)
        print(name, found, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
