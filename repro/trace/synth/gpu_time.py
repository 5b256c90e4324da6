"""A Microsoft-like workload, and a history (GPU-times of past jobs), from published quantiles."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files.tables import measured
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, jobs_with_gaps, strata


@generators.register("philly-gpu-time")
def philly_gpu_time(
    rng: np.random.Generator, jobs: int = 4_000, num_gpus: int = 80, load: float = 0.5
) -> pd.DataFrame:
    """Generate jobs with published GPU-times, the public mix of GPU counts and Poisson arrivals.

    GPU-time and GPU count are independent. Both are stratified, so that total work differs by about
    a per cent between traces in spite of the heavy tail.

    ``load`` is total work / (``num_gpus`` x time from first to last submission) and is met exactly.
    GPU counts above ``num_gpus`` are left out of the mix.

    The quantiles come from the public Tiresias simulator. The mix is that of the Philly jobs of
    at least 2 minutes.
    """
    mix = measured("philly_gpu_mix")
    mix = mix[mix["num_gpus"] <= num_gpus]
    shares = np.cumsum(mix["share"].to_numpy(float))
    widths = mix["num_gpus"].to_numpy(np.int64)
    gpus = widths[np.searchsorted(shares / shares[-1], strata(rng, jobs), side="right")]
    duration = np.maximum(gpu_time_at(strata(rng, jobs)) / gpus, 1.0)
    sampled = jobs_with_gaps(rng.standard_exponential(jobs - 1), duration=duration, num_gpus=gpus)
    return at_load(sampled, num_gpus, load)


def at_load(frame: pd.DataFrame, num_gpus: int, load: float) -> pd.DataFrame:
    """Trace whose gaps are all scaled by one factor so that it offers ``load``."""
    submit = frame["submit_time"].to_numpy(float)
    span = submit[-1] - submit[0]
    if span <= 0:
        raise ParamError(f"load={load}: {len(frame)} job(s) submitted at once offer no load")
    work = float((frame["duration"] * frame["num_gpus"]).sum())
    return frame.assign(submit_time=(submit - submit[0]) * (work / (num_gpus * load) / span))


def gpu_time_at(u: Floats) -> Floats:
    """GPU-times (GPU-seconds) below which the part ``u`` of past jobs lies."""
    quantiles = measured("tiresias_gpu_time_quantiles")
    return inverse_cdf(
        u, quantiles["level"].to_numpy(float), quantiles["gpu_time_s"].to_numpy(float)
    )


def history_quantiles() -> Floats:
    """History of the Tiresias simulator: 1,001 quantiles, ascending, whole GPU-seconds.

    They are interpolated between quantiles of its file ``yarn-gput10000.csv``, which has no jobs
    under 2 minutes.
    """
    return np.asarray(np.round(gpu_time_at(np.linspace(0, 1, 1001))))
