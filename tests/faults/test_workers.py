"""Dask workers that are killed at random times: their figures begin again elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from batches import add_figures, check_whole, faults_of
from processes import generator

from repro.figures import remote

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


@pytest.fixture
def start(project):
    """Start dask commands, which end with the test."""
    pytest.importorskip("distributed", reason="needs the extra dask")
    started = []

    def command(*words):
        log = (project.root / f"dask{len(started)}.log").open("w")
        line = [sys.executable, "-m", "dask", *map(str, words)]
        started.append(subprocess.Popen(line, env=project.env, stdout=log, stderr=log))
        return started[-1]

    yield command
    for process in started:
        process.kill()
        process.wait()


def test_workers_killed_at_random_times(project, start, trials):
    """Kill one of two workers of a batch, and start another."""
    trials.fault, trials.run = "dask worker killed at a random time", "`repro run --backend dask`"
    add_figures(project)
    file = project.root / "scheduler.json"
    start("scheduler", "--scheduler-file", file, "--port", "0", "--no-dashboard")
    while not file.exists():
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    one = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    workers = [start(*one), start(*one)]
    words = ("run", "--all", "--force", "--backend", "dask", "--scheduler", address)
    random = generator("killed worker")
    duration = 0.0
    # The first batch, without a kill, shows how long one takes.
    for number in range(7):
        out = f"build/out{number}"
        started = time.monotonic()
        batch = project.start(*words, "--out", out)
        if number:
            time.sleep(random.uniform(0, duration))
            victim = workers.pop(random.integers(2))
            trials.times += 1
            trials.hit += batch.poll() is None
            victim.kill()
            victim.wait()
            workers.append(start(*one))
        said = "".join(batch.communicate(timeout=600))
        duration = time.monotonic() - started
        assert batch.returncode == 0, said
        check_whole(project, out)
        # A later session removes what killed workers have unpacked, after a week.
        faults = [name for name in faults_of(project, out) if f"/{remote.UNPACKED}/" not in name]
        assert [name for name in faults if name != "dask-scratch-space"] == []
        trials.same += number > 0
