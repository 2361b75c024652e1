"""Mutation check: ``python -m tests.mutation --sample 100 --seed 0 --json report.json``.

Draws faults of one expression, equally many from each group of physics kernels, and runs the quick
tests that cover the file (fastest first) on a copy of the repository with that one fault. A fault
is killed by a test that fails, an import that fails, or the limit of time. Prints every fault and
the rate with its 95 % interval (Wilson). A smaller sample of the same seed is a part of a larger
one. In the end the tests that found faults run without one: a test that fails there finds nothing.

``--json F`` continues the report F: faults that it has are not repeated, but for survivors that
lack tests of a later stage, with ``--again`` all survivors without a reason. A reason
(``"equivalent"``: why no test can find the fault) is written into the report by hand and stays.
``--page`` writes docs/mutation.md from the report. ``--list`` prints the number of faults of each
file.
"""

import argparse
import collections
import itertools
import json
import random
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from tests.mutation._mutants import Mutant, mutants
from tests.mutation._page import PAGE, REPORT, page, table, wilson
from tests.mutation._run import TIMED_OUT, copy, prepare, run
from tests.mutation._targets import ROOT, files, group, stages

PASSED = 0
UNFOUND = 4  # a named test is not there: its module was not imported
BROKEN = (3, 5)  # pytest itself failed, or found no test: no verdict


def outcome(tree: Path, mutant: Mutant, seconds: float, count: int, known: dict) -> dict:
    """What the first stages of tests make of one fault, from the first that has not run yet.

    The copy is healthy again afterwards.
    """
    path = tree / mutant.file
    source = path.read_text()
    entry = {"mutant": str(mutant), "group": group(mutant.file), "result": "survived", "by": ""}
    entry |= {"cpu_seconds": 0.0, "stages": 0} | known
    if entry["result"] != "survived":
        return entry
    try:
        path.write_text(mutant.apply(source))
        for stage in stages(mutant.file)[entry["stages"] : count]:
            if not stage[0]:
                entry["stages"] += 1
                continue
            code, failed, used = run(tree, stage, seconds)
            entry["cpu_seconds"] = round(entry["cpu_seconds"] + used, 1)
            if code in BROKEN:
                output = (tree / "output").read_text()[-2000:]
                raise RuntimeError(f"{mutant}: exit code {code} of {stage}\n{failed}\n{output}")
            entry["stages"] += 1
            if code != PASSED:
                word = "timed out" if code == TIMED_OUT else "killed"
                how = "import fails" if code == UNFOUND else f"exit code {code} of {stage[0][0]}"
                return entry | {"result": word, "by": failed or how}
    finally:
        path.write_text(source)
    return entry


def confirm(tree: Path, entries: list[dict], seconds: float) -> None:
    """Run without a fault what found one: a test that fails there finds nothing, and the limit of
    time is no verdict on tests that need half of it."""
    found = sorted({e["by"] for e in entries if "::" in e["by"]})
    if found:
        code, failed, used = run(tree, (tuple(found), ""), 10 * seconds)
        print(f"{len(found)} tests that found faults, run without: {used:.0f} CPU s", flush=True)
        if code != PASSED:
            print((tree / "output").read_text()[-3000:])
            raise SystemExit(f"{failed} fails without a fault (exit code {code})")
    for e in entries:
        if e["result"] == "timed out":
            stage = stages(e["mutant"].split(":")[0])[e["stages"] - 1]
            code, _, used = run(tree, stage, seconds)
            if code != PASSED or used > seconds / 2:
                e["result"] = "survived"
                print(f"{e['mutant']}: too slow without the fault as well", flush=True)


def sample(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """About ``count`` faults, equally many from every group, in turn."""
    groups: dict[str, list[Mutant]] = {}
    for mutant in found:
        groups.setdefault(group(mutant.file), []).append(mutant)
    for name, members in groups.items():
        random.Random(f"{seed} {name}").shuffle(members)
    turns = (m for row in itertools.zip_longest(*groups.values()) for m in row if m is not None)
    return list(itertools.islice(turns, count))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="*", default=["*"], help="patterns of paths")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=240.0, help="CPU time of a stage")
    parser.add_argument("--stages", type=int, default=3, help="of tests, at most")
    parser.add_argument("--minutes", type=float, default=1e9, help="of CPU time, of all faults")
    parser.add_argument("--json", type=Path, help="report, which is continued")
    parser.add_argument("--again", action="store_true", help="survivors without a reason")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page", action="store_true", help="writes docs/mutation.md")
    args = parser.parse_args()
    if args.page:
        PAGE.write_text(page(json.loads(REPORT.read_text())))
        return 0
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
    chosen = sample(found, args.sample, args.seed)
    known = {e["mutant"]: e for e in _read(args.json)}
    if args.again:
        chosen = [m for m in chosen if _open(known.get(str(m), {}))]
        known |= {str(m): known[str(m)] | {"stages": 0, "before": "survived"} for m in chosen}
    entries = examine(chosen, known, args, len(found))
    summary(entries, len(found))
    return 0


def examine(chosen: list[Mutant], known: dict[str, dict], args, total: int) -> list[dict]:
    """The entries of the faults, each of which is printed and stored as soon as it is known."""
    entries, used, began = [], 0.0, time.monotonic()
    found = {name for name, e in known.items() if e["result"] != "survived"}
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        prepare()
        tree = copy(Path(folder) / "copy")
        for mutant in chosen:
            if used > 60 * args.minutes:
                break
            # Another process may continue the same report.
            known = {e["mutant"]: e for e in _read(args.json)} | known
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
                _store(args.json, args.seed, total, entries)
        confirm(tree, [e for e in entries if e["mutant"] not in found], args.seconds)
        if args.json:
            _store(args.json, args.seed, total, entries)
    print(f"{used / 60:.1f} CPU minutes, {(time.monotonic() - began) / 60:.1f} minutes")
    return entries


def _open(entry: dict) -> bool:
    return entry.get("result") == "survived" and "equivalent" not in entry


def _read(path: Path | None) -> list[dict]:
    return json.loads(path.read_text())["mutants"] if path is not None and path.exists() else []


def _store(path: Path, seed: int, total: int, entries: list[dict]) -> None:
    known = _read(path)
    names = {e["mutant"] for e in entries}
    merged = [e for e in known if e["mutant"] not in names] + entries
    text = json.dumps({"seed": seed, "all_mutants": total, "mutants": merged}, indent=1)
    path.write_text(text + "\n")


def summary(entries: list[dict], total: int) -> None:
    """A table by group, and the rate of all."""
    print("\n".join(["", *table(entries)]))
    killed = sum(e["result"] != "survived" for e in entries)
    low, high = wilson(killed, len(entries))
    print(
        f"{killed} of {len(entries)} faults found: {killed / max(1, len(entries)):.1%}, 95 % "
        f"interval {low:.1%} to {high:.1%}, of {total} possible faults"
    )


if __name__ == "__main__":
    sys.exit(main())
