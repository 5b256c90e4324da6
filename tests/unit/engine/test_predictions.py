"""Completions predicted anew at every event: it is enough to know the earliest."""

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.engine.holdings import Holdings
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
    predict = Holdings.predict_all
    kept = []

    def counted(self, *args, far):
        predict(self, *args, far=far)
        kept.append(len(self.finish))

    monkeypatch.setattr(Holdings, "predict_all", counted)
    few = simulate(trace, "4x8", policy, rules="muri")
    assert 1 in kept and max(kept) > 1, "some completions stand alone, others tie"

    monkeypatch.setattr(
        Holdings, "predict_all", lambda self, *args, far: predict(self, *args, far=True)
    )
    every = simulate(trace, "4x8", policy, rules="muri")
    pd.testing.assert_frame_equal(few.jobs, every.jobs, check_exact=True)
    pd.testing.assert_frame_equal(few.intervals, every.intervals, check_exact=True)
