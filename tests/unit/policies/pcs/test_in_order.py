"""Elastic SRSF by hand: the order of jobs that were stopped together."""

import pandas as pd

from repro import simulate


def test_jobs_stopped_together_keep_their_order():
    """Four equal jobs stop at 2 s for four shorter ones, which end one by one from 3 s on."""
    jobs = pd.DataFrame(
        {
            "job_id": range(8),
            "submit_time": [0.0] * 4 + [2.0] * 4,
            "duration": [10.0] * 4 + [1.0, 2.0, 3.0, 4.0],
            "num_gpus": 1,
        }
    )
    result = simulate(jobs, "1x4", "srsf-elastic")
    assert result.jobs["end_time"].tolist() == [11, 12, 13, 14, 3, 4, 5, 6]
