"""Traces one can follow by hand, and what became of their jobs."""

from __future__ import annotations

import numpy as np
import pandas as pd


def trace(*rows, **columns):
    """Rows are (submit, duration, gpus)."""
    submits, durations, widths = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "job_id": range(len(rows)),
            "submit_time": np.array(submits, float),
            "duration": np.array(durations, float),
            "num_gpus": widths,
            **columns,
        }
    )


def spans(result, job):
    """Return (start, end) of every interval of a job."""
    rows = result.intervals[result.intervals["job_id"] == job]
    return list(zip(rows["start"].tolist(), rows["end"].tolist(), strict=True))
