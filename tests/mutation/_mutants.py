"""Faults of one expression each: a changed operator, sign, constant, comparison, index, transpose
or function."""

import ast
import dataclasses
from collections.abc import Iterator

_OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*"}
_COMPARISONS = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_FUNCTIONS = {"sin": "cos", "cos": "sin", "minimum": "maximum", "maximum": "minimum"}
_CALLS_OF_MESSAGES = ("warn", "RuntimeWarning", "ValueError", "format")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault: the text from ``start`` to ``stop`` (characters of the file) becomes ``new``."""

    file: str
    line: int
    column: int
    kind: str
    start: int
    stop: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        """The source with the fault."""
        if source[self.start : self.stop] != self.old:
            raise ValueError(f"{self.file}:{self.line}: the source is not the one it was made from")
        return source[: self.start] + self.new + source[self.stop :]

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where} {self.kind}: {_short(self.old)} -> {_short(self.new)}"


def mutants(file: str, source: str) -> list[Mutant]:
    """All faults of a source file, in the order of their places."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def place(line: int, column: int) -> int:  # columns of ast count bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = []
    for node in _expressions(ast.parse(source)):
        start = place(node.lineno, node.col_offset)
        stop = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
        text = lambda part: f"({ast.unparse(part)})"
        for kind, new in _faults(node, text):
            old = source[start:stop]
            found.append(
                Mutant(file, node.lineno, node.col_offset + 1, kind, start, stop, old, new)
            )
    return sorted(found, key=lambda m: (m.start, m.stop, m.kind, m.new))


def _faults(node: ast.expr, text) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.BinOp):
        if type(node.op) in _OPERATORS:
            sign = _OPERATORS[type(node.op)]
            yield "operator", f"({text(node.left)} {sign} {text(node.right)})"
        elif isinstance(node.op, ast.MatMult):
            yield "operator", f"({text(node.right)} @ {text(node.left)})"
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub | ast.Not):
            yield "sign", text(node.operand)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        if type(node.ops[0]) in _COMPARISONS:
            word = _COMPARISONS[type(node.ops[0])]
            yield "comparison", f"({text(node.left)} {word} {text(node.comparators[0])})"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield "comparison", "(" + word.join(text(part) for part in node.values) + ")"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            yield "constant", str(node.value + 1)
        elif isinstance(node.value, float):
            yield "constant", repr(2 * node.value if node.value else 1.0)
    elif isinstance(node, ast.Attribute):
        if node.attr in ("T", "mT"):
            yield "transpose", text(node.value)
        elif node.attr in _FUNCTIONS:
            yield "function", f"{ast.unparse(node.value)}.{_FUNCTIONS[node.attr]}"


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are computed: no annotations, decorators, messages or texts."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in _CALLS_OF_MESSAGES:
            return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.expr):
        yield node
    skipped = {"annotation", "returns", "decorator_list", "type_params", "keywords", "bases"}
    if isinstance(node, ast.Call):
        skipped = set()
    for name, value in ast.iter_fields(node):
        if name in skipped and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child)


def _short(text: str, letters: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else text[: letters - 3] + "..."
