"""The simulation cache: what makes a key, what damage does, what is not cached."""

import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro.base import paths, release
from repro.base.errors import CacheWarning, ParamError
from repro.engine.simulate import simulate
from repro.figures import cache, sweep
from repro.model.cluster.spec import Cluster
from repro.model.policy import Order, make
from repro.model.records import Result
from repro.testing import small_trace


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))
    # An edit of the package during the tests is not what they are about.
    monkeypatch.setattr(cache, "edited_since_start", lambda files: None)
    return tmp_path / "cache"


def edit_sources(monkeypatch):
    """Let all sources have changed since this process began."""
    monkeypatch.setattr(cache, "edited_since_start", release.edited_since_start)
    monkeypatch.setattr(release, "STARTED", 0.0)


def counted(monkeypatch):
    calls = []

    def counting(*args, **kwargs):
        calls.append(args)
        return simulate(*args, **kwargs)

    monkeypatch.setattr(sweep, "simulate", counting)
    return calls


def run(trace, cluster, policy, rules="paper", **settings):
    """Return a simulation, computed now or remembered."""
    return sweep.outcome(sweep.Case(trace, cluster, policy, rules, settings=settings).resolved())


def test_the_same_run_is_simulated_once(monkeypatch):
    calls = counted(monkeypatch)
    first = run(small_trace(), "1x4", "srtf")
    second = run(small_trace(), Cluster.parse("1x4"), make("srtf"))
    assert len(calls) == 1
    assert first.jobs.equals(second.jobs) and first.intervals.equals(second.intervals)
    assert isinstance(second, Result) and second.summary() == first.summary()


@pytest.mark.parametrize(
    ("trace", "cluster", "policy", "settings"),
    [
        (small_trace().head(5), "1x4", "srtf", {}),
        (small_trace().assign(duration=lambda t: t.duration + 1e-9), "1x4", "srtf", {}),
        (small_trace(), "2x4", "srtf", {}),
        (small_trace(), "1x4", "srsf", {}),
        (small_trace(), "1x4", "srtf", {"interval": 5.0}),
        (small_trace(), "1x4", "srtf", {"rules": "tiresias"}),
        (small_trace(), "1x4", make("tiresias-l"), {}),
        (small_trace(), "1x4", make("tiresias-l", thresholds=(5.0,)), {}),
    ],
)
def test_whatever_differs_is_another_run(monkeypatch, trace, cluster, policy, settings):
    run(small_trace(), "1x4", "srtf")
    calls = counted(monkeypatch)
    run(trace, cluster, policy, **settings)
    assert len(calls) == 1


def test_other_sources_are_another_address(monkeypatch):
    run(small_trace(), "1x4", "srtf")
    calls = counted(monkeypatch)
    monkeypatch.setattr(cache, "source_hash", lambda: "0" * 64)
    run(small_trace(), "1x4", "srtf")
    assert len(calls) == 1


