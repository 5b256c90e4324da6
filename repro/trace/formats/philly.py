"""The flat Philly CSV: one row per job of the 2017 trace."""

from repro.files.table import DATE_ADVICE, Document, Parsed, Table, elapsed
from repro.trace.formats import FORMATS
from repro.trace.runs import without_epoch


@FORMATS.register("philly")
def read(document: Document) -> Parsed:
    """Read the flat Philly CSV, one row per job of the trace of 2017.

    Columns: timestamp, duration, num_gpus; optional: cluster.

    The file has no ids: a job's id is its row number from 0. Submit times count from the earliest
    timestamp. The virtual cluster (``cluster``) becomes ``vc``. ``gpu_time`` is not used.

    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; flattened in the artifact of Sia (SOSP'23).
    """
    required = ("timestamp", "duration", "num_gpus")
    text = ("timestamp", "cluster")
    table = Table(document, required, text=text, units={"timestamp": "date"})
    parsed = table.parsed("duration", "num_gpus", submit_time="timestamp", vc="cluster")
    dates = table.times("timestamp")
    # 1970-01-01 among dates that are decades later stands for a date that is not set
    unset = without_epoch(dates.to_frame(), [])["timestamp"].isna().to_numpy(bool)
    accepted = f"all others are decades later; {DATE_ADVICE}"
    table.refuse(unset, "timestamp", "a date that is not set", accepted)
    parsed.frame["submit_time"] = elapsed(dates)
    parsed.frame.insert(0, "job_id", parsed.frame.index.to_numpy())
    return parsed
