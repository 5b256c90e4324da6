"""Tools for people who write policies: a small trace (and, below, the conformance battery)."""

from __future__ import annotations

import pandas as pd


def small_trace() -> pd.DataFrame:
    """Return six jobs for four GPUs, for examples.

    Examples
    --------
    >>> small_trace()["num_gpus"].max()
    np.int64(4)
    """
    return pd.DataFrame(
        {
            "job_id": [0, 1, 2, 3, 4, 5],
            "submit_time": [0.0, 1.0, 1.0, 4.0, 9.0, 30.0],
            "duration": [10.0, 4.0, 25.0, 3.0, 7.0, 5.0],
            "num_gpus": [2, 1, 4, 1, 2, 4],
        }
    )
