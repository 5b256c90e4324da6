"""AntMan: guaranteed jobs, reservations, opportunistic jobs, and published figures."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import make, simulate
from repro.base.errors import PolicyError, TraceError
from repro.testing import check_policy, stress_traces
from repro.trace.load import load

GUARANTEED = 0
OPPORTUNISTIC = 1


def trace(*rows, **columns):
    """Make jobs (submit, duration, GPUs, priority) of three equal stages of 1 s."""
    frame = pd.DataFrame(rows, columns=["submit_time", "duration", "num_gpus", "priority"])
    same = {"stage_storage": 1.0, "stage_gpu": 1.0, "stage_network": 1.0, "iteration_time": 3.0}
    jobs = frame.assign(job_id=range(len(rows)), **(same | columns))
    return jobs.astype({"submit_time": float, "duration": float})


def run(jobs, cluster, **settings):
    return simulate(jobs, cluster, make("antman", **settings)).jobs.set_index("job_id")


def ends(jobs, cluster):
    return run(jobs, cluster)["end_time"].tolist()


def test_an_opportunistic_job_is_slow_only_on_gpus_of_a_guaranteed_job():
    jobs = trace((0, 9, 2, GUARANTEED), (0, 8, 2, OPPORTUNISTIC), iteration_time=[3.0, 4.0])
    # data stage 2: two iterations of the guaranteed job, 6 s instead of 4 s until it ends
    jobs["stage_storage"] = [1.0, 2.0]
    assert ends(jobs, "1x2") == [9.0, pytest.approx(11.0)]


def test_a_guaranteed_job_takes_the_gpus_of_an_opportunistic_job():
    jobs = trace((0, 8, 2, OPPORTUNISTIC), (2, 9, 2, GUARANTEED), iteration_time=[4.0, 3.0])
    jobs["stage_storage"] = [2.0, 1.0]
    result = simulate(jobs, "1x2", "antman")
    assert result.jobs["end_time"].tolist() == [11.0, 11.0]
    assert result.jobs["preemptions"].tolist() == [0, 0]
    assert result.jobs["start_time"].tolist() == [0.0, 2.0]


def test_opportunistic_jobs_take_the_least_used_gpus_one_per_gpu():
    jobs = trace((0, 30, 1, GUARANTEED), *[(1, 20, 1, OPPORTUNISTIC)] * 4)
    jobs["stage_storage"] = [1.0] + [2.0] * 4
    # two idle GPUs, then that of the guaranteed job (half speed); the last job waits for a GPU
    assert ends(jobs, "1x3") == [30.0, 21.0, 21.0, pytest.approx(35.5), 41.0]


def test_an_opportunistic_job_starts_with_all_its_gpus_or_waits():
    jobs = trace((0, 10, 1, OPPORTUNISTIC), (0, 5, 2, OPPORTUNISTIC), (1, 3, 1, OPPORTUNISTIC))
    assert run(jobs, "1x2")["start_time"].tolist() == [0.0, 10.0, 1.0]


def test_a_guaranteed_job_reserves_the_emptiest_node_and_waits_for_it():
    jobs = trace(
        (0, 10, 1, GUARANTEED), (0, 30, 2, GUARANTEED), (0, 5, 2, GUARANTEED), (1, 4, 1, GUARANTEED)
    )
    # the third job keeps the idle GPU of the first node from the fourth
    assert run(jobs, "2x2")["start_time"].tolist() == [0.0, 0.0, 10.0, 15.0]


def test_a_reservation_does_not_change_nodes():
    rows = [(0, 20, 1, GUARANTEED), (0, 10, 2, GUARANTEED), (0, 5, 2, GUARANTEED)]
    assert run(trace(*rows), "2x2")["start_time"].tolist() == [0.0, 0.0, 20.0]


def test_a_wide_guaranteed_job_collects_whole_nodes():
    jobs = trace((0, 10, 1, GUARANTEED), (1, 7, 4, GUARANTEED), (2, 5, 2, GUARANTEED))
    # it holds the second node from 1 s on; the narrow job has reserved the first
    assert run(jobs, "2x2")["start_time"].tolist() == [0.0, 15.0, 10.0]


def test_a_wide_guaranteed_job_may_need_part_of_one_more_node():
    jobs = trace((0, 10, 1, GUARANTEED), (1, 7, 3, GUARANTEED), (2, 5, 1, GUARANTEED))
    assert run(jobs, "2x2")["start_time"].tolist() == [0.0, 1.0, 8.0]


def test_reserved_gpus_are_no_hosts():
    jobs = trace((0, 10, 1, GUARANTEED), (0, 5, 2, GUARANTEED), (1, 4, 1, OPPORTUNISTIC))
    jobs["stage_storage"] = [1.0, 1.0, 2.0]
    # the second job reserved the idle GPU; it does not run yet, so the third keeps its speed
    assert ends(jobs, "1x2") == [10.0, 15.0, 5.0]


def test_without_priorities_all_jobs_are_guaranteed():
    jobs = trace((0, 10, 2, GUARANTEED), (1, 4, 2, GUARANTEED)).drop(columns="priority")
    assert ends(jobs, "1x2") == [10.0, 14.0]


def test_jobs_that_share_no_gpus_need_no_stage_times():
    bare = ["job_id", "submit_time", "duration", "num_gpus", "priority"]
    jobs = trace((0, 10, 1, GUARANTEED), (1, 4, 1, OPPORTUNISTIC))[bare]
    assert ends(jobs, "1x2") == [10.0, 5.0]
    with pytest.raises(TraceError, match=r"job 1\) is to share GPUs, but has no stage_"):
        run(jobs, "1x1")


@pytest.mark.parametrize(
    ("jobs", "cluster", "error", "message"),
    [
        (trace((0, 1, 1, 2)), "1x1", TraceError, "priority 2; antman takes 0 .* and 1"),
        (
            trace((0, 1, 6, GUARANTEED)),
            "1x4,2x1",
            PolicyError,
            "1 whole nodes of 4 GPUs and 2 GPUs of",
        ),
    ],
)
def test_errors_are_one_line(jobs, cluster, error, message):
    with pytest.raises(error, match=message) as caught:
        run(jobs, cluster)
    assert "\n" not in str(caught.value)


def test_a_guaranteed_job_waits_only_for_a_node_that_is_large_enough():
    jobs = trace((0, 9, 1, GUARANTEED), (1, 5, 4, GUARANTEED), (2, 3, 5, GUARANTEED))
    assert run(jobs, "1x4,2x1")["start_time"].tolist() == [0.0, 9.0, 14.0]


def test_jobs_never_wait_for_each_other():
    jobs = trace(
        (0, 5, 4, GUARANTEED), (0, 8, 5, GUARANTEED), (1, 7, 6, GUARANTEED), (2, 3, 3, GUARANTEED)
    )
    # from 2 s on the last job keeps two GPUs of the second node; the second job, which has the
    # first node from 5 s on, leaves the third GPU to it
    assert run(jobs, "2x3")["start_time"].tolist() == [0.0, 8.0, 16.0, 5.0]


@given(
    widths=st.lists(st.integers(1, 6), min_size=3, max_size=8),
    submit=st.lists(st.integers(0, 5), min_size=8, max_size=8),
    cluster=st.sampled_from(["2x3", "3x2", "1x3,2x2"]),
)
def test_every_job_ends(widths, submit, cluster):
    rows = [
        (submit[job], 1 + job % 4, width, GUARANTEED)
        for job, width in enumerate(widths)
        if cluster != "1x3,2x2" or width <= 3
    ]
    if rows:
        assert run(trace(*rows), cluster)["end_time"].notna().all()


@pytest.mark.parametrize("residue", [False, True])
def test_battery_with_opportunistic_jobs(residue):
    traces = stress_traces([1, 2, 4, 8])
    for jobs in traces.values():
        jobs["priority"] = jobs.index % 2
        jobs["stage_storage"] = 3.0
        jobs["stage_gpu"] = 2.0
        jobs["stage_network"] = 1.0
        jobs["iteration_time"] = 6.0
    traces = {name: jobs for name, jobs in traces.items() if jobs["submit_time"].is_unique}
    check_policy(make("antman", residue=residue), traces=traces)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("trace3", (305453.9407, 8174140.28, 3904420.79)),
        ("trace3_pr", (2674393.018, 5799634.74, 5772254.91)),
    ],
)
def test_published_figures(mirror, name, published):
    file = mirror / "Rivendile+Muri" / "simulator" / "trace-data" / f"{name}.csv"
    figures = simulate(load(file, format="muri"), "8x8", "antman", rules="muri").summary()
    found = (figures["avg_jct"], figures["makespan"], figures["p99_jct"])
    for value, figure in zip(found, published, strict=True):
        decimals = len(str(figure).partition(".")[2])
        assert round(value, decimals) == figure
