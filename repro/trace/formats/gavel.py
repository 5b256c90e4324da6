"""Gavel's .trace files: work in training steps, turned into seconds by a throughput table."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.files.checks import BadRows
from repro.files.table import Document, Parsed, Table
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import PUBLIC, load_throughputs, provenance
from repro.trace.formats import FORMATS
from repro.trace.schema import MAX_EXACT

_SEVEN_FIELDS = (
    "job_type",
    "command",
    "steps_arg",
    "needs_data_dir",
    "steps",
    "arrival",
    "scale_factor",
)
_TEN_FIELDS = (
    "job_type",
    "command",
    "working_dir",
    "steps_arg",
    "needs_data_dir",
    "steps",
    "scale_factor",
    "priority_weight",
    "slo",
    "arrival",
)
_TWELVE_FIELDS = (
    "job_type",
    "command",
    "working_dir",
    "steps_arg",
    "needs_data_dir",
    "steps",
    "scale_factor",
    "mode",
    "priority_weight",
    "slo",
    "duration",
    "arrival",
)
#: Number of fields -> their names.
_BY_WIDTH = {len(names): names for names in (_SEVEN_FIELDS, _TEN_FIELDS, _TWELVE_FIELDS)}
_TEXT = ("job_type", "command", "working_dir", "steps_arg", "mode")
#: A note counts the recorded durations that differ from steps / throughput by more than this part.
_SAME_DURATION = 0.01
_FIRST_LINES = 100
_STEPS = f"a job has 1 to {MAX_EXACT:,} steps"


@FORMATS.register("gavel")
def read(
    document: Document,
    throughputs: str | Path | pd.DataFrame = PUBLIC,
    reference_gpu: str = "v100",
) -> Parsed:
    """Read Gavel's trace: tab-separated lines of ten fields, seven (``traces/msr``) or twelve.

    Columns: job_type, command, working_dir, steps_arg, needs_data_dir, steps, scale_factor,
    priority_weight, slo, arrival; or job_type, command, steps_arg, needs_data_dir, steps, arrival,
    scale_factor; or, in traces of Shockwave, the ten fields with mode before priority_weight and
    duration before arrival. A job without a deadline has an slo of -1.

    ``model`` is the job type with its batch size, the key of the throughput tables. Duration is
    steps over the throughput of (job type, scale factor) on the reference GPU. The table has some
    job types (Recommendation, A3C, CycleGAN) on one GPU only. Files with seven fields have jobs of
    these types on several GPUs, with steps that do not depend on the scale factor. Such jobs take
    the one-GPU throughput, and a note counts them. A job's id is its line number from 0.

    The duration of a line of twelve fields is steps over throughput as well, so that it agrees with
    the policies' table. A note counts the recorded durations that differ by more than 1 %. The mode
    (static, accordion, gns) is not used: batch sizes do not change while a job runs.

    Gavel (OSDI'20), artifact ``scheduler/traces``.
    """
    lines = (line for line in document.text.splitlines() if line.strip())
    widths = [line.count("\t") + 1 for line in itertools.islice(lines, _FIRST_LINES)]
    # the first line of a known width decides: a truncated line may come before it
    width = next((width for width in widths if width in _BY_WIDTH), widths[0])
    nearest_fields = _SEVEN_FIELDS if width <= len(_SEVEN_FIELDS) else _TEN_FIELDS
    names = _BY_WIDTH.get(width, nearest_fields)
    table = Table(document, names, text=_TEXT, delimiter="\t", headed=False)
    parsed = table.parsed(
        "priority_weight",
        "slo",
        also_read=("duration",),
        submit_time="arrival",
        duration="steps",
        num_gpus="scale_factor",
        model="job_type",
        iterations="steps",
    )
    parsed.frame.insert(0, "job_id", parsed.frame.index.to_numpy())
    if "slo" in table:
        slo = table.numbers("slo", "an SLO is a multiple of the duration, or -1 for none")
        parsed.frame["slo"] = np.where(slo == -1, np.nan, slo)
    gpus = table.numbers("scale_factor", "a job holds 1 or more GPUs", low=1)
    steps = table.numbers("steps", _STEPS, low=1, high=MAX_EXACT)
    throughput_table = load_throughputs(throughputs, reference_gpu)
    parsed.frame["duration"] = steps / _throughputs_of_jobs(parsed, gpus, throughput_table)
    if "duration" in table:
        _note_durations(table, parsed)
    if not isinstance(throughputs, pd.DataFrame):
        parsed.frame.attrs |= provenance(throughputs, reference_gpu)
        if "stand_in" in parsed.frame.attrs:
            parsed.notes.append("durations from a synthetic stand-in for the throughput table")
    return parsed


def _note_durations(table: Table, parsed: Parsed) -> None:
    """Note the recorded durations that are not steps over throughput."""
    recorded = table.numbers("duration", "a duration is seconds above 0", low=0)
    durations = parsed.frame["duration"].to_numpy(float)
    differs = np.abs(recorded - durations) > _SAME_DURATION * durations
    if differs.any():
        parsed.notes.append(
            f"recorded duration differs from steps / throughput by more than 1 % in "
            f"{int(differs.sum()):,} of {len(durations):,} jobs: run time is steps / throughput "
            "(throughputs= takes the table of the cluster that the trace is from)"
        )


def _throughputs_of_jobs(parsed: Parsed, gpus: Floats, table: ThroughputTable) -> Floats:
    """Throughput (steps/s) of each job, (jobs,); note how many take the one-GPU throughput."""
    from_one_gpu = 0
    gpu_type = table.reference
    rates = np.empty(len(gpus))
    models = parsed.frame["model"]
    faults = []
    for index, (model, num_gpus) in enumerate(zip(models, gpus, strict=True)):
        by_type = table.rows.get((model, int(num_gpus)))
        if by_type is None:
            by_type = table.rows.get((model, 1), {})
            from_one_gpu += 1
        rate = by_type.get(gpu_type, 0.0)
        if rate <= 0:
            rule = f"no throughput on {gpu_type} for this job type on {num_gpus:g} GPUs"
            hint = "pass throughputs= with a table that has it, or another reference_gpu"
            row = int(models.index[index])
            faults.append(parsed.source.error(row, "model", rule, model, hint))
            continue
        rates[index] = rate
    if faults:
        raise BadRows.joined(faults)
    if from_one_gpu:
        parsed.notes.append(
            f"{from_one_gpu} of {len(gpus)} durations from one-GPU throughputs: the table does not "
            "have these job types on several GPUs"
        )
    return rates
