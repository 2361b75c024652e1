"""Mutation check: ``python -m tests.mutation --sample 80 --seed 0 --json mutation.json``.

Draws faults of one expression from the physics kernels, at random from all of them, and runs the
quick tests that cover the file (fastest first) on a copy of the repository with that one fault.
A fault is killed by a test that fails, an import that fails, or the limit of time. Prints every
fault and the rate with its 95 % interval (Wilson). A smaller sample of the same seed is a part of
a larger one. ``--stages 1 --json F`` runs the fastest tests only; ``--json F`` later gives the
others to the faults that survived. ``--list`` prints the number of faults of each file.
"""

import argparse
import collections
import json
import math
import random
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from tests.mutation._mutants import Mutant, mutants
from tests.mutation._run import TIMED_OUT, copy, prepare, run
from tests.mutation._targets import ROOT, files, stages

PASSED = 0
BROKEN = (3, 4, 5)  # pytest itself failed, was called wrongly, or found no test: no verdict


def wilson(killed: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a rate."""
    if not count:
        return 0.0, 1.0
    p = killed / count
    middle = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(p * (1 - p) / count + z * z / (4 * count**2))
    return middle - half, middle + half


def outcome(tree: Path, mutant: Mutant, seconds: float, count: int, known: dict) -> dict:
    """What the first stages of tests make of one fault, from the first that has not run yet.

    The copy is healthy again afterwards.
    """
    path = tree / mutant.file
    source = path.read_text()
    entry = {"mutant": str(mutant), "old": mutant.old, "new": mutant.new}
    entry |= {"result": "survived", "by": "", "cpu_seconds": 0.0, "stages": 0} | known
    if entry["result"] != "survived":
        return entry
    try:
        path.write_text(mutant.apply(source))
        for stage in stages(mutant.file)[entry["stages"] : count]:
            code, failed, used = run(tree, stage, seconds)
            entry["cpu_seconds"] = round(entry["cpu_seconds"] + used, 1)
            if code in BROKEN:
                output = (tree / "output").read_text()[-2000:]
                raise RuntimeError(f"{mutant}: exit code {code} of {stage}\n{failed}\n{output}")
            entry["stages"] += 1
            if code != PASSED:
                word = "timed out" if code == TIMED_OUT else "killed"
                return entry | {"result": word, "by": failed or f"exit code {code} of {stage[0]}"}
    finally:
        path.write_text(source)
    return entry


def check_healthy(tree: Path, chosen: list[Mutant], seconds: float) -> None:
    """Tests that fail without a fault would kill everything."""
    for stage in dict.fromkeys(s for m in chosen for s in stages(m.file)):
        code, failed, used = run(tree, stage, 4 * seconds)
        print(f"without a fault: {stage[0][0]} {stage[1]}: {used:.0f} CPU s", flush=True)
        if code != PASSED:
            print((tree / "output").read_text()[-3000:])
            raise SystemExit(f"{stage}: fails without a fault ({failed}, exit code {code})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="*", default=["*"], help="patterns of paths")
    parser.add_argument("--sample", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=240.0, help="CPU time of a stage")
    parser.add_argument("--stages", type=int, default=3, help="of tests, at most")
    parser.add_argument("--minutes", type=float, default=1e9, help="of CPU time, of all faults")
    parser.add_argument("--json", type=Path, help="report, which is continued")
    parser.add_argument("--healthy", action="store_true", help="run the tests without a fault too")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    found = [
        m
        for file in files()
        if any(fnmatch(file, pattern) for pattern in args.files)
        for m in mutants(file, (ROOT / file).read_text())
    ]
    if args.list:
        for file, count in collections.Counter(m.file for m in found).items():
            print(f"{count:5d} {file}")
        print(f"{len(found):5d} in all")
        return 0
    random.Random(args.seed).shuffle(found)
    chosen = found[: args.sample]
    entries, used, began = [], 0.0, time.monotonic()
    known = {e["mutant"]: e for e in _read(args.json)}
    prepare()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = copy(Path(folder))
        if args.healthy:
            check_healthy(tree, chosen, args.seconds)
        for mutant in chosen:
            if used > 60 * args.minutes:
                break
            before = known.get(str(mutant), {})
            entries.append(outcome(tree, mutant, args.seconds, args.stages, before))
            used += entries[-1]["cpu_seconds"] - before.get("cpu_seconds", 0.0)
            last = entries[-1]
            print(
                f"{len(entries):3d} {last['result']:9s} {last['cpu_seconds']:6.1f} s  "
                f"{last['mutant']}\n      {last['by'][:110]}",
                flush=True,
            )
            if args.json:
                _store(args.json, args.seed, len(found), entries)
    summary(entries, len(found))
    print(f"{used / 60:.1f} CPU minutes, {(time.monotonic() - began) / 60:.1f} minutes")
    return 0


def _read(path: Path | None) -> list[dict]:
    return json.loads(path.read_text())["mutants"] if path is not None and path.exists() else []


def _store(path: Path, seed: int, total: int, entries: list[dict]) -> None:
    known = _read(path)
    names = {e["mutant"] for e in entries}
    merged = [e for e in known if e["mutant"] not in names] + entries
    text = json.dumps({"seed": seed, "all_mutants": total, "mutants": merged}, indent=1)
    path.write_text(text + "\n")


def summary(entries: list[dict], total: int) -> None:
    """A table by package, and the rate of all."""
    table: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for entry in entries:
        parts = entry["mutant"].split(":")[0].split("/")
        table["/".join(parts[1:3] if parts[1] != "mechanism" else parts[1:2])][entry["result"]] += 1
    print(f"\n{'package':34} {'killed':>7} {'timed out':>10} {'survived':>9}")
    for name, counts in sorted(table.items()):
        print(f"{name:34} {counts['killed']:7d} {counts['timed out']:10d} {counts['survived']:9d}")
    killed = sum(e["result"] != "survived" for e in entries)
    low, high = wilson(killed, len(entries))
    print(
        f"{killed} of {len(entries)} faults found: {killed / max(1, len(entries)):.1%}, 95 % "
        f"interval {low:.1%} to {high:.1%}, of {total} possible faults"
    )


if __name__ == "__main__":
    sys.exit(main())
