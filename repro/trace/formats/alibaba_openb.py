"""Alibaba's GPU-sharing trace of 2023 (openb): pods that ask for a part of a GPU, or several."""

import numpy as np

from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS
from repro.trace.schema import MAX_TIME_S

_REQUIRED = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")
_SECONDS = f"a time is seconds from the start of the trace, 0 to {MAX_TIME_S:,.0f}"


@FORMATS.register("alibaba-openb")
def read(document: Document) -> Parsed:
    """Read the pod list of Alibaba's GPU-sharing trace of 2023 (openb).

    Columns: name, num_gpu, gpu_milli, creation_time, deletion_time, scheduled_time; optional:
    gpu_spec.

    A pod is a job: it arrives at ``creation_time`` and runs from ``scheduled_time`` to
    ``deletion_time``. A pod asking for part of a GPU has ``num_gpus`` 1 and ``gpu_share`` =
    ``gpu_milli`` / 1000. Dropped and counted: pods without a GPU, never scheduled, without an end,
    or that ran for no time.

    Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent", ATC 2023.
    """
    table = Table(document, _REQUIRED, text=("gpu_spec",), ids="name")
    gpus = table.numbers("num_gpu", "a pod asks for 0 or more GPUs", low=0)
    share = table.numbers("gpu_milli", "thousandths of a GPU, 0 to 1000", low=0) / 1000.0
    starts = table.numbers("scheduled_time", _SECONDS, low=0, high=MAX_TIME_S, required=False)
    ends = table.numbers("deletion_time", _SECONDS, low=0, high=MAX_TIME_S, required=False)
    parsed = table.parsed(
        also=("scheduled_time",),
        job_id="name",
        submit_time="creation_time",
        duration="deletion_time",
        num_gpus="num_gpu",
        gpu_share="gpu_milli",
        gpu_type="gpu_spec",
    )
    parsed.frame["duration"] = ends - starts
    parsed.frame["gpu_share"] = share
    parsed.drop(
        {
            "no GPU": gpus == 0,
            "never scheduled": np.isnan(starts),
            "no end": np.isnan(ends),
            "ran for 0 s": ends == starts,
        }
    )
    if "gpu_type" in parsed.frame and parsed.frame["gpu_type"].isna().all():
        del parsed.frame["gpu_type"]
    return parsed
