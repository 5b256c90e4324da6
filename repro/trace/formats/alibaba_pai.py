"""Alibaba's PAI trace of 2020, in the CSV of its simulator: parts of a GPU per instance."""

import numpy as np

from repro.base.counts import quantity
from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats
from repro.files.table import Document, Parsed, Table
from repro.model.jobs import MAX_GPUS_PER_JOB
from repro.trace.formats import FORMATS
from repro.trace.runs import INSTANT, NO_GPU

_REQUIRED = ("job_id", "submit_time", "duration", "num_inst", "num_gpu")
_SHARE_TREATMENTS = ("ceil", "keep", "refuse")
_PER = ("instance", "job")
_UNITS = {"percent": 100.0, "gpu": 1.0}
_GPUS = "GPUs, or hundredths of a GPU, 0 or more"
#: Most GPUs of a PAI node. In a file without a larger number, numbers count GPUs.
_NODE_GPUS = 8


@FORMATS.register("alibaba-pai")
def read(
    document: Document,
    gpu_share: str = "ceil",
    per: str = "instance",
    gpu_unit: str = "auto",
) -> Parsed:
    """Read the job CSV of Alibaba's PAI trace of 2020, times in seconds.

    Columns: job_id, submit_time, duration, num_inst, num_gpu; optional: num_cpu, user, gpu_type.

    A job has ``num_inst`` instances, each with ``num_gpu`` hundredths of a GPU (50 is half a GPU)
    and ``num_cpu`` hundredths of a CPU core. ``num_gpus`` counts whole GPUs of all instances,
    ``num_cpus`` their cores. ``duration`` is the run time without the queue (``wait_time`` is not
    used). Submit times stay as they are. GPU type MISC stands for older types.

    Dropped and counted: jobs that have no GPU, or ran for 0 s. The file has no states: jobs that
    failed count as jobs that ran.

    Options: ``gpu_share`` is the treatment of a part of a GPU. ``ceil`` gives each instance whole
    GPUs; a note has the number of such jobs and how much the work grows. ``keep`` also writes the
    used part to the column ``gpu_share``. ``refuse`` makes such a job an error. ``per=job`` takes
    ``num_gpu`` and ``num_cpu`` for the whole job, as PAI's simulator does, which does not read
    ``num_inst``. ``gpu_unit`` is ``percent``, ``gpu`` or ``auto``. With ``auto``, a file with
    fractions, or without a number above 8, counts GPUs and cores; all other files count hundredths.
    A note names the unit. A file with numbers above 8, and with fractions that are all above 1,
    needs ``percent`` or ``gpu``.

    Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous
    GPU Clusters", NSDI 2022.
    """
    if gpu_share not in _SHARE_TREATMENTS:
        raise ParamError(f"gpu_share={gpu_share}: give ceil, keep or refuse")
    if per not in _PER:
        raise ParamError(f"per={per}: give {' or '.join(_PER)}")
    if gpu_unit not in ("auto", *_UNITS):
        raise ParamError(f"gpu_unit={gpu_unit}: give auto, {' or '.join(_UNITS)}")
    table = Table(document, _REQUIRED, text=("user", "gpu_type"), ids="job_id")
    parsed = table.parsed(
        *("job_id", "submit_time", "duration", "user", "gpu_type"),
        num_gpus="num_gpu",
        num_cpus="num_cpu",
        also_read=("num_inst",),
    )
    instances = table.whole("num_inst", 1, most=MAX_GPUS_PER_JOB)
    if per == "job":
        instances = np.ones(len(instances))
    demand = table.numbers("num_gpu", _GPUS, low=0, high=100 * MAX_GPUS_PER_JOB)
    durations = table.numbers("duration", "a duration is seconds, 0 or more", low=0)
    unit = _unit_of(demand, document.name) if gpu_unit == "auto" else gpu_unit
    parsed.notes.append(f"num_gpu counts {'hundredths of a GPU' if unit == 'percent' else 'GPUs'}")
    gpus = demand / _UNITS[unit]
    whole = np.ceil(gpus)
    if gpu_share == "refuse":
        hint = "gpu_share=ceil (--set gpu_share=ceil) rounds up, keep also writes the part in use"
        table.refuse(whole > gpus, "num_gpu", "not whole GPUs", hint)
    parsed.frame["duration"] = durations
    parsed.frame["num_gpus"] = instances * whole
    if "num_cpu" in table:
        cpus = table.numbers("num_cpu", "a number of CPU cores, 0 or more", low=0, required=False)
        parsed.frame["num_cpus"] = instances * cpus / _UNITS[unit]
    used = gpus / np.maximum(whole, 1)
    parsed.frame["gpu_share"] = used
    parsed.drop({NO_GPU: gpus == 0, INSTANT: durations == 0})
    if gpu_share == "ceil":
        _note_rounding(parsed)
        del parsed.frame["gpu_share"]
    return parsed


def _unit_of(demand: Floats, file: str) -> str:
    """Unit of demands: ``gpu`` if some are fractions or none is above 8, else ``percent``.

    Hundredths have no fractions, and a node has at most 8 GPUs. With both fractions and numbers
    above 8, a fraction below 1 decides for ``gpu``, because less than a hundredth of a GPU is no
    demand. Without such a fraction the unit is unknown, and the user must give it.
    """
    fractions = demand[demand % 1 > 0]
    large = demand[demand > _NODE_GPUS]
    if len(fractions) and len(large) and fractions.min() > 1:
        raise TraceError(
            f"{file}:num_gpu: fractions ({fractions[0]:g}) beside numbers above {_NODE_GPUS} "
            f"({large.max():g}): give the unit, gpu_unit=percent or gpu_unit=gpu (--set "
            f"gpu_unit=...)"
        )
    return "gpu" if len(fractions) or not len(large) else "percent"


def _note_rounding(parsed: Parsed) -> None:
    """Note the jobs that hold more than they use, and their work before and after."""
    frame = parsed.frame
    parts = frame["gpu_share"] < 1
    if parts.any():
        rounded_work = frame["duration"] * frame["num_gpus"]
        used_work = (rounded_work * frame["gpu_share"]).sum()
        jobs = quantity(int(parts.sum()), "job")
        parsed.notes.append(
            f"{jobs} of {len(frame):,} with a part of a GPU per instance, rounded up to whole "
            f"GPUs: {used_work:,.0f} GPU-s of work read as {rounded_work.sum():,.0f} GPU-s"
        )
