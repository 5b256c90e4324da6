"""Plug-in of pytest: runs selected tests under limits, and notes which blocks each test reaches."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

Bits = dict[str, int]


class TooLongError(BaseException):
    """A test uses more CPU time than its limit. No test catches it."""


class Selection:
    """Plug-in of pytest for one child.

    Parameters
    ----------
    tests : dict or None
        Limit of each test (s of CPU time) by its name, in the order of the run; None: all tests.
    limit_s : float
        Limit of all other tests (s of CPU time).
    reached : dict or None
        Set, by module, that the instrumented sources add their blocks to. None: this run makes no
        map.
    end : callable
        Ends a run without a map at the first test that exceeds its limit.
    clear_caches : callable
        Forgets the results that functions of the package and of the tests keep.
    """

    def __init__(
        self,
        tests: dict[str, float] | None,
        limit_s: float,
        reached: dict[str, set[int]] | None,
        end: Callable[[], None],
        clear_caches: Callable[[], None],
    ) -> None:
        self.tests = tests
        self.limit_s = limit_s
        self.reached = reached
        self.end = end
        self.clear_caches = clear_caches
        #: passed, seconds and reached blocks of each test
        self.outcomes: dict[str, dict[str, Any]] = {}
        #: first failed test
        self.failed: str | None = None
        #: test that runs
        self.current: str | None = None
        self._of_fixtures: dict[str, Bits] = {}
        self._of_files: dict[str, Bits] = {}

    def pytest_configure(self) -> None:
        """Give Hypothesis no deadline: a busy machine must not change a result."""
        settings.register_profile(
            "mutants",
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the selected tests, in their order."""
        if self.tests is not None:
            rank = {name: place for place, name in enumerate(self.tests)}
            selected = [item for item in items if item.nodeid in rank]
            items[:] = sorted(selected, key=lambda item: rank[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Count what the import of a file reaches for all its tests."""
        self._take()
        report = yield
        name = collector.nodeid.split("::")[0]
        self._of_files[name] = _both(self._take(), self._of_files.get(name, {}))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Count what a shared fixture reaches for all its tests."""
        if fixturedef.scope == "function":
            return (yield)
        of_test = self._take()
        result = yield
        name = fixturedef.argname
        self._of_fixtures[name] = _both(self._take(), self._of_fixtures.get(name, {}))
        self._put_back(of_test)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test under its limit of CPU time."""
        self.current = item.nodeid
        limit_s = (self.tests or {}).get(item.nodeid, self.limit_s)
        if self.reached is not None:
            # a kept result would hide which functions it needs
            self.clear_caches()
            self._take()
        begin = time.process_time()
        signal.signal(signal.SIGPROF, self._too_long)
        signal.setitimer(signal.ITIMER_PROF, limit_s, 1.0)
        try:
            result = yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        outcome = self.outcomes.setdefault(item.nodeid, {"passed": True})
        outcome["seconds"] = round(time.process_time() - begin, 4)
        if self.reached is not None:
            bits = _both(self._take(), self._of_files.get(item.nodeid.split("::")[0], {}))
            for name in getattr(item, "fixturenames", ()):
                bits = _both(bits, self._of_fixtures.get(name, {}))
            outcome["reached"] = {module: hex(blocks) for module, blocks in bits.items()}
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that fails or is skipped."""
        if report.outcome != "passed":
            self.outcomes.setdefault(report.nodeid, {})["passed"] = False
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def _too_long(self, number: int, frame: FrameType | None) -> None:
        if self.reached is None:
            self.end()
        raise TooLongError

    def _take(self) -> Bits:
        """Blocks reached since the last call: bits by module."""
        taken: Bits = {}
        for module, blocks in (self.reached or {}).items():
            if blocks:
                taken[module] = functools.reduce(lambda bits, block: bits | 1 << block, blocks, 0)
                blocks.clear()
        return taken

    def _put_back(self, bits: Bits) -> None:
        for module, blocks in bits.items():
            assert self.reached is not None
            numbers = range(blocks.bit_length())
            self.reached[module].update(number for number in numbers if blocks >> number & 1)


def _both(one: Bits, other: Bits) -> Bits:
    """Blocks of two records."""
    return {module: one.get(module, 0) | other.get(module, 0) for module in one | other}
