"""Fixtures every test may use."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from repro.base import paths

# Processes that tests start with a cache folder of their own use the compiled loops of all.
os.environ.setdefault("NUMBA_CACHE_DIR", str(paths.cache_dir()))

# A push is judged by the same examples each time. `make nightly` looks for new ones. On a busy
# machine an example may take any time.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile("same")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Return the off-line mirror of the public traces, or skip."""
    override = os.environ.get("REPRO_TRACE_MIRROR")
    beside = Path(__file__).resolve().parents[2] / "shared" / "traces" / "raw"
    folder = Path(override).expanduser() if override else beside
    if not folder.is_dir():
        pytest.skip("no public traces: set REPRO_TRACE_MIRROR or put them in ../shared/traces/raw")
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Scheduler of pytest-xdist that runs the tests of one group in one process.

    xdist 3.8 itself writes the groups into test ids, where pytest 9.2 does not keep them.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class FileGroups(LoadGroupScheduling):
        """Scheduling by the mark `xdist_group` of a test file."""

        def _split_scope(self, nodeid):
            return _group_of(config.rootpath / nodeid.split("::")[0]) or nodeid

    return FileGroups(config, log)


@functools.cache
def _group_of(file: Path) -> str:
    """Name of the group of a test file; empty if it has none."""
    mark = re.search(r'xdist_group\("(\w+)"\)', file.read_text(encoding="utf-8"))
    return mark[1] if mark else ""


def pytest_terminal_summary(terminalreporter):
    """End a run of the benches with every cost, and how busy the cluster was."""
    costs = sys.modules.get("costs")
    if costs is not None and costs.NOTED:
        terminalreporter.section("costs")
        for line in costs.lines():
            terminalreporter.write_line(line)
