"""Elastic SRSF by hand: the order of jobs that were stopped together."""

import pandas as pd

from repro import simulate


def test_jobs_stopped_together_keep_their_order():
    """Four equal jobs stop at 2 s for a job of four GPUs, and wait for four jobs of one GPU.

    Those run from 3 s on and end one by one from 6 s on, when the equal jobs have 8 s left.
    """
    jobs = pd.DataFrame(
        {
            "job_id": range(9),
            "submit_time": [0.0] * 4 + [2.0] + [2.5] * 4,
            "duration": [10.0] * 4 + [1.0, 3.0, 4.0, 5.0, 6.0],
            "num_gpus": [1] * 4 + [4] + [1] * 4,
        }
    )
    result = simulate(jobs, "1x4", "srsf-elastic")
    assert result.jobs["end_time"].tolist() == [14, 15, 16, 17, 3, 6, 7, 8, 9]
