"""Fixtures every test may use."""

from __future__ import annotations

import os
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


def pytest_terminal_summary(terminalreporter):
    """End a run of the benches with every cost, and how busy the cluster was."""
    costs = sys.modules.get("costs")
    if costs is not None and costs.NOTED:
        terminalreporter.section("costs")
        for line in costs.lines():
            terminalreporter.write_line(line)
