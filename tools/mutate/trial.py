"""One mutant, looked at: its difference, and any tests on it as everybody runs them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.mutate import operators, scope
from tools.mutate.copies import copy_checkout, environment


def run(root: Path, name: str, words: Sequence[str]) -> int:
    """Print the difference of a mutant, and run pytest on a copy that has it.

    Loops are compiled, and tests of the nightly suite may be named: this shows whether they find
    the mutant.
    """
    for path in scope.modules(root).values():
        source = (root / path).read_text("utf-8")
        for mutant in operators.mutants(source, path):
            if mutant.id == name:
                old, new = mutant.diff(source)
                print(f"{path}:{mutant.line} {mutant.function}\n- {old}\n+ {new}", flush=True)
                return _tests(root, mutant.path, mutant.apply(source), words) if words else 0
    print(f"no mutant {name} in this state of the source", file=sys.stderr)
    return 2


def _tests(root: Path, path: str, source: str, words: Sequence[str]) -> int:
    """Status of pytest on a copy with one file replaced."""
    with tempfile.TemporaryDirectory(prefix="repro-mutate-") as folder:
        copy = Path(folder) / "copy"
        copy_checkout(root, copy)
        (copy / path).write_text(source, encoding="utf-8")
        settings = environment(copy) | {"PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", *words]
        return subprocess.run(command, cwd=copy, env=settings, check=False).returncode
