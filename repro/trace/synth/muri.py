"""Muri-like traces: the marginal distributions of the public traces, none of their rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.files.tables import measured
from repro.trace.dressing import profile_columns
from repro.trace.synth import generators, marginals

#: Names of the traces.
TRACES = ("1", "2", "3", "4", "testbed")
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

    Options: ``trace`` is 1, 2, 3, 4 or testbed; ``jobs`` is the number of jobs, by default that
    of the public trace (proportions and arrival rate are the same at any number); ``at_once``
    submits all jobs at 0, as in the traces 1' to 4'; ``job_types`` (1 to 4) is the number of job
    types with models in the trace.

    Muri, SIGCOMM 2022, section 6.1; measured tables ``traces/muri_*.csv``.
    """
    if trace not in TRACES:
        raise ParamError(f"trace={trace!r}: give one of {', '.join(TRACES)}, as text")
    if job_types not in range(1, len(JOB_TYPES) + 1):
        raise ParamError(f"job_types={job_types!r}: give 1 to {len(JOB_TYPES)}")
    durations = measured("muri_durations").query("trace == @trace")
    gaps = measured("muri_gaps").query("trace == @trace").iloc[0]
    num_gpus, duration, submit = marginals.sample(rng, durations, gaps, jobs)
    total = len(submit)
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
