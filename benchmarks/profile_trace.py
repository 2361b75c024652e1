"""What Python does while one `simulate` call is traced, for every formulation.

    python -m benchmarks.profile_trace [--only TransferMatrix] [--robot metal-link]
    python -m benchmarks.profile_trace --equations 20 [--only ...] [--robots "one link" telescope]

For each formulation: files that take part, calls of flexjax's functions, and calls that cross from
one package to another. A call belongs to the nearest function of flexjax above it, so a body that
jax traces counts for the code that passed it. Static tables are objects without a traced value;
one that is built again and again belongs in `bind`. The last table gives the pairs of packages with
traffic in both directions: a lower package calls back through an interface or a function argument.

``--equations N`` shows instead how many equations jax traces for a simulation and for the gradient
of its tip, with CPU seconds to trace, lower and compile them, and the N functions that most of
them come from. Robots are those of `benchmarks.first_call`.
"""

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import jax

from benchmarks import _equations, _harness

PACKAGE = Path(__file__).resolve().parent.parent / "flexjax"
# Counted once on the code before its rebuild, by another script: files, calls, crossings, and the
# static tables. Only their size compares.
BEFORE = {
    "RigidArm": {"files": 50, "calls": 1053, "crossings": 184},
    "MovingBeam": {"calls": 2520},
    "TransferMatrix": {"tables": 59},
}
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"}


def package(filename: str) -> str | None:
    """The package of a source file, at most two folders deep; None outside flexjax."""
    try:
        folders = Path(filename).relative_to(PACKAGE).parts[:-1]
    except ValueError:
        return None
    return "/".join(folders[:2]) or "flexjax"


class Profile:
    """Counts calls while it is active."""

    def __init__(self):
        self.files: set[str] = set()
        self.calls: Counter = Counter()  # callee
        self.crossings: Counter = Counter()  # (caller, callee)
        self.tables: Counter = Counter()  # class
        self._packages: dict[str, str | None] = {}

    def _package(self, frame: FrameType) -> str | None:
        name = frame.f_code.co_filename
        if name not in self._packages:
            self._packages[name] = package(name)
        return self._packages[name]

    def _caller(self, frame: FrameType) -> str | None:
        above = frame.f_back
        while above is not None:
            found = self._package(above)
            if found is not None:
                return found
            above = above.f_back
        return None

    def _built(self, frame: FrameType) -> None:
        """An object is complete: a table if it has no traced value."""
        new = frame.f_locals.get("self")
        # Three parts: wrappers in modules beside the packages are no tables.
        if type(new).__module__.count(".") < 2 or not type(new).__module__.startswith("flexjax."):
            return
        parts = jax.tree_util.tree_leaves(list(getattr(new, "__dict__", {}).values()))
        if not any(isinstance(x, jax.core.Tracer) for x in parts):
            self.tables[type(new).__name__] += 1

    def __call__(self, frame: FrameType, event: str, arg) -> None:
        code = frame.f_code
        if event == "return" and code.co_name == "__init__":
            self._built(frame)
        if event != "call" or code.co_name in COMPREHENSIONS:
            return
        callee = self._package(frame)
        if callee is None:
            return
        self.files.add(code.co_filename)
        self.calls[callee] += 1
        caller = self._caller(frame)
        if caller is not None and caller != callee:
            self.crossings[caller, callee] += 1

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


def both_ways(crossings: Counter) -> list[tuple[str, str, int, int]]:
    """Pairs of packages that call each other: (a, b, calls from a to b, calls from b to a)."""
    pairs = sorted((a, b) for a, b in crossings if a < b and (b, a) in crossings)
    return [(a, b, crossings[a, b], crossings[b, a]) for a, b in pairs]


def profile(name: str, robot) -> dict:
    """One row: a formulation's `simulate`, traced as a function of the model's parameters."""
    import equinox as eqx
    import numpy as np

    import flexjax as fx
    from flexjax.formulation import formulation

    chosen = formulation(name)()
    refusals = chosen.refusals(robot)
    if refusals:
        return {"name": name, "error": "; ".join(refusals)}
    model, ts = chosen.bind(robot), np.linspace(0.0, 0.1, 3)
    jax.clear_caches()  # a helper that another formulation compiled would not be traced again
    with Profile() as seen:
        eqx.filter_eval_shape(lambda m: fx.simulate(m, None, ts, dt=5e-3, throw=False), model)
    return {
        "name": name,
        "files": len(seen.files),
        "calls": seen.calls.total(),
        "crossings": seen.crossings.total(),
        "tables": seen.tables.total(),
        "most built": dict(seen.tables.most_common(5)),
        "calls by package": dict(seen.calls.most_common()),
        "traffic": [[a, b, n] for (a, b), n in seen.crossings.most_common()],
        "both ways": [list(pair) for pair in both_ways(seen.crossings)],
    }


def show(rows: list[dict]) -> str:
    columns = ("files", "calls", "crossings", "tables")
    lines = [f"{'':18}" + "".join(f"{c + ' (before)':>20}" for c in columns) + "  most built table"]
    for row in rows:
        if "error" in row:
            lines.append(f"{row['name']:18} refused: {row['error']}")
            continue
        cells = (f"{row[c]} ({BEFORE.get(row['name'], {}).get(c, '-')})" for c in columns)
        most = next((f"{cls} {n}" for cls, n in row["most built"].items()), "-")
        lines.append(f"{row['name']:18}" + "".join(f"{c:>20}" for c in cells) + f"  {most}")
    lines += ["", "traffic in both directions (calls there, calls back)"]
    for row in rows:
        for a, b, there, back in row.get("both ways", []):
            lines.append(f"{row['name']:18} {a} -> {b} {there}, back {back}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> list[dict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="a formulation; may be repeated")
    parser.add_argument("--robot", default="metal-link", help="an example or a robot file")
    parser.add_argument("--equations", type=int, metavar="N", help="functions to show")
    parser.add_argument("--robots", nargs="+", default=["one link"], help="with --equations")
    args = parser.parse_args(argv)
    import flexjax as fx
    from flexjax.formulation import REGISTRY

    jax.config.update("jax_enable_x64", True)
    if args.equations is not None:
        cases = itertools.product(args.only or REGISTRY, args.robots, _equations.TASKS)
        rows = [_equations.case(*case, args.equations) for case in cases]
        print(_equations.show(rows))
        print(f"written to {_harness.save('trace_equations', rows)}")
        return rows
    robot = fx.load_robot(args.robot)
    rows = [profile(name, robot) for name in args.only or REGISTRY]
    print(show(rows))
    print(f"written to {_harness.save('profile_trace', rows, robot=robot.name)}")
    return rows


if __name__ == "__main__":
    main()