def test_any_damage_is_noticed_and_repaired(own_cache):
    good = run(small_trace(), "1x4", "srtf")
    (entry,) = own_cache.rglob("*.pkl")
    whole = entry.read_bytes()
    flipped = [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 211)
    ]
    for damaged in (b"", whole[: len(whole) // 2], b"<html>", *flipped):
        entry.write_bytes(damaged)
        with pytest.warns(CacheWarning, match="computed again") as caught:
            again = run(small_trace(), "1x4", "srtf")
        assert len(caught) == 1 and "\n" not in str(caught[0].message)
        assert again.jobs.equals(good.jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(small_trace(), "1x4", "srtf")


def test_a_policy_from_a_notebook_is_never_remembered(monkeypatch, own_cache):
    @dataclass(frozen=True)
    class Mine(Order):
        def key(self, view, job):
            return -view.gpus(job)

    def visitor(engine):
        yield engine.env.timeout(1)

    calls = counted(monkeypatch)
    for _ in range(2):
        run(small_trace(), "1x4", Mine())
    run(small_trace(), "1x4", "srtf", processes=[visitor])
    assert len(calls) == 3
    assert not list(own_cache.rglob("*.pkl"))


def test_keys_tell_values_apart():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    values = [
        1,
        1.0,
        True,
        "1",
        None,
        b"1",
        [1],
        (1,),
        {1},
        {"a": 1},
        {"a": 2},
        {"b": 1},
        [[1], 2],
        [1, [2]],
        ["ab", "c"],
        ["a", "bc"],
        np.arange(3),
        np.arange(3.0),
        np.arange(4),
        np.array([[0, 1, 2]]),
        np.float64(1),
        frame,
        frame + 1,
        frame.rename(columns={"a": "b"}),
        frame["a"],
        float("nan"),
        float("inf"),
        Cluster.parse("1x4"),
        Cluster.parse("2x2"),
    ]
    keys = [cache.key(value) for value in values]
    assert len(set(keys)) == len(values)
    assert keys == [cache.key(value) for value in values]
    objects = pd.Series([[1], [2]])
    for unclear in (object(), lambda: 1, iter([]), [].append, np.array([object()]), objects):
        with pytest.raises(cache.NotCacheable):
            cache.key(unclear)


def test_a_bound_method_counts_with_its_object():
    methods = [
        sweep.MeasuredJobs(0).__call__,
        sweep.MeasuredJobs(5).__call__,
        make("tiresias-l").session,
        make("tiresias-l", thresholds=(5.0,)).session,
        Cluster.parse,
        sweep.keep_all_records,
    ]
    keys = [cache.key(method) for method in methods]
    assert len(set(keys)) == len(methods)
    assert cache.key(sweep.MeasuredJobs(5).__call__) == keys[1]

    class Mine:
        __module__ = "repro.mine"
        __qualname__ = "Mine"

        def measure(self, case):
            pass

    Mine.measure.__qualname__ = "Mine.measure"
    Mine.measure.__module__ = "repro.mine"
    with pytest.raises(cache.NotCacheable, match="a Mine has no content"):
        cache.key(Mine().measure)


def test_large_arrays_count_in_full():
    one = np.zeros(100_000)
    other = one.copy()
    other[50_000] = 1
    assert cache.key(one) != cache.key(other)
    assert cache.key(make("tiresias-g", history=tuple(one + 1))) != cache.key(
        make("tiresias-g", history=tuple(other + 1))
    )


@pytest.mark.slow
def test_processes_that_want_the_same_run_simulate_it_once(tmp_path):
    log = tmp_path / "log"
    code = f"""
import time
from repro.figures import cache, sweep
from repro.testing import small_trace
cache.edited_since_start = lambda files: None
real = sweep.simulate
def slow(*args, **kwargs):
    with open({str(log)!r}, "a") as stream:
        stream.write("simulated\\n")
    time.sleep(1)
    return real(*args, **kwargs)
sweep.simulate = slow
sweep.outcome(sweep.Case(small_trace(), "1x4", "srtf").resolved())
"""
    batch = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [one.wait(300) for one in batch] == [0, 0, 0]
    assert log.read_text().splitlines() == ["simulated"]


@pytest.mark.timeout(20)
def test_a_result_computed_on_the_way_to_another_waits_for_no_lock():
    """Both would share one: their addresses begin alike."""
    inner = lambda: cache.remembered("abc2", lambda: {"value": 1})  # noqa: E731
    assert cache.remembered("abc1", inner) == {"value": 1}
    assert cache.recall("abc1") == cache.recall("abc2") == {"value": 1}


def test_sources_that_changed_since_the_process_began_are_not_those_that_run(
    monkeypatch, own_cache
):
    """A kernel that is open while a file is edited would file old numbers under the new sources."""
    edit_sources(monkeypatch)
    for _ in range(2):
        with pytest.warns(CacheWarning, match=r"\.py changed since this process began") as told:
            result = run(small_trace(), "1x4", "srtf")
        assert len(told) == 1 and result.summary()["n_finished"] == 6
    assert not list(own_cache.rglob("*.pkl"))


def test_a_source_that_changes_during_the_run_keeps_its_result_from_being_filed(
    monkeypatch, own_cache
):
    first = run(small_trace(), "1x4", "srtf")

    def edited_meanwhile():
        edit_sources(monkeypatch)
        return first

    with pytest.warns(CacheWarning, match="changed since this process began"):
        assert cache.remembered("f" * 64, edited_meanwhile) is first
    assert len(list(own_cache.rglob("*.pkl"))) == 1


def folders(own_cache):
    """The cache folder and those below that hold all else."""
    simulations = own_cache / "simulations"
    return [own_cache, simulations, *(one for one in simulations.iterdir())]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_folder_others_can_write_to_is_refused(own_cache, monkeypatch, which, mode):
    run(small_trace(), "1x4", "srtf")
    folder = folders(own_cache)[which]
    folder.chmod(mode)
    calls = counted(monkeypatch)
    with pytest.raises(ParamError) as caught:
        run(small_trace(), "1x4", "srtf")
    line = str(caught.value)
    assert f"cache folder {folder}:" in line and "\n" not in line
    assert f"`chmod -R go-w {own_cache}`" in line and "set REPRO_CACHE_DIR" in line
    assert not calls
    subprocess.run(["chmod", "-R", "go-w", str(own_cache)], check=True)
    run(small_trace(), "1x4", "srtf")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_a_batch_does_not_begin_with_a_folder_others_can_write_to(project):
    project.add("tiresias/fig01_one")
    (project.root / "cache").mkdir()
    (project.root / "cache").chmod(0o777)
    done = project.cli("run", "--all", code=2)
    (line,) = done.stderr.splitlines()
    assert "others can write to it" in line and "set REPRO_CACHE_DIR" in line
    assert not project.folder("tiresias/fig01_one").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_a_folder_of_another_user_is_refused(own_cache, monkeypatch):
    run(small_trace(), "1x4", "srtf")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    own_cache.chmod(0o755)
    if own_cache.stat().st_uid == 0:  # root's are trusted, so give it to a third
        os.chown(own_cache, 4321, -1)
    with pytest.raises(ParamError, match=r"belongs to user .*; set REPRO_CACHE_DIR"):
        run(small_trace(), "1x4", "srtf")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_new_folders_are_private_whatever_the_umask(own_cache):
    before = os.umask(0)
    try:
        run(small_trace(), "1x4", "srtf")
    finally:
        os.umask(before)
    assert {folder.stat().st_mode & 0o777 for folder in folders(own_cache)} == {0o700}


def test_without_a_cache_folder_the_simulation_still_runs(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(CacheWarning, match="set REPRO_CACHE_DIR"):
        result = run(small_trace(), "1x4", "srtf")
    assert result.summary()["n_finished"] == 6


ROOM = """
set -e
mount -t tmpfs -o size=256k none {folder}
export REPRO_CACHE_DIR={folder}/cache
mkdir -m 700 $REPRO_CACHE_DIR
{python} -c '
from pathlib import Path
from repro.figures import cache
(Path("{folder}/cache/simulations") / cache.source_hash()[:16] / "locks").mkdir(parents=True)
'
dd if=/dev/zero of={folder}/filler bs=4k 2>/dev/null || true
{python} -c '
from repro.figures import cache, sweep
from repro.testing import small_trace
cache.edited_since_start = lambda files: None
case = sweep.Case(small_trace(), "1x4", "srtf")
print(sweep.outcome(case.resolved()).summary()["n_finished"])
'
find {folder}/cache -name '*.pkl*'
"""


@pytest.mark.slow
def test_on_a_disk_that_is_really_full(tmp_path):
    """A small file system of its own, seen by one process only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    alone = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no mounts of one's own here")
    code = ROOM.format(folder=folder, python=sys.executable)
    done = subprocess.run([*alone, code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr
    assert done.stderr.count("Warning") == 1 and "No space left on device" in done.stderr
    assert "damaged" not in done.stderr


def test_a_simulation_is_filed_under_the_versions_it_was_made_with(monkeypatch):
    results = [simulate(small_trace(), "1x4", name) for name in ("srtf", "sf")]
    assert len(cache.remembered("one", lambda: results[0]).jobs) == 6
    monkeypatch.setattr(cache, "versions", lambda: {"numpy": "99"})
    again = cache.remembered("one", lambda: results[1])
    assert again.meta["policy"] == "sf"


def test_code_that_may_name_a_table_is_read_once(monkeypatch):
    first = cache.simulated_tables_hash()
    monkeypatch.setattr(cache, "_sources", list)
    assert cache.simulated_tables_hash() == first


def test_published_values_make_no_simulation_old(tmp_path, monkeypatch):
    read = tmp_path / "muri_profiles.csv"
    published = tmp_path / "only_published.csv"
    for path in (read, published):
        path.write_text("a\n1\n")
    monkeypatch.setattr(paths, "params_dir", lambda: tmp_path)
    before = cache.simulated_tables_hash()
    every = cache.tables_hash()
    published.write_text("a\n2\n")
    assert cache.simulated_tables_hash() == before
    assert cache.tables_hash() != every
    reader = tmp_path / "reader.py"
    reader.write_text('TABLE = "only_published.csv"\n')
    assert cache.simulated_tables_hash([reader]) != before
    read.write_text("a\n2\n")
    assert cache.simulated_tables_hash() != before
