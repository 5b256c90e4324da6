"""Promotions of starved jobs by `TiresiasL`, by hand."""

import pandas as pd

from repro import make, simulate


def test_a_promoted_job_that_goes_on_waiting_is_promoted_once():
    """Limit 100 s, one GPU, a promotion after a wait of half the executed time.

    ====  ==========================================================================
    t     event
    ====  ==========================================================================
    100   A is demoted after 100 s, B starts
    150   A is promoted after a wait of 50 s and goes first, as it started first
    175   B, which has run for 50 s, is promoted after a wait of 25 s and goes on waiting
    200   B would have been demoted at this instant if it had not stopped
    250   A is demoted after 100 s, B runs
    ====  ==========================================================================
    """
    trace = pd.DataFrame(
        {"job_id": [0, 1], "submit_time": [0.0, 50.0], "duration": [200.0, 60.0], "num_gpus": 1}
    )
    policy = make("tiresias-l", thresholds=(100.0,), promote_knob=0.5)
    jobs = simulate(trace, "1x1", policy).jobs
    assert jobs["promotions"].tolist() == [1, 1]
    assert jobs["end_time"].tolist() == [250, 260]
