"""Kill -9 before every change of a file, and in the middle of writes: files are whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from processes import (
    contents,
    count_changes,
    fork,
    generator,
    kill_before_change,
    kill_in_write,
    unfinished,
)
from works import JOBS, WORKS, cached, check_whole, comparable, figure, simulate, title, use_cache

from tools.mutate import run as mutate

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.timeout(3600),
]


@pytest.mark.parametrize("most", [3, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_killed_before_a_change_of_a_file(work, most, tmp_path, trials, monkeypatch):
    """Kill a run before changes of files, then run it again, on top of an older result."""
    trials.fault = "kill -9 before a change of a file"
    trials.run = title(work)
    top = tmp_path / "x"
    folder = top / "now"
    log = tmp_path / "log"
    folder.mkdir(parents=True)
    (top / "jobs.csv").write_text(JOBS)
    use_cache(monkeypatch, work, folder, tmp_path)
    # In this process, so that the forked ones find all modules imported.
    assert not work(folder, "old")
    shutil.copytree(top, tmp_path / "before")
    old = comparable(work, folder)
    (top / "jobs.csv").write_text(JOBS)
    total = count_changes(lambda: work(folder, "new"), folder, tmp_path / "count")
    new = comparable(work, folder)
    assert total and (new != old or work is cached)
    points = range(total)
    if most < total:
        points = generator(work.__name__).choice(total, most, replace=False)
    for number in points:
        shutil.rmtree(top)
        shutil.copytree(tmp_path / "before", top)
        (top / "jobs.csv").write_text(JOBS)

        def killed(number=number):
            kill_before_change(number, folder)
            work(folder, "new")

        trials.times += 1
        trials.hit += fork(killed, log).wait() == -signal.SIGKILL
        check_whole(work, folder, old, new)
        fork(lambda: work(folder, "new"), log).finish()
        trials.same += comparable(work, folder) == new and not unfinished(folder)
    assert trials.hit == trials.times == trials.same


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("work", [simulate, figure, cached], ids=lambda work: work.__name__)
def test_killed_in_a_write(work, times, tmp_path, trials, monkeypatch):
    """Kill a run in the middle of writing a file."""
    trials.fault = "kill in the middle of a write"
    trials.run = title(work)
    folder = tmp_path / "x" / "now"
    log = tmp_path / "log"
    folder.mkdir(parents=True)
    (folder.parent / "jobs.csv").write_text(JOBS)
    use_cache(monkeypatch, work, folder, tmp_path)
    assert not work(folder, "old")
    old = comparable(work, folder)
    shutil.copytree(folder, tmp_path / "before")
    fork(lambda: work(folder, "new"), log).finish()
    new = comparable(work, folder)
    files = contents(folder)
    largest = max(len(content) for name, content in files.items() if files != old)
    for size in generator(work.__name__, 1).integers(largest, size=times):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)

        def killed(size=int(size)):
            kill_in_write(size)
            work(folder, "new")

        trials.times += 1
        trials.hit += fork(killed, Path(os.devnull)).wait() == -signal.SIGXFSZ
        check_whole(work, folder, old, new)
        fork(lambda: work(folder, "new"), log).finish()
        trials.same += comparable(work, folder) == new and not unfinished(folder)
    assert trials.hit and trials.times == trials.same


def test_a_line_that_was_cut_off_costs_no_other_line(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({"id": 0}) + "\n" + '{"id": 1')
    mutate._append(path, {"id": 2})
    assert [line["id"] for line in mutate.read_lines(path)] == [0, 2]
