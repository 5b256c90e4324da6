"""Tiresias Figure 12: how placement changes the time a job trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.core.records import Result, durations


def training_time(result: Result) -> pd.Series[float]:
    """Return the seconds each job held GPUs, in the order of ``result.jobs``.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> training_time(simulate(small_trace(), "1x4", "srtf")).tolist()
    [10.0, 4.0, 25.0, 3.0, 7.0, 5.0]
    """
    held = durations(result).groupby(result.intervals["job_id"]).sum()
    return held.reindex(result.jobs["job_id"]).reset_index(drop=True)


def placement_ratios(
    random: Mapping[int, Result], tiresias: Mapping[int, Result], sensitive: Sequence[str]
) -> pd.DataFrame:
    """Return how much longer each distributed job trained where its GPUs were drawn at random.

    Parameters
    ----------
    random, tiresias : mapping
        Seed to records of the same workload under the two placements.
    sensitive : sequence of str
        Models that lose from being spread.

    Returns
    -------
    DataFrame
        seed, job_id, model, num_gpus, group (``sensitive`` or ``other``), ratio; jobs of at least
        2 GPUs only.

    References
    ----------
    Tiresias, NSDI 2019, section 5.2.3, Figure 12.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> run = simulate(small_trace().assign(model="VGG16"), "1x4", "srtf")
    >>> placement_ratios({0: run}, {0: run}, ["VGG16"])["ratio"].unique().tolist()
    [1.0]
    """
    frames = []
    for seed, result in random.items():
        ratio = training_time(result) / training_time(tiresias[seed])
        jobs = result.jobs[["job_id", "model", "num_gpus"]]
        group = np.where(jobs["model"].isin(list(sensitive)), "sensitive", "other")
        frame = jobs.assign(seed=seed, group=group, ratio=ratio)
        frames.append(frame[frame["num_gpus"] > 1])
    return pd.concat(frames, ignore_index=True)
