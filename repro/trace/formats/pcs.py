"""PCS's app CSV: work in GPU-seconds, arrivals as gaps."""

import numpy as np

from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS
from repro.trace.schema import MAX_TIME_S

_GAP = f"a gap is 0 to {MAX_TIME_S:,.0f} s"


@FORMATS.register("pcs")
def read(document: Document) -> Parsed:
    """Read PCS's app CSV: work in GPU-seconds, arrivals as gaps.

    Columns: app_id, service, num_jobs, sleep_time; optional: model_name.

    As in the artifact an app arrives at the running sum of ``sleep_time`` (the first row's counts)
    and its ``submit_time`` is not looked at: the two differ in the testbed trace. ``num_jobs`` is
    the number of GPUs: the testbed's apps have that many trials of one GPU each, scheduled as one
    job. Duration is ``service / num_jobs``, the run time at full demand when speed-up is linear;
    with the sub-linear speed-ups of the Philly files the recorded run time is ``service / S``.

    PCS, artifact ``simulation/traces`` and ``testbed/traces``.
    """
    required = ("app_id", "service", "num_jobs", "sleep_time")
    table = Table(document, required, text=("model_name",), ids="app_id")
    parsed = table.parsed(
        job_id="app_id",
        submit_time="sleep_time",
        duration="service",
        num_gpus="num_jobs",
        model="model_name",
    )
    gaps = table.numbers("sleep_time", _GAP, low=0, high=MAX_TIME_S)
    service = table.numbers("service", "service is GPU-seconds above 0")
    parsed.frame["submit_time"] = np.cumsum(gaps)
    gpus = table.numbers("num_jobs", "an app asks for 1 or more GPUs", low=1)
    parsed.frame["duration"] = service / gpus
    return parsed
