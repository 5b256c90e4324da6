"""The Tiresias simulator's job CSV: times in seconds, one row per job."""

from repro.base.errors import TraceError
from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS

#: Sets of columns. A file with all columns of a set is of Alibaba's PAI trace or its simulator.
_PAI_COLUMNS = ({"num_inst", "num_cpu", "wait_time"}, {"inst_num", "plan_cpu"}, {"plan_gpu"})


@FORMATS.register("tiresias")
def read(document: Document) -> Parsed:
    """Read the job CSV of Tiresias's simulator, times in seconds.

    Columns: job_id, num_gpu, submit_time, duration; optional: model_name, iterations.

    ``interval`` (gap to the next job) is not used. A file with the columns of Alibaba's PAI trace,
    whose ``num_gpu`` counts hundredths of a GPU, is refused.

    Tiresias (NSDI'19), artifact ``simulator/60_job.csv``.
    """
    required = ("job_id", "num_gpu", "submit_time", "duration")
    table = Table(document, required, text=("model_name",), ids="job_id")
    if "iteration_time" in table and "resource_time_0" in table:
        raise TraceError(
            f"{document.name}:1:resource_time_0: a column of Muri's traces, whose times are "
            "milliseconds; read it with format 'muri'"
        )
    if any(columns <= set(table.header) for columns in _PAI_COLUMNS):
        raise TraceError(
            f"{document.name}:1:num_gpu: columns of Alibaba's PAI trace, whose num_gpu counts "
            "hundredths of a GPU (50 is half a GPU); read it with format 'alibaba-pai', or "
            "divide it by 100 and write a table in format repro: num_gpus in whole GPUs, a part "
            "of a GPU as num_gpus 1 and gpu_share"
        )
    return table.parsed(
        "job_id", "submit_time", "duration", "iterations", num_gpus="num_gpu", model="model_name"
    )
