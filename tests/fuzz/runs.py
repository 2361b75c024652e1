"""The contract of failure, fuzzed: ``python -m tests.fuzz.runs --cases 5000 --seed 0``.

Random robots, drives, solvers, steps and formulations, and nonsense. Every case ends as a right
answer, as a refusal before tracing, or as a typed status; everything else is a failure, printed
with the number that repeats it: ``python -m tests.fuzz.runs --seed 0 --case 1234``.

What is compiled (a structure: names, types, counts, kinds of signals, formulation, solver) is drawn
once for 100 cases: 48 with parameters, starts and steps of their own, 12 with an absurd parameter
or step, 8 with one that is broken past every check, and 32 of nonsense. 5,000 cases are 50
structures and 3,400 runs with parameters of their own. Where another formulation supports the
structure, every right answer is compared with it.

The cases run in a process of their own. One that computes for too long, or sleeps, is stopped, and
its case is a failure.
"""

import argparse
import collections
import json
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SECONDS = 400.0  # of computing, for one case with the compilation of its structure
WAIT = 5.0  # between looks at what a silent process has computed
IDLE = 300.0  # seconds that it may sleep, without computing
FRESH = 20  # structures after which a new process starts: its memory stays bounded


def setting() -> None:
    """Fast compilation, as in the tests; before jax is imported."""
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}".strip()
    import jax

    jax.config.update("jax_enable_x64", True)


def computed(process: int | None) -> float:
    """Seconds that a process has computed; those on the clock where the system does not say."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return time.monotonic()
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _sleeps(process: int | None) -> bool:
    """Whether it neither computes, nor could, nor was paused."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "S"


def _work(seed: int, numbers: list[int], out) -> None:
    setting()
    from tests.fuzz.cases import results

    for result in results(seed, numbers):
        out.send(result)
    out.close()


