"""How a batch shares the machine among its notebooks."""

import joblib
import pytest

from repro.batch import execute, kernel
from repro.batch.task import DONE, Outcome, Task
from repro.figures.params import FigureEntry


@pytest.mark.parametrize(
    ("notebooks", "at_a_time", "each"), [(1, 4, 8), (3, 4, 2), (9, 4, 2), (9, 3, 2), (9, 16, 1)]
)
def test_notebooks_side_by_side_share_the_cpus(tmp_path, monkeypatch, notebooks, at_a_time, each):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    allowed = []

    def told(task):
        allowed.append(kernel._environment(task, tmp_path)["LOKY_MAX_CPU_COUNT"])
        return Outcome(task.id, DONE)

    monkeypatch.setattr(execute, "execute", told)
    tasks = [Task(FigureEntry(f"a/{n}", tmp_path), {}, "", tmp_path) for n in range(notebooks)]
    list(execute.run(tasks, jobs=at_a_time))
    assert allowed == [str(each)] * notebooks


def test_a_sweep_starts_no_more_processes_than_it_may(monkeypatch):
    from repro.figures import sweep

    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with sweep._pool(5, None) as (settings, _):
        assert settings == {"n_jobs": 1}
