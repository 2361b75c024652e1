"""Writes docs/formulations.md (the capability matrix from the registry), docs/api.md (every public name) and docs/files.md (robot and drive files).

python docs/_make.py          writes; python docs/_make.py api.md just that page
python docs/_make.py --check  says whether what is committed is current
"""

import inspect
import sys
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
sys.path.insert(0, str(Path(__file__).parent))

import _files
import _probes

import flexjax as fx
from flexjax.formulation import REGISTRY, formulation
from flexjax.robot import examples, load_robot

HERE = Path(__file__).parent


def _table(first: str, rows: dict[str, list[str]]) -> list[str]:
    head = [f"| {first} | " + " | ".join(REGISTRY) + " |", "|---|" + "---|" * len(REGISTRY)]
    return [*head, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items())]


def features() -> list[str]:
    """Probe robots with one feature each, and what every formulation says to them."""
    parts, why = [], {}
    for group, probes in _probes.ROBOTS.items():
        rows = {}
        for name, make in probes.items():
            robot, cells = make(), []
            for kind in REGISTRY:
                refusals = formulation(kind)().refusals(robot)
                if refusals:
                    known = why.setdefault((kind, "; ".join(refusals)), len(why) + 1)
                cells.append(f"no ({known})" if refusals else "yes")
            rows[name] = cells
        parts += ["", *_table(group, rows)]
    parts += ["", "What a refusal says (`probe` robots have links `a`, `b`, ...):", ""]
    return [*parts, *(f"{number}. {kind}: {text}" for (kind, text), number in why.items())]


def drives_and_sensors() -> list[str]:
    """Measured: does a drive change the rate of the state, does a sensor read anything, which strains are there?"""
    arm = _probes.one()
    models = {kind: formulation(kind)().bind(arm) for kind in REGISTRY}
    acts = _probes.acts
    drives = {
        name: ["yes" if acts(model, drive) else "no" for model in models.values()]
        for name, drive in _probes.DRIVES.items()
    }
    spatial = {
        kind: not formulation(kind)().refusals(_probes.based("revolute", axis=_probes.Z))
        for kind in REGISTRY
    }
    shaken = {kind: _probes.shaken(formulation(kind)(), spatial[kind]) for kind in REGISTRY}
    sensors = {
        name: ["yes" if shaken[kind][0][name] > 1e-12 else "zero" for kind in REGISTRY]
        for name in _probes.SENSORS
    }
    found = {kind: strain for kind, (_, strain) in shaken.items()}
    planar_only = ("shear z", "torsion", "curvature y")
    strains = {
        name: [
            "yes"
            if found[kind][i] > 1e-15
            else "zero"
            if spatial[kind] or name not in planar_only
            else "planar only"
            for kind in REGISTRY
        ]
        for i, name in enumerate(_probes.STRAINS)
    }
    text = (
        "A drive is held if it changes the rate of a probe's state, a sensor or a strain if it is not zero in a "
        "link that is moved a little in all its unknowns."
    )
    return [
        "",
        text,
        "",
        *_table("Drive", drives),
        "",
        *_table("Sensor", sensors),
        "",
        *_table("Strain", strains),
    ]


def examples_held() -> list[str]:
    rows = {
        f"`{name}`": [
            "no" if formulation(kind)().refusals(load_robot(name)) else "yes" for kind in REGISTRY
        ]
        for name in examples()
    }
    return _table("example", rows)


def formulations() -> str:
    parts = [
        "# Formulations",
        "",
        "Made by `docs/_make.py` by asking every registered formulation, with its default options, about small robots that have "
        "one feature each (`docs/_probes.py`). A number stands for the reason below. Your own robot: `flexjax describe arm.toml`.",
        "",
        "## What each can hold",
        *features(),
        "",
        "## Drives, sensors, strains",
        *drives_and_sensors(),
        "",
        "## The example robots",
        "",
        *examples_held(),
        "",
        "## Options",
    ]
    for name in REGISTRY:
        cls = formulation(name)
        doc = inspect.cleandoc(cls.__doc__ or "").split("\n\n>>>")[0].split("\n>>>")[0]
        page = f"theory/{REGISTRY[name].split('.')[2]}.md"
        parts += [
            "",
            f"### {name}",
            "",
            doc.replace("``", "`"),
            "",
            f"Source: {cls.paper} Equations: [theory]({page}).",
        ]
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
        doc = (
            inspect.cleandoc(value.__doc__ or "")
            .split("\n\n")[0]
            .split("\n>>>")[0]
            .replace("``", "`")
        )
        doc = doc.replace(":class:", "").replace(":func:", "")
        parts += [f"### fx.{name}" + (f"({', '.join(names)})" if signature else ""), "", doc, ""]
    return "\n".join(parts)


PAGES = {"formulations.md": formulations, "api.md": api, "files.md": _files.files}

if __name__ == "__main__":
    stale = []
    chosen = [
        name for name in sys.argv[1:] if not name.startswith("--")
    ]  # all, unless some are named: formulations.md runs for minutes
    for page, make in PAGES.items():
        if chosen and page not in chosen:
            continue
        text = make()
        if "--check" in sys.argv:
            stale += [] if (HERE / page).read_text(encoding="utf-8") == text else [page]
        else:
            (HERE / page).write_text(text, encoding="utf-8")
    sys.exit(f"not current: {', '.join(stale)}; run python docs/_make.py" if stale else 0)
