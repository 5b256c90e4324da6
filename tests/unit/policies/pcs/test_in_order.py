"""Elastic SRSF by hand: the order of jobs that were stopped together."""

import pandas as pd

from repro import simulate


def test_jobs_stopped_together_keep_their_order():
    """Two equal jobs stop at 2 s for jobs of 1 s and 2 s, so that at 3 s one GPU is free."""
    jobs = pd.DataFrame(
        {
            "job_id": range(4),
            "submit_time": [0.0, 0.0, 2.0, 2.0],
            "duration": [10.0, 10.0, 1.0, 2.0],
            "num_gpus": 1,
        }
    )
    result = simulate(jobs, "1x2", "srsf-elastic")
    assert result.jobs["end_time"].tolist() == [11.0, 12.0, 3.0, 4.0]
