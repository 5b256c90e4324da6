"""Kill -9 of batches at random times: the same command goes on, and gives the same bytes."""

from __future__ import annotations

import contextlib
import time

import psutil
import pytest
from batches import add_figures, check_whole, faults_of, run
from processes import generator

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    ("target", "times"),
    [
        ("batch", 20),
        ("process", 10),
    ],
)
def test_batch_killed_at_random_times(project, target, times, trials):
    """Kill the batch itself, or one of the processes that it has started."""
    trials.fault = "kill -9 at a random time"
    trials.run = "`repro run`" if target == "batch" else "a kernel of `repro run`"
    add_figures(project)
    random = generator(f"kill of a {target}")
    started = time.monotonic()
    run(project, "--force")
    duration = time.monotonic() - started
    for _ in range(times):
        batch = project.start("run", "--all", "-j", "2", "--force")
        time.sleep(random.uniform(0, duration))
        trials.times += 1
        children = []
        # a batch that has ended is not reaped before `communicate`
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(batch.pid)
            trials.hit += process.status() != psutil.STATUS_ZOMBIE
            children = process.children(recursive=True)
            is_other = target == "process" and children
            victim = children[random.integers(len(children))] if is_other else process
            victim.kill()
        batch.communicate(timeout=600)
        _, alive = psutil.wait_procs(children, timeout=60)
        assert not alive, "a process outlived its batch"
        check_whole(project)
    # every figure is whole or is run again
    done = run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert faults_of(project) == []
    trials.same = trials.times
    assert "2 of 2 figures are current" in run(project).stdout
