"""Slots, queue histories and attained service, read from the records of small runs."""

import math

import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import ParamError
from repro.papers.tiresias import examples

JOBS = {
    "A": {"gpus": 2, "submit": 0, "duration": 12},
    "B": {"gpus": 2, "submit": 1, "duration": 6},
    "C": {"gpus": 4, "submit": 2, "duration": 3},
    "D": {"gpus": 1, "submit": 3, "duration": 4},
}


def run(**settings):
    policy = make("tiresias-l", thresholds=(8.0,), **settings)
    return simulate(examples.job_list(JOBS), "1x4", policy)


def test_jobs_are_sorted_by_submission():
    late_first = {"B": {"gpus": 1, "submit": 5, "duration": 1}, "A": {"gpus": 1, "duration": 1}}
    assert examples.job_list(late_first)["job_id"].tolist() == ["A", "B"]


def test_slots_need_exactly_one_job_each():
    with pytest.raises(ParamError, match="slot 0 to 1 s: 2 intervals"):
        examples.slots(
            simulate(
                examples.job_list(
                    {"A": {"gpus": 1, "duration": 1}, "B": {"gpus": 1, "duration": 1}}
                ),
                "1x2",
                "sf",
            )
        )


def test_queue_spans_count_the_promotions_and_the_time_of_the_records():
    result = run(promote_knob=2.0)
    spans = examples.queue_spans(result, (8.0,), 2.0)
    promoted = spans[spans["event"] == "promoted"].groupby("job_id").size()
    assert promoted.to_dict() == {"C": 1}
    assert result.jobs.set_index("job_id")["promotions"].to_dict() == {
        "A": 0,
        "B": 0,
        "C": 1,
        "D": 0,
    }
    length = (spans["end"] - spans["start"]).groupby(spans["job_id"]).sum()
    assert length.to_dict() == {"A": 12.0, "B": 6.0, "C": 3.0, "D": 4.0}


def test_a_span_is_cut_where_the_limit_is_crossed():
    alone = examples.job_list({"A": {"gpus": 2, "duration": 20}})
    result = simulate(alone, "1x2", make("tiresias-l", thresholds=(8.0, 24.0)))
    spans = examples.queue_spans(result, (8.0, 24.0))
    assert spans[["start", "end", "queue"]].to_numpy().tolist() == [
        [0.0, 4.0, 1],
        [4.0, 12.0, 2],
        [12.0, 20.0, 3],
    ]
    assert spans["event"].tolist() == ["start", "demoted", "demoted"]


def test_a_job_changes_queue_once_although_rounding_keeps_its_service_below_the_threshold():
    alone = examples.job_list({"A": {"gpus": 3, "submit": 2, "duration": 20}})
    result = simulate(alone, "1x4", make("tiresias-l", thresholds=(8.0,)))
    spans = examples.queue_spans(result, (8.0,))
    assert spans[["start", "end", "queue"]].to_numpy().tolist() == [
        [2.0, 2.0 + 8 / 3, 1],
        [2.0 + 8 / 3, 22.0, 2],
    ]


def test_no_promotion_without_a_knob():
    spans = examples.queue_spans(run(), (8.0,))
    assert "promoted" not in set(spans["event"])


def test_attained_service_only_of_unfinished_jobs():
    table = examples.attained(run(promote_knob=2.0), [0, 5, 8, 16])
    wide = table.pivot_table(index="job_id", columns="time", values="attained", dropna=False)
    assert wide.loc["A"].tolist() == [0.0, 8.0, 14.0, 24.0]
    assert math.isnan(wide.loc["D", 0.0])
    assert wide.loc["D", 5.0] == 1.0
    assert math.isnan(wide.loc["D", 16.0])
    assert isinstance(table, pd.DataFrame)
