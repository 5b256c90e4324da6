"""The Helios job log: a Slurm record of GPU and CPU jobs."""

import numpy as np

from repro.files.table import Document, Parsed, Table, elapsed
from repro.trace.formats import FORMATS

_REQUIRED = ("job_id", "gpu_num", "submit_time", "start_time", "end_time", "duration")


@FORMATS.register("helios")
def read(document: Document) -> Parsed:
    """Read ``cluster_log.csv`` of Helios, a Slurm record of GPU and CPU jobs.

    Columns: job_id, gpu_num, submit_time, start_time, end_time, duration; optional: user, vc.

    Duration is the recorded run time in seconds. Dropped and counted: jobs without a GPU, jobs
    without start, end or duration, and jobs that ran for 0 s. Submit times count from the
    earliest job kept.

    Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU
    Datacenters", SC 2021.
    """
    dates = ("submit_time", "start_time", "end_time")
    table = Table(document, _REQUIRED, text=("user", "vc", *dates), ids="job_id")
    parsed = table.parsed("job_id", "submit_time", "duration", "user", "vc", num_gpus="gpu_num")
    gpus = table.numbers("gpu_num", "a job holds 0 or more GPUs", low=0)
    seconds = table.numbers("duration", "a duration is seconds, 0 or more", low=0, required=False)
    started, ended = (table.times(column, required=False) for column in dates[1:])
    never = (started.isna() | ended.isna()).to_numpy()
    submitted = table.times("submit_time")
    parsed.drop(
        {
            "no GPU": gpus == 0,
            "never ran": never,
            "no duration": np.isnan(seconds),
            "ran for 0 s": seconds == 0,
        }
    )
    parsed.frame["submit_time"] = elapsed(submitted[parsed.frame.index])
    return parsed
