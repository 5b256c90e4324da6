"""Limits that docs/architecture.md names: docstrings, functions, layers of packages, imports."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "repro"
#: What else is imported where it is used: numba's own house, and papermill, which takes 2 s.
SLOW = {"repro.base.compiled.sources", "repro.batch.execute.run"}


@pytest.fixture(scope="module")
def architecture():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("architecture")


def test_every_package_has_a_floor(architecture):
    named = {name for layer in architecture.package_layers() for name in layer}
    packages = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    assert packages - named <= {"__init__", "__init__.pyi", "__pycache__", "py.typed"}


def test_imports_inside_functions_are_of_compiled_loops_only():
    inside = sorted(
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path in PACKAGE.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for name in imported(node)
        if name.startswith("repro") and name not in SLOW and not is_compiled(name)
    )
    assert inside == []


def imported(node):
    """Yield the modules, or names in modules, that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{one.name}" for one in node.names)


def is_compiled(name):
    """Tell whether a module, or a name in it, is of ours and compiles loops or imports ones."""
    for module in (name, name.rpartition(".")[0]):
        path = ROOT / f"{module.replace('.', '/')}.py"
        if module.startswith("repro.") and path.is_file():
            names = [one for node in ast.parse(path.read_text()).body for one in imported(node)]
            return "repro.base.compiled.njit" in names or any(map(is_compiled, names))
    return False
