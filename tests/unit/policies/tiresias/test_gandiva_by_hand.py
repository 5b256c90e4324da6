"""Gandiva's rotations of a few jobs, in both forms, with and without compiled steps."""

import numpy as np
import pandas as pd
import pytest

from repro import Cluster, simulate
from repro.policies.tiresias._gandiva_simulator import empty_sets
from repro.policies.tiresias.gandiva import Gandiva

TRACE = pd.DataFrame(
    {"job_id": [0, 1], "submit_time": 0.0, "duration": [100.0, 100.0], "num_gpus": 1}
)
#: Intervals (job, start, end) of two jobs of 100 s that rotate every 60 s on one GPU.
SPANS = [[0, 0, 60], [1, 60, 120], [0, 120, 160], [1, 160, 200]]


@pytest.mark.parametrize("form", ["paper", "simulator"])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_two_jobs_take_turns(form, is_compiled, monkeypatch):
    if not is_compiled:
        monkeypatch.setattr(Gandiva, "compiled_run", lambda policy, cluster: None)
    result = simulate(TRACE, "1x1", Gandiva(form=form, step_s=10.0))
    spans = result.intervals.sort_values("start")[["job_id", "start", "end"]]
    assert spans.to_numpy().tolist() == SPANS
    assert result.jobs["start_time"].tolist() == [0, 60]
    assert result.jobs["end_time"].tolist() == [160, 200]
    assert result.jobs["preemptions"].tolist() == [1, 1]


def test_a_part_of_a_set_is_enough_lack_to_open_a_set():
    """Six jobs of one GPU share a node of four. The other node has a job of four GPUs until 10 s.

    The share of the six is then 6 GPUs, 2 more than those of their set.
    """
    trace = pd.DataFrame(
        {
            "job_id": range(7),
            "submit_time": 0.0,
            "duration": [10.0] + [50.0] * 6,
            "num_gpus": [4] + [1] * 6,
        }
    )
    jobs = simulate(trace, "2x4", Gandiva()).jobs
    assert jobs["end_time"].tolist() == [10, 50, 50, 50, 50, 60, 60]


def test_a_size_with_its_share_opens_no_set():
    """Three nodes of four GPUs: a job of 3 GPUs until 10 s, one of 4, six of 1, two more of 4.

    At 10 s the six have their share of floor(6 / 18 * 12) = 4 GPUs. The last job gets the node.
    """
    trace = pd.DataFrame(
        {
            "job_id": range(10),
            "submit_time": 0.0,
            "duration": [10.0] + [30.0] * 9,
            "num_gpus": [3, 4] + [1] * 6 + [4, 4],
        }
    )
    jobs = simulate(trace, "3x4", Gandiva()).jobs
    assert jobs["start_time"].tolist() == [0, 0, 0, 0, 0, 0, 30, 30, 30, 10]


def test_the_public_simulator_visits_its_own_sizes_first():
    widths = np.array([3.0, 25, 64, 32, 24, 16, 12, 8, 4, 2, 1])
    sets = empty_sets(widths, Cluster.parse("16x4"))
    assert sets.gpus.tolist() == [16, 1, 2, 4, 24, 32, 8, 64, 12, 3, 25]
