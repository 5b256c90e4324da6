"""Jobs with log-normal durations and two GPU counts: tail, width and load are options."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.trace.synth import generators
from repro.trace.synth.draws import jobs_with_gaps


@generators.register("lognormal")
def lognormal(
    rng: np.random.Generator,
    jobs: int = 300,
    load: float = 1.0,
    num_gpus: int = 64,
    mean_duration: float = 3600.0,
    sigma: float = 1.5,
    wide: float = 0.0,
    width: int = 8,
) -> pd.DataFrame:
    """Generate Poisson arrivals of jobs with log-normal durations, on one GPU or on ``width``.

    Options: ``mean_duration`` (s) is the mean of the law, and ``sigma`` the standard deviation of
    the logarithm; the larger, the heavier the tail. A share ``wide`` (0 to 1) of the jobs asks for
    ``width`` GPUs. ``load`` is the mean GPU-seconds of a job, divided by the GPU-seconds that
    ``num_gpus`` GPUs have in a mean gap. The same seed gives the same arrivals up to a factor,
    whatever the other options.
    """
    if wide > 1:
        raise ParamError(f"wide={wide!r}: give a share from 0 to 1")
    mean_gpus = 1 + wide * (width - 1)
    gap_s = mean_duration * mean_gpus / (num_gpus * load)
    gaps = gap_s * rng.standard_exponential(jobs - 1)
    normal = rng.standard_normal(jobs)
    is_wide = rng.random(jobs) < wide
    duration = mean_duration * np.exp(sigma * normal - sigma**2 / 2)
    return jobs_with_gaps(gaps, duration=duration, num_gpus=np.where(is_wide, width, 1))
