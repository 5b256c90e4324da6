"""Selection by nodes gives the schedule of a plain scan of all jobs at every event."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import simulate
from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.model.policy import make
from repro.placement.yarn import Yarn

KEYS = {
    "sf": lambda left, width: width,
    "srtf": lambda left, width: left,
    "srsf": lambda left, width: left * width,
}


@st.composite
def rows(draw):
    """Few distinct numbers, so that arrivals, completions and keys tie all the time."""
    n = draw(st.integers(1, 16))
    gaps = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    works = draw(st.lists(st.integers(1, 12), min_size=n, max_size=n))
    widths = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=n, max_size=n))
    return list(zip(np.cumsum(gaps).tolist(), works, widths, strict=True))


def plain_scan(jobs, spec, key):
    """Start, end and number of preemptions; every event looks at every job anew."""
    left = [work for _, work, _ in jobs]
    start = [None] * len(jobs)
    end = [None] * len(jobs)
    stopped = [0] * len(jobs)
    running = set()
    now = 0
    while None in end:
        placer = Yarn(fallback=None).bind(Cluster.parse(spec), np.random.default_rng(0))
        active = [j for j, (submit, _, _) in enumerate(jobs) if submit <= now and end[j] is None]
        chosen = set()
        for job in sorted(active, key=lambda j: (key(left[j], jobs[j][2]), j)):
            if placer.fits(jobs[job][2]):
                placer.take(job, jobs[job][2])
                chosen.add(job)
        for job in running - chosen:
            stopped[job] += 1
        running = chosen
        for job in running:
            start[job] = now if start[job] is None else start[job]
        later = [submit for submit, _, _ in jobs if submit > now]
        after = min([*later, *(now + left[job] for job in running)])
        for job in running.copy():
            left[job] -= after - now
            if not left[job]:
                end[job] = after
                running.remove(job)
        now = after
    return start, end, stopped


@pytest.mark.parametrize("name", list(KEYS))
@settings(max_examples=150)
@given(jobs=rows(), spec=st.sampled_from(["1x8", "3x4", "2x8", "5x2"]))
def test_equals_a_plain_scan(name, jobs, spec):
    submits, works, widths = zip(*jobs, strict=True)
    frame = pd.DataFrame(
        {
            "job_id": range(len(jobs)),
            "submit_time": np.array(submits, float),
            "duration": np.array(works, float),
            "num_gpus": widths,
        }
    )
    found = simulate(frame, spec, make(name, refill=True)).jobs
    start, end, stopped = plain_scan(jobs, spec, KEYS[name])
    assert found["start_time"].tolist() == start
    assert found["end_time"].tolist() == end
    assert found["preemptions"].tolist() == stopped


def test_nodes_decide_where_a_count_would_not():
    """One GPU is idle on either node: enough for the gang of two, but no place."""
    frame = pd.DataFrame(
        {
            "job_id": range(4),
            "submit_time": 0.0,
            "duration": [1.0, 2.0, 3.0, 4.0],
            "num_gpus": [3, 3, 2, 1],
        }
    )
    assert simulate(frame, "2x4", make("srtf", refill=True)).jobs["start_time"].tolist() == [
        0.0,
        0.0,
        1.0,
        0.0,
    ]
    assert simulate(frame, "2x4", "srtf").jobs["start_time"].tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("policy", ["sf", "srtf", "srsf"])
def test_a_gang_wider_than_a_switch_is_refused_before_the_first_event(policy):
    trace = pd.DataFrame({"job_id": [1], "submit_time": [0.0], "duration": [64.0], "num_gpus": [8]})
    with pytest.raises(PolicyError, match="job 1 asks for 8 GPUs, and the nodes under one switch"):
        simulate(trace, "2x2x2", make(policy, refill=True))
    assert simulate(trace, "1x4x2", make(policy, refill=True)).jobs["jct"].tolist() == [64.0]
