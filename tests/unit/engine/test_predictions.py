"""Completions predicted anew at every event: it is enough to know the earliest."""

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.engine.interval_starts import IntervalStarts
from repro.model.rules import Completions
from repro.trace import synth


class Looking(type(make("srtf"))):
    """Sees completions once a day, several at once."""

    def completions(self):
        return Completions(poll_s=86_400.0)


@pytest.mark.parametrize("policy", ["muri-s", "muri-l", "antman", "srtf", Looking()])
def test_predicting_all_completions_changes_nothing(monkeypatch, policy):
    trace = synth.make("muri-like", np.random.default_rng(3), jobs=100, trace="1")
    # two jobs of each kind at once, so that completions tie
    trace = pd.concat([trace, trace.assign(job_id=trace["job_id"] + 1000)]).sort_values(
        ["submit_time", "job_id"], ignore_index=True
    )
    predicted = IntervalStarts.predicted
    counts = []

    def counted(self, *args, predict_all):
        ends = list(predicted(self, *args, predict_all=predict_all))
        counts.append(len(ends))
        return ends

    monkeypatch.setattr(IntervalStarts, "predicted", counted)
    few = simulate(trace, "4x8", policy, rules="muri")
    assert 1 in counts and max(counts) > 1, "some completions are predicted alone, others tie"

    monkeypatch.setattr(
        IntervalStarts,
        "predicted",
        lambda self, *args, predict_all: predicted(self, *args, predict_all=True),
    )
    all_predicted = simulate(trace, "4x8", policy, rules="muri")
    pd.testing.assert_frame_equal(few.jobs, all_predicted.jobs, check_exact=True)
    pd.testing.assert_frame_equal(few.intervals, all_predicted.intervals, check_exact=True)
