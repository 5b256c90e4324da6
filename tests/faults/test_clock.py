"""A clock that is set back: nothing is taken for edited, and results are kept and found."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import pytest
from batches import add_figures, check_whole, faults_of, run
from processes import generator
from works import cached, title

from repro.base import release
from repro.base.errors import CacheWarning
from repro.figures import cache, remote, sweep
from repro.testing import small_trace

YEAR_S = 365 * 24 * 3600.0
#: Start-up file of Python that sets the clock of every process of a batch back, after a time.
SET_BACK = """
import time
real, monotonic = time.time, time.monotonic
def set_back():
    return real() - (0.0 if monotonic() < {at_s!r} else {by_s!r})
time.time = set_back
time.time_ns = lambda: int(set_back() * 1e9)
"""


@pytest.fixture
def years_ago(monkeypatch):
    """A process that began years before all files of this machine were written."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 50 * YEAR_S)
    monkeypatch.setattr(release, "STARTED", time.time())
    release._first_check.cache_clear()
    yield
    release._first_check.cache_clear()


def test_results_are_kept_although_all_sources_are_of_the_future(
    years_ago, tmp_path, monkeypatch, trials
):
    trials.fault, trials.run = "clock set back before the start", title(cached)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    case = sweep.Case(small_trace(), "1x4", "srtf").resolved()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        result = sweep.outcome(case)
        trials.times = trials.hit = 1
        assert len(list(tmp_path.rglob("*.pkl"))) == 1
        monkeypatch.setattr(sweep, "_computed", lambda case: pytest.fail("computed again"))
        trials.same += sweep.outcome(case).jobs.equals(result.jobs)


def test_a_dask_worker_takes_no_source_for_edited(years_ago, monkeypatch, tmp_path):
    session = remote.Session("repro-1", "0" * 64, cache.key(remote.release()))
    monkeypatch.setattr(remote, "unpacked", lambda digest, download: tmp_path)
    with remote.using_inputs(session) as folder:
        assert folder == tmp_path


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_batches_while_the_clock_is_set_back(project, folder, trials):
    """Set the clock of all processes back at random times of a batch."""
    trials.fault, trials.run = "clock set back at a random time", "`repro run`"
    add_figures(project)
    random = generator("clock set back")
    started = time.monotonic()
    run(project, "--force")
    duration = time.monotonic() - started
    (folder / "clock").mkdir()
    path = f"{folder / 'clock'}:{project.env['PYTHONPATH']}"
    for number in range(5):
        out = f"build/out{number}"
        at_s = time.monotonic() + random.uniform(0, duration)
        code = SET_BACK.format(at_s=at_s, by_s=random.uniform(60, YEAR_S))
        (folder / "clock" / "sitecustomize.py").write_text(code)
        shown = [sys.executable, "-c", "import time; print(time.time.__name__)"]
        env = {**project.env, "PYTHONPATH": path}
        done = subprocess.run(shown, env=env, capture_output=True, text=True, check=True)
        assert done.stdout == "set_back\n"
        done = run(project, "--force", "--out", out, PYTHONPATH=path)
        trials.times += 1
        trials.hit += time.monotonic() > at_s
        assert done.returncode == 0 and "warning" not in done.stdout, done.stdout + done.stderr
        check_whole(project, out)
        assert faults_of(project, out) == []
        trials.same += 1
        assert "2 of 2 figures are current" in run(project, "--out", out).stdout
