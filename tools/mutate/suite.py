"""Tests that judge a mutant: those that reach its statements, by a map that is measured once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.mutate import scope
from tools.mutate.blocks import IMPORT
from tools.mutate.operators import Mutant

#: Files whose tests run first. A child that imports few files finds most mutants.
_FIRST_FILES = 3


@dataclass(frozen=True)
class Test:
    """A test of the suite."""

    name: str
    #: CPU time, with compiled loops as Python (s)
    seconds: float
    #: reached blocks by module, as bits
    reached: dict[str, int] = field(repr=False, default_factory=dict)
    #: modules with mutants that its file imports
    imported: frozenset[str] = field(repr=False, default=frozenset())

    @property
    def file(self) -> str:
        """File of the test."""
        return self.name.split("::")[0]

    @property
    def limit_s(self) -> float:
        """Limit of CPU time with a mutant (s)."""
        return 5.0 * self.seconds + 3.0


@dataclass(frozen=True)
class Choice:
    """Tests that judge a mutant, in the order in which they run."""

    #: runs of pytest, one after another
    stages: tuple[tuple[Test, ...], ...]
    #: number of tests that reach the mutant and do not fit into the time
    left_out: int
    #: whether a test reaches the block of the mutant. If not, the tests of its module run, and for
    #: a statement that an import runs those of all files that import it.
    is_reached: bool

    @property
    def count(self) -> int:
        """Number of tests."""
        return sum(map(len, self.stages))


def choose(
    tests: Iterable[Test], mutant: Mutant, budget_s: float, excluded: Collection[str] = ()
) -> Choice:
    """Tests for a mutant: first those of the file named like its module, then the fastest.

    Parameters
    ----------
    tests : iterable of Test
        Tests with the blocks that they reach.
    mutant : Mutant
        The mutant.
    budget_s : float
        Sum of the CPU times of the tests without a mutant (s), at most.
    excluded : collection of str
        Names of tests that fail without a mutant.
    """
    module = scope.module_name(mutant.path)
    usable = [test for test in tests if test.name not in excluded]
    of_module = [test for test in usable if module in test.reached]
    reaching: list[Test] = []
    if mutant.block == IMPORT:
        of_module += [
            test for test in usable if module in test.imported and module not in test.reached
        ]
    else:
        reaching = [test for test in of_module if test.reached[module] >> mutant.block & 1]
    is_reached = bool(reaching)
    folder, stem = mutant.path.split("/")[-2:]
    stem = stem.removesuffix(".py").strip("_")

    def rank(test: Test) -> tuple[bool, bool, float, str]:
        is_namesake = f"/{folder}/" in test.file and stem in Path(test.file).stem
        is_first = is_namesake or test.file == mutant.path
        return not is_first, module not in test.reached, test.seconds, test.name

    candidates = sorted(reaching or of_module, key=rank)
    chosen: list[Test] = []
    spent_s = 0.0
    for test in candidates:
        if spent_s + test.seconds <= budget_s:
            spent_s += test.seconds
            chosen.append(test)
    first_files = list(dict.fromkeys(test.file for test in chosen))[:_FIRST_FILES]
    first = tuple(test for test in chosen if test.file in first_files)
    later = tuple(test for test in chosen if test.file not in first_files)
    stages = tuple(stage for stage in (first, later) if stage)
    return Choice(stages, len(candidates) - len(chosen), is_reached)


def read(lines: Iterable[dict[str, Any]]) -> tuple[list[Test], list[str]]:
    """Tests of the lines of a map, and the names of those that cannot judge mutants.

    A test cannot if it is skipped, fails with compiled loops as Python, or takes too long.
    """
    tests: list[Test] = []
    unused: list[str] = []
    for line in lines:
        for name, outcome in sorted(line["tests"].items()):
            if outcome.get("passed") and "seconds" in outcome:
                reached = {module: int(bits, 16) for module, bits in outcome["reached"].items()}
                imported = frozenset(line["imported"])
                tests.append(Test(name, outcome["seconds"], reached, imported))
            else:
                unused.append(name)
    return tests, unused


class Keys:
    """Hashes of what a result depends on, for a state of the checkout.

    Parameters
    ----------
    root : Path
        Checkout.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        #: the package, and the helpers of tests
        self.package = self._hash(["repro/**/*.py", "tests/**/conftest.py", "tests/**/[!t]*.py"])
        #: the same and all tests that may judge a mutant
        self.suite = short_hash(self.package + self._hash(scope.TESTS))

    def of_tests(self, name: str) -> str:
        """Hash of a file with tests and of everything it uses."""
        return short_hash(self.package + (self._root / name).read_text("utf-8"))

    def _hash(self, patterns: Iterable[str]) -> str:
        names = scope.matching(self._root, patterns)
        contents = [f"{name}\0{(self._root / name).read_text('utf-8')}" for name in names]
        return short_hash("\0".join(contents))


def short_hash(text: str) -> str:
    """Twelve digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
