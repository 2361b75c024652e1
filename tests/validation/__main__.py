"""Validation page: ``python -m tests.validation`` computes every case in every formulation, stores
the numbers in tests/validation/results.json and writes docs/validation.md with its figures.

``--cases elastica --formulations FiniteElement`` computes some anew; ``--page`` only writes.
"""

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "xla"))
if platform.machine() == "x86_64":  # see the Makefile
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
RESULTS = Path(__file__).with_name("results.json")


def compute(cases: list[str], names: list[str]) -> None:
    """Compute cases and store their rows in place of earlier ones."""
    from flexjax.formulation import formulation
    from tests.validation import _convergence
    from tests.validation._cases import CASES
    from tests.validation._row import run

    for word in cases:
        for name in names:
            if not formulation(name).deforms and (word not in CASES or CASES[word].elastic):
                continue
            began = time.process_time()
            if word in CASES:
                found = [dataclasses.asdict(r) for r in run(word, CASES[word], name)]
            else:
                found = getattr(_convergence, word)(name)
            keep(word, found, name)
            print(f"{word:14s} {name:16s} {time.process_time() - began:6.1f} CPU s", flush=True)
            shown = found if isinstance(found, list) else []
            for r in shown:
                print(f"    {r['quantity']:34s} {r['error']} {r['refused'][:90]}", flush=True)
            if isinstance(found, dict):
                print("   ", found, flush=True)


def keep(word: str, found: object, name: str = "") -> None:
    """Store what was computed, beside what else is there."""
    store = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if name:
        store.setdefault(word, {})[name] = found
    else:
        store[word] = found
    RESULTS.write_text(json.dumps(store, indent=1) + "\n")


def main() -> int:
    import jax

    jax.config.update("jax_enable_x64", True)
    from flexjax.formulation import REGISTRY
    from tests.validation._cases import CASES

    both = [*CASES, "in_h", "in_dt"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=both, choices=both)
    parser.add_argument("--formulations", nargs="*", default=list(REGISTRY))
    parser.add_argument("--page", action="store_true", help="write the page from stored numbers")
    parser.add_argument("--bounds", action="store_true", help="state bounds for rows without one")
    args = parser.parse_args()
    if args.bounds:
        from tests.validation._bounds import add_missing

        print("\n".join(add_missing(json.loads(RESULTS.read_text()))))
        return 0
    if not args.page:
        compute(args.cases, args.formulations)
    from tests.validation._page import write

    write(json.loads(RESULTS.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
