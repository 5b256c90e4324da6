"""The flat Philly CSV: one row per job of the 2017 trace."""

from repro.files.table import Document, Parsed, Table, elapsed
from repro.trace.formats import FORMATS


@FORMATS.register("philly")
def read(document: Document) -> Parsed:
    """Read the flat Philly CSV, one row per job of the trace of 2017.

    Columns: timestamp, duration, num_gpus; optional: cluster.

    The file has no ids: a job's id is its row number from 0. Submit times count from the earliest
    timestamp; the virtual cluster (``cluster``) becomes ``vc``; ``gpu_time`` is not used.

    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; flattened in the artifact of Sia (SOSP'23).
    """
    table = Table(document, ("timestamp", "duration", "num_gpus"), text=("timestamp", "cluster"))
    parsed = table.parsed("duration", "num_gpus", submit_time="timestamp", vc="cluster")
    parsed.frame["submit_time"] = elapsed(table.times("timestamp"))
    parsed.frame.insert(0, "job_id", parsed.frame.index.to_numpy())
    return parsed
