"""How mkdocstrings reads flexjax: fields of modules as arguments, links between public names."""

import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import griffe

# Written by docs/_make.py: the page of every public name.
PLACES = Path(__file__).with_name("reference") / "names.json"
ROLE = re.compile(r":(?:class|func|mod|data|meth):`~?([\w.]+)`")
SEVERAL = re.compile(r"^    (\w+(?:, \w+)+): (.*(?:\n {5,}.*)*)", re.M)


def markdown(text: str, public: set[str]) -> str:
    """A docstring without roles of Sphinx and options of doctest; public names become links."""

    def link(match: re.Match) -> str:
        name = match[1].rpartition(".")[2]
        return f"[`{name}`][fx.{name}]" if name in public else f"`{name}`"

    def split(match: re.Match) -> str:
        return "\n".join(f"    {name}: {match[2]}" for name in match[1].split(", "))

    text = re.sub(r" *# doctest: \+\w+", "", ROLE.sub(link, text))
    text = text.replace("] [", "] \\[")  # two units, not a link
    # One entry for each argument, all with the same text.
    text = SEVERAL.sub(split, text) if "Arguments:" in text else text
    # An example is a section, where lines are code.
    before, mark, example = text.partition("\n>>>")
    return f"{before}\nExamples:\n{indent('>>>' + example, '    ')}" if mark else text


def fields(cls: griffe.Class) -> list[griffe.Parameter]:
    """The arguments of a module or dataclass: its annotated fields, in order of definition."""
    found = {}
    for parent in [*reversed(cls.mro()), cls]:
        for name, member in parent.members.items():
            if not isinstance(member, griffe.Attribute) or member.annotation is None:
                continue
            if "property" in member.labels or "ClassVar" in str(member.annotation):
                continue
            default, text = member.value, str(member.value or "")
            if re.match(r"(eqx|dataclasses)\.field\(|field\(", text):
                if "init=False" in text.replace(" ", ""):
                    continue
                given = {
                    a.name: a.value
                    for a in default.arguments  # pyright: ignore[reportAttributeAccessIssue]
                    if isinstance(a, griffe.ExprKeyword)
                }
                default = given.get("default", "..." if "default_factory" in given else None)
            kind = griffe.ParameterKind.positional_or_keyword
            found[name] = griffe.Parameter(
                name, annotation=member.annotation, kind=kind, default=default
            )
    return list(found.values())


class Flexjax(griffe.Extension):
    """Runs while mkdocstrings collects the package."""

    def __init__(self) -> None:
        self.public = set(json.loads(PLACES.read_text(encoding="utf-8")))

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        self.visit(pkg, set())

    def visit(self, thing: Any, seen: set[str]) -> None:
        if thing.is_alias or thing.path in seen:
            return
        seen.add(thing.path)
        if thing.docstring:
            thing.docstring.value = markdown(thing.docstring.value, self.public)
        if thing.is_class and "__init__" not in thing.members:
            self.add_init(thing)
        if thing.is_module or thing.is_class:
            for member in list(thing.members.values()):
                self.visit(member, seen)

    def add_init(self, cls: griffe.Class) -> None:
        """The constructor that Python makes of the fields; its source is that of the class."""
        kind = griffe.ParameterKind.positional_or_keyword
        given = fields(cls)
        if not given and any("Error" in str(base) for base in cls.bases):
            given = [griffe.Parameter("message", annotation="str", kind=kind)]
        if not given and any("Enum" in str(base) for base in cls.bases):
            given = [griffe.Parameter("value", annotation="int", kind=kind)]
        own = griffe.Parameter("self", kind=kind)
        init = griffe.Function("__init__", parameters=griffe.Parameters(own, *given))
        init.lineno, init.endlineno = cls.lineno, cls.endlineno
        cls.set_member("__init__", init)
