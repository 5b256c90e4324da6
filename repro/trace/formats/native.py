"""The package's own CSV: the columns of the schema under their own names."""

from repro.files.spreadsheet import plain_cells
from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS
from repro.trace.schema import COLUMNS, REQUIRED


@FORMATS.register("repro")
def read(document: Document) -> Parsed:
    """Read the package's own CSV, as ``repro trace convert`` writes it.

    Columns: job_id, submit_time, duration, num_gpus; optional: gpu_share, gpu_type, user, vc,
    model, batch_size, iterations, iteration_time, service, num_ps, num_cpus, memory_mib,
    time_limit, gpu_mem_mb, bandwidth_mb_s, gpu_util, min_gpus, max_gpus, priority, priority_weight,
    slo, stage_storage, stage_cpu, stage_gpu, stage_network.

    Columns outside the schema are left out. Ids become integers if all are whole numbers. A ``'``
    in front of text that a spreadsheet would run as a formula is removed.
    """
    text = [name for name, column in COLUMNS.items() if column.value_type == "text"]
    table = Table(document, REQUIRED, text=text, ids="job_id")
    if b"'" in document.raw:
        table.frame = plain_cells(table.frame)
    return table.parsed(*COLUMNS)
