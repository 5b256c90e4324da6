"""Blocks of statements that run together, and a source that notes which blocks ran."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

#: Block of statements that an import runs: no test reaches them.
IMPORT = -1
#: Name in an instrumented module of the function that notes a block.
NOTE = "__note_block__"
_COMPOUND = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match, ast.AsyncFor, ast.AsyncWith)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def block_of_statements(tree: ast.Module) -> dict[ast.stmt, int]:
    """Number of the block of each statement of a module.

    A block begins with the body of a function or of a branch, and behind each compound statement,
    because that may leave the function. Statements that an import runs are in block `IMPORT`.
    """
    blocks: dict[ast.stmt, int] = {}
    _number(tree.body, blocks, inside=False, next_block=iter(range(1_000_000)).__next__)
    return blocks


def instrumented(source: str, path: str) -> ast.Module:
    """Tree of a source that calls `NOTE` with the number of each block that it enters."""
    tree = ast.parse(source, path)
    blocks = block_of_statements(tree)
    _insert(tree, blocks)
    return ast.fix_missing_locations(tree)


def bodies(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Lists of statements inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(statement, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _number(
    body: list[ast.stmt],
    blocks: dict[ast.stmt, int],
    *,
    inside: bool,
    next_block: Callable[[], int],
) -> None:
    """Number the statements of a body and of the bodies in it."""
    current = next_block() if inside else IMPORT
    for statement in body:
        blocks[statement] = current
        if isinstance(statement, _FUNCTIONS):
            _number(statement.body, blocks, inside=True, next_block=next_block)
        elif isinstance(statement, ast.ClassDef):
            _number(statement.body, blocks, inside=False, next_block=next_block)
        elif isinstance(statement, _COMPOUND):
            for inner in bodies(statement):
                _number(inner, blocks, inside=inside, next_block=next_block)
            if inside:
                current = next_block()


def _insert(node: ast.AST, blocks: dict[ast.stmt, int]) -> None:
    """Insert a call of `NOTE` before the first statement of each block."""
    for body in bodies(node):
        for statement in list(body):
            _insert(statement, blocks)
        noted: list[ast.stmt] = []
        before = None
        for place, statement in enumerate(body):
            block = blocks[statement]
            is_docstring = place == 0 and _is_docstring(statement) and isinstance(node, _FUNCTIONS)
            if block not in (IMPORT, before) and not is_docstring:
                call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(block)], [])
                noted.append(ast.copy_location(ast.Expr(call), statement))
                before = block
            noted.append(statement)
        body[:] = noted


def _is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a text, as docstrings are."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
