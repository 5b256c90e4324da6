"""Steps per second by kinds of jobs: alone, in pairs, for whole rows, on what the cluster has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from given_shares import SPEEDS
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.core.jobs import JobTable
from repro.core.rules import Rules
from repro.core.speeds import ByType, Speeds
from repro.errors import ParamError, TraceError

KINDS = [("even", 1), ("slow", 1), ("odd", 1), ("even", 2), ("slow", 2)]


def table(kinds, steps=False, **columns):
    n = len(kinds)
    frame = pd.DataFrame({"job_id": range(n), "submit_time": 0.0, "duration": 10.0})
    frame["model"], frame["num_gpus"] = zip(*kinds, strict=True)
    return JobTable(frame.assign(**columns), Rules(steps=steps))


def speeds(kinds=KINDS, perf=SPEEDS, capacity=None):
    return Speeds(table(kinds), perf, {"v100": 4, "k80": 1} if capacity is None else capacity)


def test_types_are_alphabetical_with_their_counts():
    found = speeds()
    assert isinstance(SPEEDS, ByType)
    assert found.gpu_types == ("k80", "v100")
    assert found.gpu_counts.tolist() == [1, 4]


def test_a_gang_cannot_run_on_a_type_with_fewer_gpus():
    found = speeds()
    assert found.of(0).tolist() == [2.0, 8.0]
    assert found.of(3).tolist() == [0.0, 8.0]
    assert found.kind(3) == ("even", 2)


def test_pairs_need_a_table_entry_and_equal_gangs():
    found = speeds()
    assert found.pair(0, 1).tolist() == [[0.0, 4.0], [0.0, 0.75]]
    assert found.pair(1, 0).tolist() == [[0.0, 0.75], [0.0, 4.0]]
    assert not found.pair(0, 2).any()
    assert not found.pair(0, 4).any()


def test_answers_cannot_be_changed():
    for answer in (speeds().of(0), speeds().pair(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            answer[...] = 9.0


@pytest.mark.parametrize(("perf", "capacity"), [(None, {"v100": 4, "k80": 1}), (SPEEDS, {None: 4})])
def test_nothing_is_known_without_a_table_or_types(perf, capacity):
    found = speeds(perf=perf, capacity=capacity)
    assert not found.known
    assert set(found.of(0).tolist()) == {1.0}
    assert not found.pair(0, 1).any()
    assert speeds().known


def test_a_job_that_fits_nowhere_is_named():
    found = speeds([("even", 1), ("even", 8)], perf=None)
    with pytest.raises(TraceError, match=r"job 1 of 'even' asks for 8 GPUs .* on 1 k80, 4 v100;"):
        found.of(1)
    found = speeds([("even", 2)], capacity={"k80": 1, "v100": 1})
    with pytest.raises(TraceError, match="can never run on 1 k80, 1 v100"):
        found.rows(np.array([[0, -1]]))


def test_an_unknown_model_or_type_is_named():
    with pytest.raises(
        ParamError, match=r"^job 0: the throughput table has no model 'new' on 1 GPUs"
    ):
        speeds([("new", 1)]).of(0)
    with pytest.raises(ParamError, match="no GPU type 't4' for 'even'"):
        speeds(capacity={"t4": 2}).of(0)


@given(
    drawn=st.lists(st.sampled_from(KINDS[:3]), min_size=2, max_size=8),
    asked=st.lists(st.tuples(st.integers(0, 7), st.integers(-1, 7)), min_size=1, max_size=12),
)
@settings(max_examples=150, deadline=None)
def test_rows_are_the_single_answers(drawn, asked):
    """Whatever was asked for before; one question at a time, then all at once."""
    found, naive = speeds(drawn), speeds(drawn)
    members = [(one % len(drawn), -1 if two < 0 else two % len(drawn)) for one, two in asked]
    expected = np.array(
        [
            naive.pair(one, two) if two >= 0 else np.stack([naive.of(one), naive.of(one)])
            for one, two in members
        ]
    )
    single = [found.rows(np.array([row]))[0] for row in members]
    np.testing.assert_array_equal(np.array(single), expected)
    np.testing.assert_array_equal(found.rows(np.array(members)), expected)
    np.testing.assert_array_equal(speeds(drawn).rows(np.array(members)), expected)


def test_no_rows():
    assert speeds().rows(np.empty((0, 2), dtype=np.int64)).shape == (0, 2, 2)


def test_steps_of_a_unit_of_work():
    assert Speeds(table(KINDS, True, iterations=80.0), SPEEDS, {"v100": 4}).steps_per_unit([0]) == 1
    # 10 s on a V100, where durations are meant
    in_seconds = speeds()
    left = in_seconds.on_reference.tolist()
    assert in_seconds.steps_per_unit([0, 1]).tolist() == left[:2] == [8, 1]
    # seconds where speeds are unknown: 10 s for 80 steps
    unknown = Speeds(table(KINDS, True, iterations=80.0), None, {None: 4})
    assert unknown.steps_per_unit([0]).tolist() == pytest.approx([10 / 80])
