"""The job table: work in seconds, iterations or steps."""

import pandas as pd
import pytest

from repro import simulate
from repro.base.errors import TraceError


def test_a_job_of_no_steps_has_no_time_of_a_step():
    jobs = pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": [0.0, 0.0],
            "duration": [100.0, 10.0],
            "num_gpus": 1,
            "iterations": [50.0, 0.0],
        }
    )
    with pytest.raises(TraceError, match=r"row 1 \(job b\) has 0 iterations and a duration"):
        simulate(jobs, "1x4", "srtf", rules="gavel")
    timed = jobs.assign(iteration_time=2.0)
    assert simulate(timed, "1x4", "srtf", rules="gavel").jobs["end_time"].tolist() == [100, 0]
