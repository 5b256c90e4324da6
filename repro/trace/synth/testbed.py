"""The 480-job workload of the Tiresias testbed, rebuilt from the published facts."""

from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.trace.synth import generators
from repro.trace.synth.draws import proportional_counts

#: Ten models, in the order of the paper's figures.
MODELS = (
    "vgg19",
    "vgg16",
    "vgg11",
    "alexnet",
    "resnet152",
    "resnet101",
    "resnet50",
    "inception4",
    "inception3",
    "googlenet",
)
#: GPUs of a job -> number of such jobs among 480 (section 5.1).
GPU_COUNTS = {1: 240, 2: 40, 4: 80, 8: 90, 16: 25, 32: 5}
#: Largest number of GPUs of a small job.
SMALL_GPUS = 4
#: Share of long jobs among small jobs, SL / (SS + SL) of Table 3, and among large jobs,
#: LL / (LS + LL). By GPU counts 75 % of the jobs are small, by Table 3 76 %, so the row totals of
#: the table cannot be met.
LONG_OF_SMALL = 12.5 / 76.0
LONG_OF_LARGE = 7.5 / 24.0

# Shift, scale and limit (s) of truncated exponentials. The scales are a free choice, calibrated
# once so that the total work meets the published makespan and queueing delays.
_SHORT = (120.0, 110.0, 680.0)
_LONG = (800.0, 1500.0, 6400.0)
_PUBLISHED_JOBS = sum(GPU_COUNTS.values())
_WORK = (22e3 * 60, 27e3 * 60)  # GPU-seconds of 480 jobs
_MEAN_DURATION = (595.0, 680.0)


@generators.register("testbed")
def tiresias_testbed(
    rng: np.random.Generator,
    jobs: int = 480,
    gaps: str = "exponential",
    mean_gap: float = 30.0,
    work: float = 1.0,
) -> pd.DataFrame:
    """Generate the Tiresias testbed workload.

    GPU counts, model balance and the bins of Table 3 are the same in every trace; durations, their
    order and the gaps differ. The published makespan and queueing delays imply a total work of
    22,000 to 27,000 s on all 60 GPUs and a mean duration of 595 to 680 s. From 480 jobs on,
    durations are sampled again until both hold; smaller workloads vary too much for that.

    Options: ``jobs`` other than 480 scale the published counts. ``gaps`` between submissions are
    ``exponential``, or whole seconds with a ``poisson`` law as in the sample trace of the public
    simulator. ``mean_gap`` is in seconds. ``work`` multiplies the durations, which are then cut to
    whole seconds. Below 1 it makes up for the time that the testbed lost to preemptions.

    Tiresias, NSDI 2019, section 5.1 and Table 3.
    """
    counts = proportional_counts(np.array(list(GPU_COUNTS.values())), jobs)
    num_gpus = rng.permutation(np.repeat(list(GPU_COUNTS), counts))
    duration = _durations(rng, num_gpus)
    while jobs >= _PUBLISHED_JOBS and not _like_published(duration, num_gpus):
        duration = _durations(rng, num_gpus)
    model = rng.permutation(np.resize(MODELS, jobs))
    return pd.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": _submissions(rng, jobs, gaps, mean_gap),
            "duration": np.maximum(np.floor(work * duration), 1.0),
            "num_gpus": num_gpus.astype(np.int64),
            "model": pd.Series(model).astype("str"),
            "num_ps": np.where(num_gpus > 1, num_gpus, 0).astype(np.int64),
        }
    )


def _durations(rng: np.random.Generator, num_gpus: Ints) -> Floats:
    """Durations (whole s) with the published share of long jobs, (jobs,)."""
    duration = np.floor(_truncated_exponential(rng, num_gpus.size, *_SHORT))
    for members, share in (
        (np.flatnonzero(num_gpus <= SMALL_GPUS), LONG_OF_SMALL),
        (np.flatnonzero(num_gpus > SMALL_GPUS), LONG_OF_LARGE),
    ):
        chosen = rng.permutation(members)[: int(members.size * share)]
        duration[chosen] = np.floor(_truncated_exponential(rng, chosen.size, *_LONG))
    return np.asarray(duration)


def _like_published(duration: Floats, num_gpus: Ints) -> bool:
    """Whether mean duration and work are in the ranges that the published figures imply."""
    work = duration @ num_gpus / (duration.size / _PUBLISHED_JOBS)
    lowest, highest = _WORK
    shortest, longest = _MEAN_DURATION
    return bool(lowest <= work <= highest and shortest <= duration.mean() <= longest)


def _truncated_exponential(
    rng: np.random.Generator, size: int, shift: float, scale: float, limit: float
) -> Floats:
    """``shift`` plus an exponential of mean ``scale`` that is truncated at ``limit``, (size,)."""
    probability = -np.expm1(-limit / scale)  # that the exponential is below the limit
    return np.asarray(shift - scale * np.log1p(-rng.random(size) * probability))


def _submissions(rng: np.random.Generator, jobs: int, gaps: str, mean_gap: float) -> Floats:
    """Submit times (whole s), the first at 0, (jobs,)."""
    samplers: dict[str, Any] = {"exponential": rng.exponential, "poisson": rng.poisson}
    if gaps not in samplers:
        raise ParamError(f"gaps={gaps!r}: give one of {', '.join(samplers)}")
    gaps_s = samplers[gaps](mean_gap, jobs - 1).astype(float)
    return np.asarray(np.floor(np.concatenate([[0.0], np.cumsum(gaps_s)])))