def run(
    seed: int,
    numbers: list[int],
    late: Callable[[], bool] = lambda: False,
    seconds: float = SECONDS,
) -> Iterator:
    """The results of cases, each within its time; no new structure once it is late."""
    from tests.fuzz.cases import BLOCK, Result

    numbers = list(numbers)
    spawn = multiprocessing.get_context("spawn")
    while numbers:
        blocks = sorted({n // BLOCK for n in numbers})[:FRESH]
        part = [n for n in numbers if n // BLOCK in blocks]
        here, there = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=_work, args=(seed, part, there), daemon=True)
        worker.start()
        there.close()
        done: set[int] = set()
        stuck = ""
        while len(done) < len(part) and not stuck:
            begun, idle = computed(worker.pid), 0.0
            while not here.poll(WAIT) and not stuck:
                idle = idle + WAIT if _sleeps(worker.pid) else 0.0
                if computed(worker.pid) - begun > seconds or idle > IDLE:
                    stuck = f"no answer within {seconds:g} s of computing"
            if stuck:
                break
            try:
                result = here.recv()
            except EOFError:
                worker.join()
                stuck = f"the process ended with code {worker.exitcode}"
                break
            done.add(result.case)
            yield result
            block = {n for n in part if n // BLOCK == result.case // BLOCK}
            if late() and block <= done:
                worker.kill()
                return
        if stuck:
            worker.kill()
            case = next(n for n in part if n not in done)
            # The rest of its structure would wait for the same programs.
            done |= {n for n in part if n // BLOCK == case // BLOCK}
            yield Result(case, "", "", f"wrong: {stuck}", "", seconds)
        worker.join()
        numbers = [n for n in numbers if n not in done]


def shared(
    seed: int, numbers: list[int], workers: int, late: Callable[[], bool] = lambda: False
) -> Iterator:
    """The results of :func:`run` from several processes at once, in the order of their end."""
    from tests.fuzz.cases import BLOCK

    done: queue.Queue = queue.Queue()

    def one(k: int) -> None:
        try:
            for result in run(seed, [n for n in numbers if n // BLOCK % workers == k], late):
                done.put(result)
        finally:
            done.put(None)

    for k in range(workers):
        threading.Thread(target=one, args=(k,), daemon=True).start()
    ended = 0
    while ended < workers:
        if (result := done.get()) is None:
            ended += 1
        else:
            yield result


def report(results: list) -> str:
    """Counts by class and formulation, and every failure with the number that repeats it."""
    from tests.fuzz.cases import BLOCK

    kinds = sorted({r.kind for r in results})
    names = sorted({r.formulation for r in results})
    count = collections.Counter((r.kind, r.formulation) for r in results)
    blocks = len({r.case // BLOCK for r in results})
    runs = sum(r.group != "nonsense" for r in results)
    apart = sorted(r.apart for r in results if r.apart is not None)
    share = sorted(r.share for r in results if r.share is not None)
    lines = [
        f"{len(results)} cases: {blocks} structures, {runs} runs with numbers of their own, "
        f"{len(results) - runs} of nonsense; {sum(r.seconds for r in results):.0f} s of computing",
        "| outcome | " + " | ".join([*names, "all"]) + " |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for kind in kinds:
        row = [count[kind, name] for name in names]
        lines.append(f"| {kind} | " + " | ".join(map(str, [*row, sum(row)])) + " |")
    for group in ("sane", "wild", "broken", "nonsense"):
        ends = collections.Counter(r.kind for r in results if r.group == group)
        lines.append(f"{group}: " + ", ".join(f"{n} {kind}" for kind, n in ends.most_common()))
    if apart:
        at = [share[int(q * (len(share) - 1))] for q in (0.5, 0.9, 0.99, 1.0)]
        lines.append(
            f"{len(apart)} runs beside another formulation: tips apart by {at[0]:.1g} (median), "
            f"{at[1]:.1g} (90 %), {at[2]:.1g} (99 %), {at[3]:.1g} (largest) of the motion; at most "
            f"{apart[-1]:.2g} of what is allowed"
        )
    failed = [r for r in results if r.failed]
    lines.append(f"{len(failed)} failures")
    lines += [
        f"  --case {r.case}: {r.formulation}, {r.group}: {r.kind}: {r.detail}" for r in failed
    ]
    return "\n".join(lines)


def kept(path: Path, seed: int, commit: str) -> list:
    """The results of an earlier part of the same run; its file says of which commit and seed."""
    from tests.fuzz.cases import Result

    head = {"seed": seed, "commit": commit}
    if not path.exists():
        path.write_text(json.dumps(head) + "\n")
    first, *lines = path.read_text().splitlines()
    if json.loads(first) != head:
        raise ValueError(f"{path}: of {first}; expected {head}. Give another file.")
    return [Result(**json.loads(line)) for line in lines]


def main() -> int:
    from tests._report import commit

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, nargs="*", help="repeat only these")
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--workers", type=int, default=1, help="processes at once")
    parser.add_argument("--json", type=Path, help="where results are written, one per line")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --json")
    parser.add_argument("--page", action="store_true", help="put the counts into validation.md")
    parser.add_argument("--stop", type=float, default=1e9, help="no new structure after seconds")
    args = parser.parse_args()
    numbers = args.case or list(range(args.first, args.first + args.cases))
    begun, found = time.perf_counter(), []
    if args.resume:
        found = kept(args.json, args.seed, commit())
        done = {r.case for r in found}
        numbers = [n for n in numbers if n not in done]
    late = lambda: time.perf_counter() - begun > args.stop
    for result in shared(args.seed, numbers, args.workers, late):
        found.append(result)
        if args.case or result.failed or result.seconds > 60:
            print(result, flush=True)
        if args.json:
            with args.json.open("a") as f:
                f.write(json.dumps(vars(result)) + "\n")
    print(f"seed {args.seed}, commit {commit()}")
    print(report(found))
    if args.page:
        from tests.validation.__main__ import keep

        keep("fuzz", {"seed": args.seed, "commit": commit(), "report": report(found).split("\n")})
    return any(r.failed for r in found)


if __name__ == "__main__":
    raise SystemExit(main())
