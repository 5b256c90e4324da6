"""Muri-like traces: the marginals of the public ones, none of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files.tables import measured
from repro.perf.muri_models import muri_profiles
from repro.trace.synth import generators
from repro.trace.synth.draws import inverse_cdf, scaled, spread

#: Traces as the generator names them.
TRACES = ("1", "2", "3", "4", "testbed")
#: Levels of the quantiles in the measured tables, and their columns.
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
    """Draw a trace like one of Muri's: four Philly virtual clusters and the testbed's excerpt.

    Number of jobs per GPU count and total duration in each are those of the public trace; gaps and
    durations follow its quantiles, in random order. Models are drawn evenly, priorities are 0 or 1
    for one half each, and iterations are what fits into the duration. The same generator state
    gives the same jobs whether ``at_once`` or not, and the same arrivals, GPU counts and durations
    for any ``job_types``.

    Options: ``trace`` is 1, 2, 3, 4 or testbed; ``jobs`` keeps proportions and rate (by default as
    many as the public trace); ``at_once`` submits all at 0, as in the traces 1' to 4';
    ``job_types`` (1 to 4) is the number of types whose models are drawn.

    Muri, SIGCOMM 2022, section 6.1; measured tables ``traces/muri_*.csv``.
    """
    if trace not in TRACES:
        raise ParamError(f"trace={trace!r}: give one of {', '.join(TRACES)}")
    if job_types not in range(1, len(JOB_TYPES) + 1):
        raise ParamError(f"job_types={job_types!r}: give 1 to {len(JOB_TYPES)}")
    classes = measured("muri_durations").query("trace == @trace")
    published = int(classes["jobs"].sum())
    wanted = published if jobs is None else int(jobs)
    counts = scaled(classes["jobs"].to_numpy(np.int64), wanted)
    num_gpus = rng.permutation(np.repeat(classes["num_gpus"].to_numpy(np.int64), counts))
    duration = np.empty(wanted)
    for _, row in classes.iterrows():
        held = np.flatnonzero(num_gpus == row["num_gpus"])
        duration[held] = _durations(rng, row, held.size)
    submit = _submissions(rng, trace, wanted, wanted / published)
    priority = rng.permutation(np.arange(wanted) % 2)
    models = [name for pair in JOB_TYPES[:job_types] for name in pair]
    frame = pd.DataFrame(
        {
            "job_id": np.arange(wanted),
            "submit_time": np.zeros(wanted) if at_once else submit,
            "duration": duration,
            "num_gpus": num_gpus,
            "model": pd.Series(rng.permutation(np.resize(models, wanted))).astype("str"),
        }
    )
    known = muri_profiles().rename(columns={"stage_data": "stage_storage"})
    full = frame.merge(known, on=["model", "num_gpus"], how="left")
    iterations = np.maximum(np.floor(full["duration"] / full["iteration_time"] + 1e-9), 1)
    return full.assign(iterations=iterations, priority=priority)[_COLUMNS]


def _durations(rng: np.random.Generator, row: pd.Series[Any], size: int) -> Floats:
    """Return whole seconds; what the quantiles leave open in the tail meets the total duration."""
    quantiles = row[QUANTILES].to_numpy(float)
    drawn = inverse_cdf(spread(rng, rng.permutation(size)), np.asarray(LEVELS), quantiles)
    return _to_total(drawn, row["total_s"] * size / row["jobs"], quantiles[-1])


def _submissions(rng: np.random.Generator, trace: str, jobs: int, share: float) -> Floats:
    row = measured("muri_gaps").query("trace == @trace").iloc[0]
    quantiles = row[QUANTILES].to_numpy(float)
    u = spread(rng, rng.permutation(jobs - 1))
    drawn = inverse_cdf(u, np.asarray(LEVELS), quantiles + 1) - 1
    gaps = _to_total(drawn, row["span_s"] * share, quantiles[-1])
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _to_total(drawn: Floats, total: float, longest: float) -> Floats:
    """Return whole numbers whose upper tenth is stretched until the sum is about ``total``."""
    if drawn.size == 0:
        return drawn
    tail = drawn >= np.quantile(drawn, 0.9)
    factor = (total - drawn[~tail].sum()) / drawn[tail].sum() if drawn[tail].sum() else 1.0
    stretched = np.where(tail, drawn * np.clip(factor, 0.5, 2.0), drawn)
    return np.asarray(np.clip(np.round(stretched), 0, longest))
