"""Files whose mutants are judged, and files whose tests judge them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: Modules with mutants.
SOURCES = (
    "repro/engine/**/*.py",
    "repro/policies/**/*.py",
    "repro/placement/*.py",
    "repro/figures/claims.py",
    "repro/figures/tolerance.py",
    "repro/figures/points.py",
    "repro/model/metrics.py",
    "repro/model/records.py",
)
#: Files with tests: the fast suite, the doctests of the modules with mutants, and no others.
TESTS = (
    "tests/unit/comparison/test_*.py",
    "tests/unit/engine/**/test_*.py",
    "tests/unit/figures/test_*.py",
    "tests/unit/model/test_*.py",
    "tests/unit/papers/**/test_*.py",
    "tests/unit/perf/test_*.py",
    "tests/unit/placement/test_*.py",
    "tests/unit/policies/**/test_*.py",
    "tests/conformance/test_*.py",
    "tests/golden/test_*.py",
)


def matching(root: Path, patterns: Iterable[str]) -> list[str]:
    """Files of a folder that match any of the patterns, by name, relative to the folder."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(root).as_posix() for path in found)


def module_name(path: str) -> str:
    """Name of the module of a file."""
    return path.removesuffix(".py").replace("/", ".")


def modules(root: Path) -> dict[str, str]:
    """File of each module with mutants, by module name."""
    files = [name for name in matching(root, SOURCES) if not name.endswith("__init__.py")]
    return {module_name(name): name for name in files}


def test_files(root: Path, patterns: Iterable[str] = TESTS) -> list[str]:
    """Files with tests, also the modules with mutants whose docstrings have examples."""
    sources = {name: (root / name).read_text("utf-8") for name in modules(root).values()}
    doctests = [name for name, source in sources.items() if ">>> " in source]
    return [*matching(root, patterns), *doctests]
