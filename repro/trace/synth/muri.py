"""Muri-like traces: the marginal distributions of the public traces, none of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files.tables import measured
from repro.trace.dressing import profile_columns
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, proportional_counts, ranked_probabilities

#: Names of the traces.
TRACES = ("1", "2", "3", "4", "testbed")
#: Levels (0 to 1) of the quantiles in the measured tables.
LEVELS = (
    0.0,
    0.01,
    0.02,
    0.035,
    *np.arange(1, 19) / 20,
    0.925,
    0.95,
    0.965,
    0.975,
    0.985,
    0.99,
    0.995,
    1.0,
)
#: Columns of these quantiles.
QUANTILES = [f"q{round(100 * level, 1):g}" for level in LEVELS]
#: Models that each further job type adds (artifact, job_type_1.csv to job_type_4.csv).
JOB_TYPES = (
    ("bert", "gpt2"),
    ("vgg16", "vgg19"),
    ("resnet18", "shufflenet_v2_x1_0"),
    ("a2c", "dqn"),
)
_COLUMNS = [
    "job_id",
    "submit_time",
    "duration",
    "num_gpus",
    "model",
    "batch_size",
    "iterations",
    "iteration_time",
    "priority",
    "stage_storage",
    "stage_gpu",
    "stage_network",
]


@generators.register("muri-like")
def muri_like(
    rng: np.random.Generator,
    trace: str = "3",
    jobs: int | None = None,
    at_once: bool = False,
    job_types: int = 4,
) -> pd.DataFrame:
    """Generate a trace like one of Muri's: four Philly virtual clusters and the testbed's excerpt.

    Jobs per GPU count, and total duration per GPU count, are those of the public trace. Gaps and
    durations follow its quantiles, in random order. All models have equally many jobs. Half of the
    jobs have priority 1, the other half 0. ``iterations`` is the number of whole iterations in the
    duration, at least 1.

    The same generator state gives the same jobs with and without ``at_once``. It gives the same
    arrivals, GPU counts and durations for any ``job_types``.

    Options: ``trace`` is 1, 2, 3, 4 or testbed; ``jobs`` keeps proportions and arrival rate (by
    default as many as in the public trace); ``at_once`` submits all jobs at 0, as in the traces 1'
    to 4'; ``job_types`` (1 to 4) is the number of job types with models in the trace.

    Muri, SIGCOMM 2022, section 6.1; measured tables ``traces/muri_*.csv``.
    """
    if trace not in TRACES:
        raise ParamError(f"trace={trace!r}: give one of {', '.join(TRACES)}")
    if job_types not in range(1, len(JOB_TYPES) + 1):
        raise ParamError(f"job_types={job_types!r}: give 1 to {len(JOB_TYPES)}")
    # A row for each GPU count.
    table = measured("muri_durations").query("trace == @trace")
    published_jobs = int(table["jobs"].sum())
    total = published_jobs if jobs is None else int(jobs)
    counts = proportional_counts(table["jobs"].to_numpy(np.int64), total)
    num_gpus = rng.permutation(np.repeat(table["num_gpus"].to_numpy(np.int64), counts))
    duration = np.empty(total)
    for _, row in table.iterrows():
        rows = np.flatnonzero(num_gpus == row["num_gpus"])
        duration[rows] = _durations(rng, row, rows.size)
    submit = _submissions(rng, trace, total, total / published_jobs)
    priority = rng.permutation(np.arange(total) % 2)
    models = [name for pair in JOB_TYPES[:job_types] for name in pair]
    frame = pd.DataFrame(
        {
            "job_id": np.arange(total),
            "submit_time": np.zeros(total) if at_once else submit,
            "duration": duration,
            "num_gpus": num_gpus,
            "model": pd.Series(rng.permutation(np.resize(models, total))).astype("str"),
        }
    )
    return frame.join(profile_columns(frame, ("muri",))).assign(priority=priority)[_COLUMNS]


def _durations(rng: np.random.Generator, row: pd.Series[Any], size: int) -> Floats:
    """Durations (whole s) of ``size`` jobs of one GPU count; the tail meets the total duration."""
    quantiles = row[QUANTILES].to_numpy(float)
    u = ranked_probabilities(rng, rng.permutation(size))
    sampled = inverse_cdf(u, np.asarray(LEVELS), quantiles)
    return _to_total(sampled, row["total_s"] * size / row["jobs"], quantiles[-1])


def _submissions(rng: np.random.Generator, trace: str, jobs: int, share: float) -> Floats:
    """Submit times (s) over ``share`` of the span of the public trace, (jobs,)."""
    row = measured("muri_gaps").query("trace == @trace").iloc[0]
    quantiles = row[QUANTILES].to_numpy(float)
    u = ranked_probabilities(rng, rng.permutation(jobs - 1))
    sampled = inverse_cdf(u, np.asarray(LEVELS), quantiles + 1) - 1
    gaps = _to_total(sampled, row["span_s"] * share, quantiles[-1])
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _to_total(values: Floats, total: float, longest: float) -> Floats:
    """Whole numbers: the upper tenth of ``values`` is scaled so that the sum is near ``total``."""
    if values.size == 0:
        return values
    tail = values >= np.quantile(values, 0.9)
    tail_sum = values[tail].sum()
    factor = (total - values[~tail].sum()) / tail_sum if tail_sum else 1.0
    stretched = np.where(tail, values * np.clip(factor, 0.5, 2.0), values)
    return np.asarray(np.clip(np.round(stretched), 0, longest))
