"""A full disk and read-only folders: one line, files whole, the same bytes once there is room."""

from __future__ import annotations

import errno
import json
import os
import warnings
from dataclasses import asdict

import mounts
import pytest
from batches import UNDISTURBED, add_figures, check_whole, faults_of, run
from processes import contents, fork, generator, unfinished
from works import JOBS, cached, comparable, convert, figure, simulate, title, use_cache
from works import check_whole as check_work

from repro.base.errors import CacheWarning, ReproError

NO_SPACE = os.strerror(errno.ENOSPC)
READ_ONLY = os.strerror(errno.EROFS)
SIZE = 4 << 20


@pytest.fixture(autouse=True)
def needs_mounts():
    if reason := mounts.missing():
        pytest.skip(reason)


@pytest.fixture
def in_own_mounts(tmp_path, trials):
    """Run a test's trials in a process with mounts of its own, which takes over their numbers."""

    def run_there(work):
        def noted():
            mounts.own_mounts()
            work()
            (tmp_path / "trials.json").write_text(json.dumps(asdict(trials)))

        fork(noted, tmp_path / "log").finish()
        vars(trials).update(json.loads((tmp_path / "trials.json").read_text()))
        return (tmp_path / "log").read_text()

    return run_there


def fill(folder, free):
    """Fill a disk but for ``free`` bytes; return the file that does so."""
    filler = folder / ".filler"
    state = os.statvfs(folder)
    with filler.open("wb") as stream:
        stream.write(bytes(max(0, state.f_bavail * state.f_frsize - int(free))))
    return filler


def attempt(work, *arguments):
    """Whether a work was refused or warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return bool(work(*arguments)) or any(w.category is CacheWarning for w in caught)
        except ReproError as error:
            assert NO_SPACE in str(error) or READ_ONLY in str(error)
            return True


@pytest.mark.parametrize("times", [4, pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("work", [simulate, convert, figure, cached], ids=lambda w: w.__name__)
def test_full_disk(work, times, tmp_path, trials, monkeypatch, in_own_mounts):
    trials.fault, trials.run = "full disk", title(work)
    folder = tmp_path / "x" / "now"
    folder.mkdir(parents=True)
    (folder.parent / "jobs.csv").write_text(JOBS)
    use_cache(monkeypatch, work, folder, tmp_path)
    assert not work(folder, "new")
    new = comparable(work, folder)
    needed = sum(map(len, contents(folder).values()))
    random = generator(f"full disk of {work.__name__}")

    def all_trials():
        for number in range(times):
            mounts.mount_disk(folder, SIZE)
            (folder.parent / "jobs.csv").write_text(JOBS)
            work(folder, "old")
            old = comparable(work, folder)
            (folder.parent / "jobs.csv").write_text(JOBS)
            # the first disk has no room at all
            filler = fill(folder, random.uniform(0, needed) if number else 0)
            trials.times += 1
            trials.hit += attempt(work, folder, "new")
            check_work(work, folder, old, new)
            filler.unlink()
            assert not attempt(work, folder, "new")
            trials.same += comparable(work, folder) == new and not unfinished(folder)

    said = in_own_mounts(all_trials)
    assert trials.hit and trials.same == trials.times
    assert "Traceback" not in said
    if work in (simulate, convert):
        lines = [line for line in said.splitlines() if line.startswith("repro: ")]
        refusals = [line for line in lines if f"cannot be written ({NO_SPACE})" in line]
        assert len(refusals) == trials.hit


@pytest.mark.parametrize("work", [simulate, convert, figure], ids=lambda w: w.__name__)
def test_read_only_results(work, tmp_path, trials, monkeypatch, in_own_mounts):
    trials.fault, trials.run = "read-only folder of results", title(work)
    folder = tmp_path / "x" / "now"
    folder.mkdir(parents=True)
    (folder.parent / "jobs.csv").write_text(JOBS)
    use_cache(monkeypatch, work, folder, tmp_path)
    work(folder, "old")
    old = contents(folder)
    (folder.parent / "jobs.csv").write_text(JOBS)

    def trial():
        mounts.make_read_only(folder)
        trials.times += 1
        trials.hit += attempt(work, folder, "new")
        trials.same += contents(folder) == old

    said = in_own_mounts(trial)
    assert trials.hit == trials.same == 1
    if work is not figure:
        assert said.count("\n") == 1 and f"cannot be written ({READ_ONLY})" in said


@pytest.mark.parametrize("is_empty", [False, True])
def test_read_only_cache(is_empty, tmp_path, trials, monkeypatch, in_own_mounts):
    trials.fault = f"read-only cache, {'empty' if is_empty else 'with the result'}"
    trials.run = title(cached)
    folder = tmp_path / "x" / "now"
    (folder / "cache").mkdir(parents=True, mode=0o700)
    use_cache(monkeypatch, cached, tmp_path / "elsewhere", tmp_path)
    cached(folder, "new")
    expected = (folder.parent / "new").read_text()
    use_cache(monkeypatch, cached, folder, tmp_path)
    if not is_empty:
        cached(folder, "new")
    before = contents(folder)

    def trial():
        mounts.make_read_only(folder)
        trials.times += 1
        trials.hit += 1
        assert attempt(cached, folder, "new") == is_empty
        trials.same += contents(folder) == before

    in_own_mounts(trial)
    assert (folder.parent / "new").read_text() == expected


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["build/figures", "cache", "TMPDIR"])
def test_batch_on_a_full_disk(place, project, trials, in_own_mounts):
    """Results, cache or temporary files on a disk with room for a part of them."""
    trials.fault, trials.run = f"full disk of {place}", "`repro run`"
    add_figures(project)
    where = project.root.parent / "t" if place == "TMPDIR" else project.root / place
    where.mkdir(exist_ok=True, mode=0o700)
    random = generator(trials.fault)
    # An executed notebook with its picture is about as large as the results.
    example = project.root / ("cache" if place == "cache" else UNDISTURBED)
    needed = sum(map(len, contents(example).values()))

    def all_trials():
        for number in range(4):
            mounts.mount_disk(where, SIZE)
            filler = fill(where, random.uniform(0, needed) if number else 0)
            done = run(project, "--force")
            said = done.stdout + done.stderr
            print(f"exit code {done.returncode}\n{said}")
            trials.times += 1
            trials.hit += NO_SPACE in said
            assert "Traceback" not in said and "no worker could run it" not in said
            assert done.returncode in ((0,) if place == "cache" else (0, 1, 2)), said
            check_whole(project)
            filler.unlink()
            done = run(project)
            assert done.returncode == 0, done.stdout + done.stderr
            assert faults_of(project) == []
            trials.same += 1

    in_own_mounts(all_trials)
    assert trials.hit and trials.same == trials.times


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("is_empty", [False, True])
def test_batch_with_a_read_only_cache(is_empty, project, trials, in_own_mounts):
    trials.fault = f"read-only cache, {'empty' if is_empty else 'with the results'}"
    trials.run = "`repro run`"
    add_figures(project)
    cache = project.root / ("other" if is_empty else "cache")
    cache.mkdir(exist_ok=True, mode=0o700)
    before = contents(cache)

    def trial():
        mounts.make_read_only(cache)
        trials.times += 1
        trials.hit += 1
        done = run(project, "--force", REPRO_CACHE_DIR=str(cache))
        assert done.returncode == 0, done.stdout + done.stderr
        assert (READ_ONLY in done.stdout) == is_empty
        assert faults_of(project) == [] and contents(cache) == before
        trials.same += 1

    in_own_mounts(trial)
