"""Speed of opportunistic jobs on the GPUs of guaranteed jobs."""

import numpy as np
import pandas as pd
import pytest

from repro.base.errors import PolicyError, TraceError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.perf.stages import MERGED_COLUMNS
from repro.policies.muri.sharing import Sharing, host_iterations


def table(stages, times, **changes):
    trace = pd.DataFrame(
        {
            "job_id": range(len(times)),
            "submit_time": 0.0,
            "duration": 10.0,
            "num_gpus": 2,
            "iteration_time": times,
            **dict(zip(MERGED_COLUMNS, np.array(stages, float).T, strict=True)),
        }
    )
    return JobTable(trace.assign(**changes))


@pytest.mark.parametrize(
    ("stages", "host_stages", "count"),
    [
        ((4, 2, 3), (1, 1, 1), 4),  # 2 for the data, 1 for the GPU, 1 for the network
        ((3, 2, 3), (1, 1, 1), 4),  # half of the GPU stage fits behind the data stage
        ((1, 0.5, 4), (1, 1, 1), 3),  # all of it does
        ((0, 0.5, 3), (1, 1, 1), 2),  # so does part of the network stage behind the GPU stage
        ((0, 0.5, 2.5), (1, 1, 1), 1),  # what is left of it ends inside that iteration
        ((0, 1.5, 3.5), (1, 1, 1), 3),  # a GPU stage that outlasts the host's data stage: none
        ((5, 0, 0), (1, 1, 1), 3),
        ((1, 1, 1), (5, 2, 3), 1),
        ((0, 0, 0), (1, 1, 1), 0),
    ],
)
def test_counts_worked_by_hand(stages, host_stages, count):
    assert host_iterations(stages, host_stages) == count
    longer = tuple(8 * seconds for seconds in stages)
    assert host_iterations(longer, tuple(8 * seconds for seconds in host_stages)) == count


def test_the_gaps_of_a_host_hold_every_stage():
    rng = np.random.default_rng(0)
    stages = rng.uniform(0.1, 9, (300, 3))
    host_stages = rng.uniform(0.1, 3, (300, 3))
    for own, host in zip(stages, host_stages, strict=True):
        count = host_iterations(tuple(own), tuple(host))
        assert count >= max(np.floor(own / (host.sum() - host)))
        longer = host_iterations((own[0] + host[1] + host[2], *own[1:]), tuple(host))
        assert longer == count + 1


def test_a_host_with_one_stage_leaves_no_gap():
    with pytest.raises(TraceError, match="leaves no time in one of them") as caught:
        host_iterations((1.0, 1.0, 1.0), (0.0, 3.0, 0.0))
    assert "\n" not in str(caught.value)


def test_guaranteed_jobs_and_jobs_alone_run_at_nominal_speed():
    jobs = table([(1, 1, 1)], [3.0])
    assert Sharing().rates(jobs, Run((0,), 2), ()) == [1.0]
    assert Sharing().rates(jobs, Run((0,), 1), ()) == [0.5]


def test_the_slowest_host_decides():
    jobs = table([(4, 2, 3), (1, 1, 1), (9, 9, 9)], [9.0, 3.5, 30.0])
    shares = {hosts: Run((0,), 2, hosts=hosts, shared=1) for hosts in [(1,), (2,), (1, 2)]}
    rates = {hosts: Sharing().rates(jobs, run, ()) for hosts, run in shares.items()}
    assert rates[(1,)] == [pytest.approx(9 / (4 * 3.5))]
    assert rates[(2,)] == [pytest.approx(9 / 30)]
    assert rates[(1, 2)] == rates[(2,)]


def test_never_faster_than_alone():
    jobs = table([(1, 1, 1), (1, 1, 1)], [5.0, 3.0])
    assert Sharing().rates(jobs, Run((0,), 2, hosts=(1,), shared=2), ()) == [1.0]


@pytest.mark.parametrize("column", [*MERGED_COLUMNS, "iteration_time"])
def test_a_missing_column_matters_only_to_jobs_with_hosts(column):
    jobs = table([(1, 1, 1), (1, 1, 1)], [3.0, 3.0])
    jobs.frame = jobs.frame.drop(columns=column)
    assert Sharing().rates(jobs, Run((0,), 2), ()) == [1.0]
    with pytest.raises(TraceError, match=rf"job 0\) is to share GPUs, but has no {column}"):
        Sharing().rates(jobs, Run((0,), 2, hosts=(1,), shared=2), ())


def test_groups_are_refused():
    jobs = table([(1, 1, 1), (1, 1, 1)], [3.0, 3.0])
    with pytest.raises(PolicyError, match=r"jobs \[0, 1\] form a group"):
        Sharing().rates(jobs, Run((0, 1), 2), ())
