"""Figure 7 of Tiresias slot by slot, and the behaviours its pseudocodes promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from repro import simulate
from repro.engine.select.resort import Resort
from repro.model.policy import Order, Ordering, make
from repro.policies.tiresias._gittins import GittinsIndex, MeanServiceIndex

HISTORY = (4, 8, 12)


@dataclass(frozen=True)
class ByIndex(Order):
    """Continuous 2D-Gittins: the largest index of the attained service first."""

    index: object = None

    def key(self, view, job):
        return -self.index(view.attained(job))

    def ordering(self, view):
        ordering = Ordering(self, view)
        ordering.selection = Resort
        return ordering


def trace(submits, durations, widths):
    return pd.DataFrame(
        {
            "job_id": range(1, len(submits) + 1),
            "submit_time": np.array(submits, float),
            "duration": np.array(durations, float),
            "num_gpus": widths,
        }
    )


def three_jobs():
    return trace([0, 0, 0], [2, 8, 6], [2, 1, 2])


def slots(result):
    """Return the job of each unit slot; in this example never more than one runs."""
    drawn = []
    for slot in range(int(result.jobs["end_time"].max())):
        spans = result.intervals
        here = spans[(spans["start"] <= slot) & (spans["end"] > slot)]
        assert len(here) == 1
        drawn.append(int(here["job_id"].iloc[0]))
    return " ".join(map(str, drawn))


SRSF = "1 1 2 2 2 2 2 2 2 2 3 3 3 3 3 3"
GITTINS = "1 1 2 2 2 2 3 3 2 2 2 2 3 3 3 3"
LAS = "1 2 3 2 1 2 3 2 2 3 2 2 3 2 3 3"


@pytest.mark.parametrize(
    ("policy", "drawn", "ends", "average"),
    [
        (make("srsf"), SRSF, [2, 10, 16], 28 / 3),
        (make("las-2d", quantum=1.0), LAS, [5, 14, 16], 35 / 3),
        (make("tiresias-l", thresholds=(4,)), GITTINS, [2, 12, 16], 10),
        (make("tiresias-g", thresholds=(4,), history=HISTORY), GITTINS, [2, 12, 16], 10),
        (ByIndex(MeanServiceIndex(np.array(HISTORY, float))), GITTINS, [2, 12, 16], 10),
        # the formula of Pseudocode 1 taken literally gives the SRSF row, not the drawn one
        (ByIndex(GittinsIndex(np.array(HISTORY, float))), SRSF, [2, 10, 16], 28 / 3),
    ],
    ids=["srsf", "las-2d", "tiresias-l", "tiresias-g", "gittins-mean", "gittins-literal"],
)
def test_schedules(policy, drawn, ends, average):
    result = simulate(three_jobs(), "1x2", policy, interval=1.0)
    assert slots(result) == drawn
    assert result.jobs["end_time"].tolist() == ends
    assert result.jobs["jct"].mean() == pytest.approx(average)


@pytest.mark.parametrize("delta", [1, 2, 3, 4, 8])
def test_no_fixed_quantum_of_the_literal_formula_gives_the_drawn_row(delta):
    policy = ByIndex(GittinsIndex(np.array(HISTORY, float), delta))
    result = simulate(three_jobs(), "1x2", policy, interval=1.0)
    assert result.jobs["jct"].mean() == pytest.approx(28 / 3)


@pytest.mark.parametrize("thresholds", [(4,), (4, 8)])
def test_queues_give_the_drawn_row_without_slots(thresholds):
    result = simulate(three_jobs(), "1x2", make("tiresias-l", thresholds=thresholds))
    assert result.jobs["end_time"].tolist() == [2, 12, 16]


def test_literal_index_values():
    index = GittinsIndex(np.array(HISTORY, float))
    expected = [1 / 8, 1 / 7, 1 / 6, 1 / 3, 1 / 6, 1 / 5, 1 / 4, 1 / 2, 1 / 4, 1 / 3, 1 / 2, 1]
    assert [index(float(a)) for a in range(12)] == pytest.approx(expected)
    assert index(12.0) == 0


def test_mean_service_index_values():
    index = MeanServiceIndex(np.array(HISTORY, float))
    assert [1 / index(a) for a in (0, 3.9, 4, 7.9, 8, 11.9)] == pytest.approx(
        [8, 8, 10, 10, 12, 12]
    )


# Pseudocodes 1 and 2 -----------------------------------------------------------------------------


def spans(result, job):
    rows = result.intervals[result.intervals["job_id"] == job]
    return list(zip(rows["start"].tolist(), rows["end"].tolist(), strict=True))


def test_a_job_is_demoted_at_the_instant_it_crosses_its_limit():
    """W = 2 and 10 GPU-seconds: after 5 s the fresh job takes over, not before."""
    result = simulate(trace([0, 1], [20, 4], [2, 2]), "1x2", make("tiresias-l", thresholds=(10,)))
    assert spans(result, 1) == [(0, 5), (9, 24)]
    assert spans(result, 2) == [(5, 9)]


def test_a_queue_is_fifo_by_first_start():
    """Job 3 arrived after job 2 but fitted first; once both are demoted it stays ahead."""
    jobs = trace([0, 1, 2], [6, 30, 30], [1, 2, 1])
    result = simulate(jobs, "1x2", make("tiresias-l", thresholds=(8,)))
    assert spans(result, 1) == [(0, 6)]
    # at 10 s job 3 has had its 8 GPU-seconds and job 2, still in queue 1, takes both GPUs; at 14 s
    # both are in the last queue, where job 3 counts as the older one
    assert spans(result, 3) == [(2, 10), (14, 36)]
    assert spans(result, 2) == [(10, 14), (36, 62)]


def test_jobs_of_the_last_queue_run_one_after_the_other():
    jobs = trace([0, 1, 2], [50, 50, 50], [2, 2, 2])
    result = simulate(jobs, "1x2", make("tiresias-l", thresholds=(4,)))
    assert spans(result, 1) == [(0, 2), (6, 54)]
    assert spans(result, 2) == [(2, 4), (54, 102)]
    assert spans(result, 3) == [(4, 6), (102, 150)]
    assert result.jobs["preemptions"].tolist() == [1, 1, 1]


def test_promotion_resets_the_clocks_but_keeps_progress():
    """Waited as long as it had run: back to queue 1 with a full allowance, nothing lost."""
    jobs = trace([0, 2, 3], [10, 20, 20], [1, 1, 1])
    policy = make("tiresias-l", thresholds=(4,), promote_knob=1)
    result = simulate(jobs, "1x1", policy)
    first = result.jobs.iloc[0]
    assert first["promotions"] >= 1
    assert spans(result, 1)[0] == (0, 4)
    again = spans(result, 1)[1]
    # it has waited 4 s at 8 s and gets the GPU back there for another 4 s of its allowance
    assert again[0] == 8
    assert again[1] - again[0] == 4
    assert sum(end - start for start, end in spans(result, 1)) == 10


def test_without_promotion_the_same_job_waits_for_the_others():
    jobs = trace([0, 2, 3], [10, 3, 3], [1, 1, 1])
    result = simulate(jobs, "1x1", make("tiresias-l", thresholds=(4,)))
    assert spans(result, 1) == [(0, 4), (10, 16)]
    assert result.jobs["promotions"].sum() == 0


def test_selected_jobs_keep_their_gpus():
    """Arrivals that do not win anything move nobody."""
    jobs = trace([0, 1, 2, 3], [40, 5, 5, 5], [2, 2, 2, 2])
    result = simulate(jobs, "1x4", make("tiresias-l", thresholds=(3200,)))
    assert spans(result, 1) == [(0, 40)]


def test_what_does_not_fit_is_skipped():
    jobs = trace([0, 1, 2], [10, 10, 3], [3, 4, 1])
    result = simulate(jobs, "1x4", make("tiresias-l"))
    assert result.jobs["start_time"].tolist() == [0, 10, 2]


def test_gittins_sorts_inside_a_queue_and_so_preempts_more():
    """At every event the index is read again; tiresias-l leaves the running job alone."""
    jobs = trace([0, 3, 4], [9, 9, 2], [1, 1, 1])
    history = (2.0, 30.0, 40.0, 50.0)
    lax = simulate(jobs, "1x1", make("tiresias-l", thresholds=(100,)))
    keen = simulate(jobs, "1x1", make("tiresias-g", thresholds=(100,), history=history))
    assert lax.jobs["preemptions"].sum() == 0
    assert keen.jobs["preemptions"].sum() > 0
