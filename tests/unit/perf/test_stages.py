"""Interleaving time and grouping efficiency against the worked examples of Muri and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import simulate
from repro.base.errors import ParamError, TraceError
from repro.model.decision import Run
from repro.perf import Interleaving
from repro.perf.stages import efficiency, interleaving_time
from repro.policies.baselines.scripted import Scripted

FIG6 = [(1, 2, 1, 1), (1, 1, 2, 1)]


def test_figure_1_four_unit_stages():
    four = [(1, 1, 1, 1)] * 4
    assert (interleaving_time(four), efficiency(four)) == (4, 1)


def test_figure_6_best_and_worst_ordering():
    assert interleaving_time(FIG6) == 5
    assert interleaving_time(FIG6, "worst") == 6
    assert efficiency(FIG6) == pytest.approx(0.5)


def test_one_job_takes_the_sum_of_its_stages():
    assert interleaving_time([(3, 4, 5)]) == 12
    assert efficiency([(3, 4, 5)]) == pytest.approx(1 / 3)


STAGES = st.tuples(*[st.integers(0, 9)] * 4).filter(any)


def by_all_offsets(members):
    """Return all periods, without fixing one member and without sorting."""
    k = len(members[0])
    return [
        sum(max(t[(o + j) % k] for t, o in zip(members, offsets, strict=True)) for j in range(k))
        for offsets in itertools.permutations(range(k), len(members))
    ]


@given(st.lists(STAGES, min_size=1, max_size=4))
def test_equals_the_search_over_all_offsets(members):
    periods = by_all_offsets(members)
    assert interleaving_time(members) == min(periods)
    assert interleaving_time(members, "worst") == max(periods)
    assert interleaving_time(members[::-1]) == min(periods)


@given(st.lists(STAGES, min_size=1, max_size=4))
def test_efficiency_is_a_share(members):
    busy = np.array(members).sum(axis=0)
    gamma = efficiency(members)
    assert 0 < gamma <= 1 + 1e-12
    period = interleaving_time(members)
    assert gamma == pytest.approx(1 - ((period - busy) / period).sum() / 4)


def test_pair_efficiencies_are_symmetric():
    columns = ("stage_cpu", "stage_gpu")
    trace = pd.DataFrame([(2, 1), (1, 2), (2, 1), (1, 2)], columns=columns)
    gamma = Interleaving(columns).pair_efficiencies(trace)
    assert gamma.tolist() == gamma.T.tolist()
    assert gamma[0].tolist() == [0, 1, 0.75, 1]


@pytest.mark.parametrize(
    "members",
    [[], [(1, 2)] * 3, [(1, 2), (1, 2, 3)], [(1, -1)], [(0, 0)], [(1, float("nan"))]],
)
def test_impossible_groups(members):
    with pytest.raises(ParamError):
        interleaving_time(members)


def jobs(**columns):
    return pd.DataFrame(
        {"job_id": [0, 1], "submit_time": 0.0, "duration": 30.0, "num_gpus": 2, **columns}
    )


def pair(trace, model):
    return simulate(trace, "1x2", Scripted((Run((0, 1), 2),)), perf=model).jobs["jct"].tolist()


def test_measured_factor_stretches_the_period():
    trace = jobs(stage_cpu=[2.0, 1.0], stage_gpu=[1.0, 2.0])
    columns = ("stage_cpu", "stage_gpu")
    assert pair(trace, Interleaving(columns)) == [30, 30]
    assert pair(trace, Interleaving(columns, factors=(1.5,))) == [45, 45]
    assert pair(trace, Interleaving(columns, "worst")) == [30, 30]


def test_pipelined_jobs_lose_their_own_overlap():
    trace = jobs(stage_cpu=[2.0, 1.0], stage_gpu=[1.0, 2.0], iteration_time=[2.0, 2.0])
    assert pair(trace, Interleaving(("stage_cpu", "stage_gpu"))) == [45, 45]


def test_missing_stage_times_are_named():
    with pytest.raises(TraceError, match="stage_storage"):
        pair(jobs(stage_cpu=[1.0, 1.0]), Interleaving())
