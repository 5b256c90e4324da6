"""Policies that know past jobs: a threshold, or the distribution of GPU-time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.model.policy import Policy, make

#: Quantiles of GPU-time that stand for the distribution.
_QUANTILES = 1000


def tuned(name: str, trace: pd.DataFrame, **settings: Any) -> Policy:
    """Policy whose threshold or history comes from the jobs of a trace.

    ``tiresias-l`` has one threshold, the median of the jobs' GPU-times, and ``gittins-2d`` knows
    their distribution (Tiresias, sections 3.2.2 and 3.2.3). Other policies take nothing from the
    trace.

    Parameters
    ----------
    name : str
        Registered policy.
    trace : DataFrame
        Past jobs, with ``duration`` (s) and ``num_gpus``.
    **settings
        Further parameters of the policy; they win over those of the trace.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> tuned("tiresias-l", small_trace()).thresholds
    (17.0,)
    """
    gpu_time_s = (trace["duration"] * trace["num_gpus"]).to_numpy(float)
    settings_from_jobs: dict[str, dict[str, Any]] = {
        "tiresias-l": {"thresholds": (float(np.median(gpu_time_s)),)},
        "gittins-2d": {"history": tuple(np.quantile(gpu_time_s, np.linspace(0, 1, _QUANTILES)))},
    }
    return make(name, **{**settings_from_jobs.get(name, {}), **settings})
