"""Alibaba's GPU-sharing trace of 2023 (openb): pods that demand a part of a GPU or whole GPUs."""

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Flags
from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS
from repro.trace.runs import NO_GPU, set_run_times
from repro.trace.schema import MAX_TIME_S

_REQUIRED = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")
_SECONDS = f"a time is seconds from the start of the trace, 0 to {MAX_TIME_S:,.0f}"
_CPUS = "thousandths of a CPU core, 0 or more"
_TIMES = {"submitted": "creation_time", "started": "scheduled_time", "ended": "deletion_time"}
_RUNNING = ("keep", "drop")


@FORMATS.register("alibaba-openb")
def read(document: Document, running: str = "keep") -> Parsed:
    """Read the pod list of Alibaba's GPU-sharing trace of 2023 (openb).

    Columns: name, num_gpu, gpu_milli, creation_time, deletion_time, scheduled_time; optional:
    cpu_milli, memory_mib, gpu_spec, pod_phase.

    A pod is a job: it arrives at ``creation_time`` and runs from ``scheduled_time`` to
    ``deletion_time``. A pod that demands part of a GPU has ``num_gpus`` 1 and ``gpu_share`` =
    ``gpu_milli`` / 1000. Its ``num_cpus`` is ``cpu_milli`` / 1000. Dropped and
    counted: pods that have no GPU or submit time, were never scheduled, still run (no end), end
    before they start, or ran for 0 s.

    Options: ``running`` is the treatment of pods whose ``pod_phase`` is Running, in upper or lower
    case. Their deletion time is the end of the record, not their completion. ``keep`` makes them
    jobs that end then; a note has their number and share of the GPU-seconds. ``drop`` leaves them
    out.

    Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent", ATC 2023.
    """
    if running not in _RUNNING:
        raise ParamError(f"running={running}: give {' or '.join(_RUNNING)}")
    table = Table(document, _REQUIRED, text=("gpu_spec", "pod_phase"), ids="name")
    gpus = table.numbers("num_gpu", "a pod asks for 0 or more GPUs", low=0)
    share = table.numbers("gpu_milli", "thousandths of a GPU, 0 to 1000", low=0) / 1000.0
    parsed = table.parsed(
        also_read=("scheduled_time", "pod_phase"),
        job_id="name",
        submit_time="creation_time",
        duration="deletion_time",
        num_gpus="num_gpu",
        gpu_share="gpu_milli",
        gpu_type="gpu_spec",
        num_cpus="cpu_milli",
        memory_mib="memory_mib",
    )
    parsed.frame["num_gpus"] = gpus
    parsed.frame["gpu_share"] = share
    if "cpu_milli" in table:
        cpus = table.numbers("cpu_milli", _CPUS, low=0, required=False) / 1000.0
        parsed.frame["num_cpus"] = cpus
    times = {
        name: table.numbers(column, _SECONDS, low=0, high=MAX_TIME_S, required=False)
        for name, column in _TIMES.items()
    }
    unfinished = np.zeros(len(gpus), np.bool_)
    if "pod_phase" in table:
        phase = table.frame["pod_phase"].str.strip().str.lower()
        unfinished = (phase == "running").to_numpy(np.bool_)
    set_run_times(parsed, pd.DataFrame(times, parsed.rows), {NO_GPU: gpus == 0})
    if running == "drop":
        parsed.drop({"no completion: Running": unfinished})
    else:
        _note_running(parsed, unfinished)
    if "gpu_type" in parsed.frame and parsed.frame["gpu_type"].isna().all():
        del parsed.frame["gpu_type"]
    return parsed


def _note_running(parsed: Parsed, unfinished: Flags) -> None:
    """Note how many pods were deleted while they ran, and their share of the GPU-seconds."""
    frame = parsed.frame
    marked = pd.Series(unfinished, parsed.rows)[frame.index]
    if marked.any():
        work = frame["duration"] * frame["num_gpus"] * frame["gpu_share"]
        # validation refuses rows without a share later, so a sum of 0 must not fail here
        share = work[marked].sum() / max(work.sum(), 1e-9)
        parsed.notes.append(
            f"{int(marked.sum()):,} of {len(frame):,} pods ({share:.0%} of the GPU-seconds) are "
            "Running at the end of the record, which stands in for their completion; "
            "running=drop (--set running=drop) leaves them out"
        )
