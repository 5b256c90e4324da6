"""Philly-like traces: the real one's marginals and ups and downs, none of its rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro.errors import ParamError
from repro.trace.synth.gpu_time import at_load
from repro.trace.synth.philly_tables import Draw, draw_profile
from repro.trace.synth.registry import generators, positive


@generators.register("philly-like")
def philly_like(
    rng: np.random.Generator,
    jobs: int | None = None,
    load: float | None = None,
    num_gpus: int | None = None,
    min_duration: float | None = None,
) -> pd.DataFrame:
    """Draw a trace like the Philly trace of 2017: 82,247 jobs over 109 days.

    The profile of the whole trace is drawn (arrivals hour by hour with bursts and ten-minute
    probes, GPU counts, and durations whose heavy tail is stratified, so that total work hardly
    differs between draws). Fewer jobs are a stratified sample of it, more are several draws on top
    of each other: the span stays 109 days and the demand grows with ``jobs``, unless ``load``
    scales the time axis.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    jobs : int, optional
        Number of jobs; as many as the real trace has (after leaving out) when not given.
    load : float, optional
        Total work / (GPUs x time from first to last submission), met by scaling all gaps alike.
    num_gpus : int, optional
        GPUs of the cluster: needed with ``load``; wider jobs are left out.
    min_duration : float, optional
        Shorter jobs (s) are left out; the Tiresias paper keeps jobs of at least 60 s.

    References
    ----------
    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; measured tables ``traces/philly_*.csv``, written by ``repro.trace.calibrate``.
    """
    given = {"jobs": jobs, "load": load, "num_gpus": num_gpus, "min_duration": min_duration}
    for option, value in given.items():
        if value is not None:
            positive(option, value, whole=option in ("jobs", "num_gpus"))
    if load is not None and num_gpus is None:
        raise ParamError(f"load={load}: give num_gpus too, the GPUs the load refers to")

    def drawn() -> Draw:
        whole = draw_profile(rng)
        keep = (whole.num_gpus <= (num_gpus or np.inf)) & (whole.duration >= (min_duration or 0))
        if not keep.any():
            raise ParamError(f"min_duration={min_duration}: no Philly job lasts as long")
        return whole.take(np.flatnonzero(keep))

    parts = [drawn()]
    wanted = parts[0].size if jobs is None else jobs
    while (missing := wanted - sum(part.size for part in parts)) > 0:
        parts.append(drawn())
    if missing < 0:
        parts[-1] = parts[-1].take(_stratified(rng, parts[-1], parts[-1].size + missing))
    merged = Draw(
        np.concatenate([part.submit_time for part in parts]),
        np.concatenate([part.duration for part in parts]),
        np.concatenate([part.num_gpus for part in parts]),
    )
    merged = merged.take(np.argsort(merged.submit_time, kind="stable"))
    frame = pd.DataFrame(
        {
            "job_id": np.arange(wanted),
            "submit_time": merged.submit_time - merged.submit_time[0],
            "duration": merged.duration,
            "num_gpus": merged.num_gpus,
        }
    )
    return frame if load is None or num_gpus is None else at_load(frame, num_gpus, load)


def _stratified(rng: np.random.Generator, drawn: Draw, size: int) -> npt.NDArray[np.int64]:
    """Return ``size`` rows spread evenly over GPU counts and, inside each, over durations."""
    order = np.lexsort((drawn.duration, drawn.num_gpus))
    picked = (np.arange(size) + rng.random()) * (drawn.size / size)
    return np.sort(order[picked.astype(np.int64)])
