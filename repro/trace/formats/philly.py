"""The flat Philly CSV: one row per job of the 2017 trace."""

from __future__ import annotations

import numpy as np

from repro.files.parsed import Parsed
from repro.files.table import Document, Table, elapsed
from repro.trace.formats import FORMATS


@FORMATS.register("philly")
def read(document: Document) -> Parsed:
    r"""Read ``timestamp,duration,num_gpus,gpu_time,cluster``.

    The file has no ids: a job's id is its row number from 0. Submit times count from the earliest
    timestamp; the virtual cluster (``cluster``) becomes ``vc``; ``gpu_time`` is not used.

    Parameters
    ----------
    document : Document
        The file.

    Returns
    -------
    Parsed
        Rows in file order, which is not the order of submission.

    Raises
    ------
    TraceError
        If the file is no such table.

    References
    ----------
    Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
    ATC 2019; flattened in the artifact of Sia (SOSP'23).

    Examples
    --------
    >>> table = b"timestamp,duration,num_gpus\n2017-10-09 00:01:00,66,1\n2017-10-09,5,2\n"
    >>> read(Document("t", table)).frame.submit_time.tolist()
    [60.0, 0.0]
    """
    table = Table(document, ("timestamp", "duration", "num_gpus"), text=("timestamp", "cluster"))
    parsed = table.parsed(
        {
            "submit_time": "timestamp",
            "duration": "duration",
            "num_gpus": "num_gpus",
            "vc": "cluster",
        }
    )
    parsed.frame["submit_time"] = elapsed(table.times("timestamp"))
    parsed.frame.insert(0, "job_id", np.arange(len(parsed.frame)))
    return parsed
