"""Batches and sweeps that run at the same time with one cache, and with one folder of results."""

from __future__ import annotations

import signal
import time

import pytest
from batches import add_figures, check_whole, faults_of, run
from processes import fork, generator, unfinished
from works import figure, title

from repro.figures import saved, sweep
from repro.testing import small_trace


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.nightly)])
def test_sweeps_of_one_cache_of_which_some_are_killed(times, tmp_path, monkeypatch, trials):
    trials.fault, trials.run = "three runs on one cache, one killed", "three simulations"
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))
    random = generator("sweeps of one cache")
    names = ("srtf", "sf", "yarn-cs")
    cases = [sweep.Case(small_trace(), "1x4", name).resolved() for name in names]
    expected = [sweep._computed(case).jobs.to_csv() for case in cases]

    def work(number):
        started = time.perf_counter()
        tables = [sweep.outcome(case).jobs.to_csv() for case in cases]
        (tmp_path / f"seconds{number}").write_text(repr(time.perf_counter() - started))
        return tables != expected

    fork(lambda: work(0), tmp_path / "log").finish()
    duration = float((tmp_path / "seconds0").read_text())
    for number in range(times):
        monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / f"cache{number}"))
        children = [fork(lambda n=n: work(n), tmp_path / f"log{n}") for n in range(3)]
        trials.times += 1
        trials.hit += children[0].kill_after(random.uniform(0, duration)) == -signal.SIGKILL
        for child in children[1:]:
            child.finish()
        trials.same += not unfinished(tmp_path / f"cache{number}")
        said = "".join((tmp_path / f"log{n}").read_text() for n in range(3))
        assert said == ""


@pytest.mark.parametrize("times", [5, pytest.param(100, marks=pytest.mark.nightly)])
def test_writers_of_one_result_do_not_disturb_each_other(times, tmp_path, trials):
    """Each removes temporary files of killed writers, also those of the others."""
    trials.fault, trials.run = "two runs on one folder of results", title(figure)
    files = {f"x.{suffix}": suffix.encode() * 100_000 for suffix in ("svg", "csv")}
    sums = {name: saved.checksum(content) for name, content in files.items()}

    def work(number):
        for turn in range(5):
            result = {"id": "x", "files": sums, "turn": turn, "by": number}
            saved.remove_unfinished(tmp_path)
            saved.write_files(tmp_path, "x", files, result)

    for _ in range(times):
        children = [fork(lambda n=n: work(n), tmp_path / "log") for n in range(2)]
        for child in children:
            child.finish()
        trials.times += 1
        trials.hit += 1
        same = not saved.damaged(tmp_path, "x", saved.read_json(tmp_path / saved.RESULT))
        trials.same += same and not unfinished(tmp_path)
    assert trials.same == times


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("is_one_out", [False, True])
def test_batches_at_once(project, is_one_out, trials):
    """Two batches that begin at random times, with their own results or the same ones."""
    trials.fault = f"two batches on one {'folder of results' if is_one_out else 'cache'}"
    trials.run = "`repro run`"
    add_figures(project)
    random = generator(trials.fault)
    started = time.monotonic()
    run(project, "--force")
    duration = time.monotonic() - started
    for number in range(4):
        outs = [f"build/out{number}", f"build/{'out' if is_one_out else 'other'}{number}"]
        cache = {"REPRO_CACHE_DIR": str(project.root / f"cache{number}")}
        project.env |= cache
        batches = []
        for out in outs:
            batches.append(project.start("run", "--all", "-j", "2", "--force", "--out", out))
            time.sleep(random.uniform(0, duration / 2))
        trials.times += 1
        trials.hit += batches[0].poll() is None
        for batch in batches:
            said = "".join(batch.communicate(timeout=600))
            assert batch.returncode == 0 and "warning" not in said, said
        for out in outs:
            check_whole(project, out)
            assert faults_of(project, out) == []
        assert not unfinished(project.root / f"cache{number}")
        trials.same += 1
