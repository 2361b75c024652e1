"""Writes docs/formulations.md (the capability matrix from the registry) and docs/api.md (every public name).

python docs/_make.py          writes
python docs/_make.py --check  says whether what is committed is current
"""

import inspect
import sys
from pathlib import Path

import flexjax as fx
from flexjax.formulation import REGISTRY, formulation
from flexjax.robot import examples, load_robot

HERE = Path(__file__).parent


def capability() -> str:
    rows = ["| robot | " + " | ".join(REGISTRY) + " |", "|---|" + "---|" * len(REGISTRY)]
    reasons = []
    for name in examples():
        cells = []
        for kind in REGISTRY:
            refusals = formulation(kind)().refusals(load_robot(name))
            cells.append("no" if refusals else "yes")
            if refusals:
                reasons.append(f"- `{name}`, {kind}: {'; '.join(refusals)}")
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join([*rows, "", "Why not:", "", *reasons])


def formulations() -> str:
    parts = [
        "# Formulations",
        "",
        "Made by `docs/_make.py` from the registry. What each one does with the paper's equations, what was corrected and why stands in `PAPER.md` of its folder.",
        "",
        "## Which example robot can be held by which formulation, with default options",
        "",
        capability(),
    ]
    for name in REGISTRY:
        cls = formulation(name)
        doc = inspect.cleandoc(cls.__doc__ or "").split("\n\n>>>")[0].split("\n>>>")[0]
        parts += ["", f"## {name}", "", doc.replace("``", "`"), "", f"Source: {cls.paper}"]
    return "\n".join(parts) + "\n"


def api() -> str:
    parts = [
        "# API",
        "",
        "Made by `docs/_make.py`: every public name, with the first paragraph of its documentation. `help(fx.simulate)` shows all of it.",
        "",
    ]
    for name in sorted(fx.__all__, key=str.lower):
        if name.startswith("__"):
            continue
        value = getattr(fx, name)
        try:
            signature = str(inspect.signature(value)) if inspect.isfunction(value) else ""
        except ValueError:
            signature = ""
        names = [p for p in inspect.signature(value).parameters] if signature else []
        doc = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].split("\n>>>")[0].replace("``", "`")
        doc = doc.replace(":class:", "").replace(":func:", "")
        parts += [f"### fx.{name}" + (f"({', '.join(names)})" if signature else ""), "", doc, ""]
    return "\n".join(parts)


PAGES = {"formulations.md": formulations, "api.md": api}

if __name__ == "__main__":
    stale = []
    for page, make in PAGES.items():
        text = make()
        if "--check" in sys.argv:
            stale += [] if (HERE / page).read_text(encoding="utf-8") == text else [page]
        else:
            (HERE / page).write_text(text, encoding="utf-8")
    sys.exit(f"not current: {', '.join(stale)}; run python docs/_make.py" if stale else 0)
