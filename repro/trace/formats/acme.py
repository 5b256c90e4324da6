"""AcmeTrace: the job logs of Shanghai AI Laboratory's clusters Seren and Kalos."""

from repro.files.table import Document, Parsed
from repro.trace.formats import FORMATS
from repro.trace.formats.helios import read_log

_REQUIRED = (
    "job_id",
    "gpu_num",
    "type",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "queue",
)


@FORMATS.register("acme")
def read(document: Document, attempts: str = "refuse") -> Parsed:
    """Read ``trace_seren.csv`` or ``trace_kalos.csv`` of AcmeTrace, jobs of two LLM clusters.

    Columns: job_id, gpu_num, type, state, submit_time, start_time, end_time, queue; optional:
    cpu_num, duration, user.

    The run time is ``end_time`` - ``start_time``. ``duration`` is the run time in the log of Seren,
    and queue plus run in the log of Kalos. A note counts the rows with queue plus run. Dates
    have an offset from UTC (+08:00), or none throughout the file. Submit times count from the
    earliest job kept. ``type`` (Pretrain, SFT, Evaluation, Debug, Other) is not used.

    The same jobs are kept as in format ``helios``: jobs of every state that ran. Dropped and
    counted: jobs that have no GPU or submit time, never ran, still run, end before they start, or
    ran for 0 s.

    Options: ``attempts`` as in format ``helios``.

    Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI 2024.
    """
    return read_log(document, _REQUIRED, attempts, with_queue=True)
