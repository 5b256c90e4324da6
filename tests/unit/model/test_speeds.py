"""Steps per second by kinds of jobs: alone, in pairs, for whole rows, on what the cluster has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from given_shares import SPEEDS

from repro.base.errors import ParamError, TraceError
from repro.model.jobs import JobTable
from repro.model.rules import Rules
from repro.model.speeds import ByType, Speeds

KINDS = [("even", 1), ("slow", 1), ("odd", 1), ("even", 2), ("slow", 2)]


def table(kinds, rules=None, **columns):
    n = len(kinds)
    frame = pd.DataFrame({"job_id": range(n), "submit_time": 0.0, "duration": 10.0})
    frame["model"], frame["num_gpus"] = zip(*kinds, strict=True)
    return JobTable(frame.assign(**columns), rules or Rules())


def speeds(kinds=KINDS, perf=SPEEDS, capacity=None):
    return Speeds(table(kinds), perf, {"v100": 4, "k80": 1} if capacity is None else capacity)


def test_types_are_alphabetical_with_their_counts():
    found = speeds()
    assert isinstance(SPEEDS, ByType)
    assert found.gpu_types == ("k80", "v100")
    assert found.gpu_counts.tolist() == [1, 4]


def test_a_gang_cannot_run_on_a_type_with_fewer_gpus():
    found = speeds()
    assert found.speeds_of(0).tolist() == [2.0, 8.0]
    assert found.speeds_of(3).tolist() == [0.0, 8.0]
    assert found.kind(3) == ("even", 2)


def test_pairs_need_a_table_entry_and_equal_gangs():
    found = speeds()
    assert found.pair(0, 1).tolist() == [[0.0, 4.0], [0.0, 0.75]]
    assert found.pair(1, 0).tolist() == [[0.0, 0.75], [0.0, 4.0]]
    assert not found.pair(0, 2).any()
    assert not found.pair(0, 4).any()


def test_answers_cannot_be_changed():
    for answer in (speeds().speeds_of(0), speeds().pair(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            answer[...] = 9.0


@pytest.mark.parametrize(("perf", "capacity"), [(None, {"v100": 4, "k80": 1}), (SPEEDS, {None: 4})])
def test_nothing_is_known_without_a_table_or_types(perf, capacity):
    found = speeds(perf=perf, capacity=capacity)
    assert not found.has_throughputs
    assert set(found.speeds_of(0).tolist()) == {1.0}
    assert not found.pair(0, 1).any()
    assert speeds().has_throughputs


def test_a_job_that_fits_nowhere_is_named():
    found = speeds([("even", 1), ("even", 8)], perf=None)
    with pytest.raises(TraceError, match=r"job 1 of 'even' asks for 8 GPUs .* on 1 k80, 4 v100;"):
        found.speeds_of(1)
    found = speeds([("even", 2)], capacity={"k80": 1, "v100": 1})
    with pytest.raises(TraceError, match="can never run on 1 k80, 1 v100"):
        found.speeds_of(0)


def test_an_unknown_model_or_type_is_named():
    with pytest.raises(
        ParamError, match=r"^job 0: the throughput table has no model 'new' on 1 GPUs"
    ):
        speeds([("new", 1)]).speeds_of(0)
    with pytest.raises(ParamError, match="no GPU type 't4' for 'even'"):
        speeds(capacity={"t4": 2}).speeds_of(0)


def test_whole_tables_are_the_single_answers():
    drawn = [KINDS[number % len(KINDS)] for number in (0, 1, 0, 2, 1)]
    found = speeds(drawn)
    naive = speeds(drawn)
    for one, code in enumerate(found.kind_codes):
        np.testing.assert_array_equal(found.single[code], naive.speeds_of(one))
        for two, other in enumerate(found.kind_codes):
            np.testing.assert_array_equal(found.pairs[code, other], naive.pair(one, two))


def test_who_can_never_run_is_known_and_not_told_before_it_is_asked_for():
    found = speeds([("even", 1), ("new", 1)])
    assert np.isnan(found.single).tolist() == [[False, False], [True, True]]


def test_steps_of_a_unit_of_work():
    in_steps = Speeds(table(KINDS, Rules(steps=True), iterations=80.0), SPEEDS, {"v100": 4})
    assert in_steps.steps_per_unit([0]) == 1
    # 10 s on a V100, where durations are meant
    in_seconds = speeds()
    left = in_seconds.on_reference.tolist()
    assert in_seconds.steps_per_unit([0, 1]).tolist() == left[:2] == [8, 1]
    # an iteration of 0.5 s on a V100 is 4 steps there
    iterations = table(KINDS, Rules(iterations=1.0), iterations=20.0, iteration_time=0.5)
    assert Speeds(iterations, SPEEDS, {"v100": 4}).steps_per_unit([0, 1]).tolist() == [4, 0.5]
    # seconds where speeds are unknown: 10 s for 80 steps
    unknown = Speeds(table(KINDS, Rules(steps=True), iterations=80.0), None, {None: 4})
    assert unknown.steps_per_unit([0]).tolist() == pytest.approx([10 / 80])
