"""Mutants of a source file: each replaces one stretch of the text, and nothing else moves."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tools.mutate.blocks import IMPORT, block_of_statements

#: Methods whose text nobody computes with.
_TEXT_METHODS = {"__repr__", "__str__", "_repr_html_"}
#: Calls whose arguments are types or texts for people.
_IGNORED_CALLS = {"TypeVar", "NewType", "ParamSpec", "warn"}
#: Keywords without effect on results: checks of equal length, encodings, the line a warning names.
_IGNORED_KEYWORDS = {"strict", "encoding", "stacklevel", "category"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_SWAPS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}
#: Operands that only ``+`` and ``|`` accept: another operator fails at once.
_SEQUENCES = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.DictComp, ast.Set)
_COMPARISON = re.compile(r"is\s+not\b|not\s+in\b|<=|>=|==|!=|<|>|\bis\b|\bin\b")
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True)
class Mutant:
    """A source file with one fault."""

    #: file, relative to the checkout
    path: str
    #: qualified name of the function; empty at the level of the module
    function: str
    operator: str
    #: line of the replaced text, from 1
    line: int
    #: positions in the source of the first replaced character and of the one behind the last
    start: int
    end: int
    replacement: str
    #: block of statements that a test must reach; `IMPORT` if an import runs it
    block: int
    #: name of the mutant, which stays when other lines of the file change
    id: str = ""

    def apply(self, source: str) -> str:
        """Source with the fault."""
        return source[: self.start] + self.replacement + source[self.end :]

    def diff(self, source: str) -> tuple[str, str]:
        """Lines with the fault, before and after; several lines are joined by a space."""
        first = source.rfind("\n", 0, self.start) + 1
        last = source.find("\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first : self.start] + self.replacement + source[self.end : last]
        return _joined(source[first:last]), _joined(after)


def _joined(lines: str) -> str:
    return " ".join(lines.split())


def mutants(source: str, path: str) -> list[Mutant]:
    """Mutants of a source file, in the order of the text; `compiles` says which are of use."""
    tree = ast.parse(source, path)
    found = _Finder(source, path, tree).search(tree)
    different: dict[tuple[int, int, str], Mutant] = {}
    repeats: Counter[tuple[str, ...]] = Counter()
    for mutant in sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.operator)):
        what = (path, mutant.function, mutant.operator, *mutant.diff(source))
        repeats[what] += 1
        digest = hashlib.sha256("\0".join((*what, str(repeats[what]))).encode()).hexdigest()
        place = (mutant.start, mutant.end, mutant.replacement)
        different.setdefault(place, replace(mutant, id=digest[:10]))
    return list(different.values())


def compiles(mutant: Mutant, source: str) -> bool:
    """Whether a mutant is valid Python and means something else than the source."""
    try:
        tree = ast.parse(mutant.apply(source))
        compile(tree, mutant.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return ast.dump(tree) != ast.dump(ast.parse(source))


class _Finder:
    """Search of a tree for places to mutate."""

    def __init__(self, source: str, path: str, tree: ast.Module) -> None:
        self.source = source
        self.path = path
        self.blocks = block_of_statements(tree)
        self.functions: list[str] = []
        self.block = IMPORT
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._lines = source.splitlines(keepends=True)

    # positions -----------------------------------------------------------------------------------

    def _position(self, line: int, column: int) -> int:
        """Position in the text; the columns of Python's trees count bytes."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column

    def start(self, node: ast.AST) -> int:
        return self._position(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self._position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)]

    def mutant(self, operator: str, start: int, end: int, replacement: str) -> Mutant:
        line = self.source.count("\n", 0, start) + 1
        function = ".".join(self.functions)
        return Mutant(self.path, function, operator, line, start, end, replacement, self.block)

    def token(
        self, operator: str, left: ast.AST, right: ast.AST, old: str | re.Pattern[str], new: str
    ) -> Iterator[Mutant]:
        """Replace the operator between two operands."""
        start = self.end(left)
        gap = self.source[start : self.start(right)]
        gap = _COMMENT.sub(lambda comment: " " * len(comment[0]), gap)
        pattern = old if isinstance(old, re.Pattern) else re.compile(re.escape(old))
        if match := pattern.search(gap):
            yield self.mutant(operator, start + match.start(), start + match.end(), new)

    # search --------------------------------------------------------------------------------------

    def search(self, node: ast.AST) -> Iterator[Mutant]:
        """Mutants of a node and of what is in it."""
        if isinstance(node, ast.stmt):
            yield from self.statement(node)
        elif isinstance(node, ast.JoinedStr):
            # texts for people
            return
        elif isinstance(node, ast.arguments):
            for default in (*node.defaults, *filter(None, node.kw_defaults)):
                yield from self.search(default)
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        else:
            yield from self.expression(node)
            yield from self.children(node)

    def children(self, node: ast.AST) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            yield from self.search(child)

    def statement(self, node: ast.stmt) -> Iterator[Mutant]:
        """Mutants of a statement."""
        outer = self.block
        self.block = self.blocks.get(node, IMPORT)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from self.definition(node)
        elif not _is_ignored(node):
            yield from self.dropped(node)
            if isinstance(node, ast.Return) and node.value is not None:
                yield from self.returned(node.value)
            if isinstance(node, ast.If | ast.While):
                yield from self.negated(node.test)
            if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
                old, new = _ARITHMETIC[type(node.op)]
                yield from self.token("arithmetic", node.target, node.value, f"{old}=", f"{new}=")
            if not isinstance(node, ast.Raise):
                for name, value in ast.iter_fields(node):
                    if name != "annotation":
                        for child in value if isinstance(value, list) else [value]:
                            if isinstance(child, ast.AST):
                                yield from self.search(child)
        self.block = outer

    def definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> Iterator[Mutant]:
        """Mutants of a function or class: of its defaults and its body."""
        if node.name in _TEXT_METHODS:
            return
        is_class = isinstance(node, ast.ClassDef)
        if not is_class and _makes_error(node.returns):
            return
        self.functions.append(node.name)
        if not is_class:
            yield from self.search(node.args)
        for statement in node.body:
            yield from self.search(statement)
        self.functions.pop()

    def dropped(self, node: ast.stmt) -> Iterator[Mutant]:
        """Leave out a statement whose absence is not an error of names."""
        targets = node.targets if isinstance(node, ast.Assign) else []
        stores = [isinstance(target, ast.Attribute | ast.Subscript) for target in targets]
        drops = (
            isinstance(node, ast.AugAssign | ast.Delete | ast.Break | ast.Continue | ast.Raise)
            or (isinstance(node, ast.Return) and node.value is None)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
            or (bool(stores) and all(stores))
        )
        if drops and self.block != IMPORT:
            yield self.mutant("dropped statement", self.start(node), self.end(node), "pass")

    def returned(self, value: ast.expr) -> Iterator[Mutant]:
        """Return something else."""
        start, end = self.start(value), self.end(value)
        if isinstance(value, ast.Compare | ast.BoolOp):
            yield self.mutant("return value", start, end, f"not ({self.text(value)})")
        elif not isinstance(value, ast.Constant):
            yield self.mutant("return value", start, end, "None")

    def negated(self, test: ast.expr) -> Iterator[Mutant]:
        """Negate a condition whose operator alone does not already do so."""
        is_negation = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        equality = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
        is_equality = (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], equality)
        )
        if not (is_negation or is_equality or isinstance(test, ast.Constant | ast.NamedExpr)):
            text = f"not ({self.text(test)})"
            yield self.mutant("negated condition", self.start(test), self.end(test), text)

    def call(self, node: ast.Call) -> Iterator[Mutant]:
        """Mutants of a call: another function, one keyword less, and those of the arguments."""
        name_node = node.func
        name = getattr(name_node, "attr", getattr(name_node, "id", ""))
        if name in _IGNORED_CALLS or name.endswith(("Error", "Warning")):
            return
        end = self.end(name_node)
        if name in _SWAPS:
            yield self.mutant("swapped function", end - len(name), end, _SWAPS[name])
        keywords = [kw for kw in node.keywords if kw.arg and kw.arg not in _IGNORED_KEYWORDS]
        for keyword in keywords:
            start, end = self.start(keyword), self.end(keyword)
            comma = re.compile(r"\s*,\s*").match(self.source, end)
            yield self.mutant("removed keyword", start, comma.end() if comma else end, "")
        yield from self.search(name_node)
        arguments = node.args[1:] if name == "cast" else node.args
        values = [kw.value for kw in node.keywords if kw.arg not in _IGNORED_KEYWORDS]
        for argument in (*arguments, *values):
            yield from self.search(argument)

    def expression(self, node: ast.AST) -> Iterator[Mutant]:
        """Mutants of an expression itself."""
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
                new = _COMPARISONS[type(op)]
                yield from self.token("comparison", left, right, _COMPARISON, new)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            pattern = re.compile(rf"\b{old}\b")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self.token("boolean", left, right, pattern, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            operands = [node.left, node.right]
            if not any(isinstance(item, _SEQUENCES) or _is_text(item) for item in operands):
                old, new = _ARITHMETIC[type(node.op)]
                yield from self.token("arithmetic", node.left, node.right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            kind = "negated condition" if isinstance(node.op, ast.Not) else "arithmetic"
            start, end = self.start(node), self.end(node)
            yield self.mutant(kind, start, end, f"({self.text(node.operand)})")
        elif isinstance(node, ast.IfExp):
            yield from self.negated(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from self.negated(test)
        elif isinstance(node, ast.Constant):
            yield from self.constant(node)

    def constant(self, node: ast.Constant) -> Iterator[Mutant]:
        """Other truth value, or the number plus and minus one."""
        value = node.value
        start, end = self.start(node), self.end(node)
        if isinstance(value, bool):
            yield self.mutant("constant", start, end, repr(not value))
        elif isinstance(value, int | float):
            for other in (value + 1, value - 1):
                # in brackets, because ** binds more tightly than the sign
                text = repr(other) if other >= 0 else f"({other!r})"
                yield self.mutant("constant", start, end, text)


def _is_ignored(node: ast.stmt) -> bool:
    """Whether a statement cannot change a result: imports, texts, checks of types, assertions."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return getattr(node.value.func, "attr", "") == "warn"
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )


def _makes_error(returns: ast.expr | None) -> bool:
    """Whether a function only makes or raises an error, so that its contents are a text."""
    name = getattr(returns, "attr", getattr(returns, "id", ""))
    return name == "NoReturn" or name.endswith("Error")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
