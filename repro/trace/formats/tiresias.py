"""The Tiresias simulator's job CSV: times in seconds, one row per job."""

from repro.base.errors import TraceError
from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS

_OF_PAI = ("num_inst", "num_cpu", "num_gpu", "wait_time")


@FORMATS.register("tiresias")
def read(document: Document) -> Parsed:
    """Read the job CSV of Tiresias's simulator, times in seconds.

    Columns: job_id, num_gpu, submit_time, duration; optional: model_name, iterations.

    ``interval`` (gap to the next job) is not used.

    Tiresias (NSDI'19), artifact ``simulator/60_job.csv``.
    """
    required = ("job_id", "num_gpu", "submit_time", "duration")
    table = Table(document, required, text=("model_name",), ids="job_id")
    if "iteration_time" in table and "resource_time_0" in table:
        raise TraceError(
            f"{document.name}:1:resource_time_0: a column of Muri's traces, whose times are "
            "milliseconds; read it with format 'muri'"
        )
    parsed = table.parsed(
        "job_id", "submit_time", "duration", "iterations", num_gpus="num_gpu", model="model_name"
    )
    if all(name in table for name in _OF_PAI):
        parsed.notes.append(
            "columns of Alibaba's PAI trace, whose num_gpu counts hundredths of a GPU: here they "
            "are whole GPUs"
        )
    return parsed
