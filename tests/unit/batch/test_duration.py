"""Expected time of a batch: its bounds, the schedule, and a run on two workers."""

import itertools
import json
import os
import time

import pytest

from repro.batch import duration
from repro.batch.duration import Load
from repro.figures import sweep
from repro.figures.costs import COSTS, Meter, ParallelBatch
from repro.figures.sweep import Case
from repro.testing import small_trace


def test_all_work_in_equal_parts_or_the_critical_path_bounds_the_time():
    loads = [Load("a", 2.0, (ParallelBatch(10, 50.0, 5.0),)), Load("b", 3.0)]
    # 55 s of work; the path of `a` is its own 2 s and the longest simulation
    assert duration.least_s(loads, 1) == 55
    assert duration.least_s(loads, 5) == 11
    assert duration.least_s(loads, 64) == 7
    assert duration.most_s(loads, 1) == 55
    assert duration.most_s(loads, 5) == pytest.approx(11 + 7 * 4 / 5)


def test_a_round_begins_when_the_one_before_has_ended():
    rounds = (ParallelBatch(2, 4.0, 3.0), ParallelBatch(3, 3.0, 1.0))
    load = Load("a", 1.0, rounds)
    assert load.critical_path_s == 5
    assert duration.expected_s([load], 3) == 5
    # own work to 1 s, the first round to 4 s, two of the second to 5 s, its last to 6 s
    assert duration.expected_s([load], 2) == 6
    assert duration.expected_s([load], 1) == load.cpu_s == 8


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 64])
def test_the_schedule_lies_between_the_bounds(workers):
    sizes = itertools.cycle([1, 4, 9, 2, 30, 7])
    loads = [
        Load(
            f"f{number}",
            next(sizes),
            tuple(
                ParallelBatch(n, n * 1.5 + 2, 3.5) for n in (next(sizes), next(sizes))[: number % 3]
            ),
        )
        for number in range(20)
    ]
    expected_s = duration.expected_s(loads, workers)
    assert duration.least_s(loads, workers) <= expected_s + 1e-9
    assert expected_s <= duration.most_s(loads, workers) + 1e-9


def test_no_work_takes_no_time():
    assert duration.expected_s([], 4) == duration.least_s([], 4) == duration.most_s([], 4) == 0


def test_a_result_of_an_earlier_version_is_one_piece():
    load = duration.load_of("a", {"wall_s": 12.0})
    assert (load.own_s, load.critical_path_s, load.is_divided) == (12.0, 12.0, False)
    assert duration.load_of("a", {"cpu_s": 3.0, "rounds": []}).is_divided


def test_rounds_count_a_result_once_where_it_was_used_first():
    meter = Meter()
    COSTS.use("single", 1.0)
    with COSTS.parallel_batch():
        COSTS.use("single", 1.0)
        COSTS.use("one", 2.0)
        COSTS.use("two", 3.0)
    with COSTS.parallel_batch():
        COSTS.use("two", 3.0)
    with COSTS.parallel_batch():
        pass
    assert meter.parallel_batches() == [ParallelBatch(2, 5.0, 3.0)]


#: CPU times (s) of the simulations of the run on two workers.
BURNS = (0.6, 0.1, 0.3, 0.2, 0.4, 0.1, 0.5, 0.2)


def burn(case):
    """Use the CPU for the seconds that the case has as its seed, in hundredths."""
    began = time.process_time()
    while time.process_time() - began < case.seed / 100:
        pass
    return {"pid": os.getpid(), "cpu_s": time.process_time() - began}


@pytest.mark.slow
def test_a_run_on_two_workers_takes_what_its_own_record_predicts():
    cases = [
        Case(small_trace(), "1x4", "srtf", seed=round(100 * s), measure=burn).resolved()
        for s in BURNS
    ]
    meter = Meter()
    outcomes = sweep.run(cases, workers=2)
    (recorded,) = meter.parallel_batches()
    assert recorded.simulations == len(BURNS)
    assert recorded.cpu_s == pytest.approx(sum(BURNS), rel=0.2)
    busy_s = {}
    for outcome in outcomes:
        busy_s[outcome["pid"]] = busy_s.get(outcome["pid"], 0.0) + outcome["cpu_s"]
    load = Load("a", 0.0, (recorded,))
    expected_s = duration.expected_s([load], 2)
    assert duration.least_s([load], 2) <= expected_s + 1e-9
    # CPU time of the busier worker, of which the schedule knows total and longest simulation only;
    # a worker that starts late leaves more to the other
    assert 0.75 <= max(busy_s.values()) / expected_s <= 2.1


@pytest.mark.slow
def test_the_command_prints_the_plan_of_a_run(project):
    project.add("tiresias/fig01_one", before="from repro.figures.sweep import Case")
    notebook = project.root / "notebooks/tiresias/fig01_one.ipynb"
    notebook.write_text(notebook.read_text().replace("result = fig.simulate(", SWEEP))
    project.add("tiresias/fig02_two")
    project.cli("run", "--all", "-j", "1")
    document = json.loads(project.cli("plan", "--workers", "2", "--json").stdout)
    rounds = project.result("tiresias/fig01_one")["rounds"]
    assert [part["simulations"] for part in rounds] == [3]
    assert project.result("tiresias/fig02_two")["rounds"] == []
    total_s = sum(project.result(name)["cpu_s"] for name in FIGURES)
    assert document["figures"] == 2 and document["simulations"] == 3
    assert document["cpu_s"] == pytest.approx(total_s, abs=0.01)
    assert document["least_s"] <= document["expected_s"] <= document["most_s"] + 0.01
    assert document["least_s"] >= total_s / 2 - 0.01
    assert document["undivided"] == document["unknown"] == []
    printed = project.cli("plan", "--workers", "2", "fig01").stdout
    assert "1 figure," in printed and "3 simulations" in printed and "on 2 workers" in printed
    refused = project.cli("plan", "--workers", "2", "--profile", "paper", code=2)
    assert "no figure has a result of profile paper" in refused.stderr
    assert "give a number of workers" in project.cli("plan", "--workers", "0", code=2).stderr


FIGURES = ("tiresias/fig01_one", "tiresias/fig02_two")
#: Three simulations in a sweep, in front of the line that it replaces.
SWEEP = (
    "fig.sweep({name: Case(small_trace(), '1x4', name) for name in ('srtf', 'sjf', 'yarn-cs')}); "
    "result = fig.simulate("
)
