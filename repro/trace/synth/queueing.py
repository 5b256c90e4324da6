"""Textbook queues as traces: single-GPU jobs whose mean response time has a closed form."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.trace.synth import generators
from repro.trace.synth.draws import jobs_with_gaps


@generators.register("mm")
def mm(
    rng: np.random.Generator,
    jobs: int = 10_000,
    num_gpus: int = 1,
    load: float = 0.7,
    mean_duration: float = 60.0,
) -> pd.DataFrame:
    """Generate M/M/c: Poisson arrivals, exponential durations, ``num_gpus`` single-GPU servers.

    ``load`` is the mean fraction of busy GPUs: arrival rate x ``mean_duration`` / ``num_gpus``.
    """
    return mg1(rng, jobs, load * num_gpus, mean_duration)


@generators.register("mg1")
def mg1(
    rng: np.random.Generator,
    jobs: int = 10_000,
    load: float = 0.7,
    mean_duration: float = 60.0,
    service: str = "exponential",
    scv: float = 4.0,
) -> pd.DataFrame:
    """Generate M/G/1: Poisson arrivals and a chosen law of durations, for one single-GPU server.

    ``load`` is the arrival rate x ``mean_duration`` (s). ``service`` is exponential, deterministic
    or hyperexponential. The last has a squared coefficient of variation ``scv`` above 1 and half of
    the work in each of two phases (balanced means).
    """
    gaps = rng.exponential(mean_duration / load, jobs - 1)
    duration = mean_duration * _unit_service(rng, jobs, service, scv)
    return jobs_with_gaps(gaps, duration=duration, num_gpus=np.ones(jobs, np.int64))


def _unit_service(rng: np.random.Generator, jobs: int, service: str, scv: float) -> Floats:
    """Durations of mean 1, (jobs,)."""
    if service == "deterministic":
        return np.ones(jobs)
    if service == "exponential":
        return rng.standard_exponential(jobs)
    if service != "hyperexponential":
        laws = "exponential, hyperexponential, deterministic"
        raise ParamError(f"service={service!r}: give one of {laws}")
    if scv <= 1:
        raise ParamError(f"scv={scv!r}: a hyperexponential law varies more, give a number above 1")
    p_short = 0.5 * (1 + np.sqrt((scv - 1) / (scv + 1)))
    is_short = rng.random(jobs) < p_short
    means = np.where(is_short, 0.5 / p_short, 0.5 / (1 - p_short))
    return np.asarray(means * rng.standard_exponential(jobs))
