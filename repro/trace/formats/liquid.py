"""Job lists of Liquid's experiments, as the artifact's launchers submit them, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import ParamError, TraceError, near
from repro.base.typing import Flags
from repro.files.checks import refuse, shown
from repro.files.table import Document, Parsed, Table
from repro.model.jobs import MAX_GPUS_PER_JOB
from repro.perf.parameter_server import IterationModel, MeasuredPlans, PlanTimes, named
from repro.trace.formats import FORMATS
from repro.trace.schema import MAX_EXACT
from repro.trace.synth.liquid import WARM_UP

_REQUIRED = ("job", "model", "batch_size", "num_batches", "num_ps", "num_workers")


@FORMATS.register("liquid")
def read(document: Document, case: str | int | None = None, times: str = "t4") -> Parsed:
    """Read a list of Liquid's jobs, or the list ``case`` of a file with several lists.

    Columns: job, model, batch_size, num_batches, num_ps, num_workers; optional: case, index,
    gpu_mem_mb. A container has one GPU. Ten iterations of warm-up come before the batches. A
    duration is the run time with all containers on one node under the performance model ``times``
    (t4, k80 or measured). Jobs without a run time under this model are left out and counted. A note
    names the trained models that the performance model does not have.

    Liquid (TPDS 2022), artifact launchers.
    """
    table = Table(document, _REQUIRED, text=("job", "model", "case"))
    in_case = np.ones(len(table.frame), np.bool_)
    if "case" in table:
        # `repro simulate --set case=2` gives a number
        wanted = None if case is None else str(case)
        in_case = _in_case(table.frame["case"], wanted, document.name)
    elif case is not None:
        raise ParamError(f"case {case!r}: {document.name} has no column case; leave it out")
    parsed = table.parsed(
        "model",
        "batch_size",
        "num_ps",
        "gpu_mem_mb",
        job_id="index",
        also_read=("case", "job", "num_batches", "num_workers"),
    )
    counts = ("num_ps", "num_workers")
    servers, workers = (table.whole(name, most=MAX_GPUS_PER_JOB) for name in counts)
    sizes = ("batch_size", "num_batches")
    batch, batches = (table.whole(name, 1, most=MAX_EXACT, required=False) for name in sizes)
    frame = parsed.frame
    plan_times = named(times)
    frame["batch_size"] = batch
    if "job_id" not in frame:
        frame["job_id"] = frame.index.to_numpy()
    frame["submit_time"] = 0.0
    frame["num_gpus"] = (servers + workers).astype(np.int64)
    frame["iterations"] = batches + WARM_UP
    rows = zip(frame["model"], frame["num_gpus"], servers, batch, frame["iterations"], strict=True)
    frame["duration"] = [_seconds(plan_times, *row) for row in rows]
    untimed = frame["duration"].isna().to_numpy() | np.isnan(batch + batches)
    _note_untimed(parsed, in_case & untimed, in_case, times)
    parsed.drop({"another case": ~in_case, f"no run time under times={times}": untimed})
    parsed.frame["batch_size"] = parsed.frame["batch_size"].astype(np.int64)
    return parsed


def _in_case(cases: pd.Series[Any], case: str | None, file: str) -> Flags:
    """Flags of the jobs of a list; without ``case``, the file may hold one list only."""
    names = cases.dropna().unique().tolist()
    has_gaps = bool(cases.isna().any())
    if case is None and names and len(names) + has_gaps > 1:
        lists = f"{quantity(len(names), 'list')}{' and jobs without a case' if has_gaps else ''}"
        raise TraceError(
            f"{file}: holds {lists}; choose one with case=, of {', '.join(map(str, names))}"
        )
    if case is not None and not names:
        raise ParamError(f"case {case!r}: the column case of {file} is empty; leave it out")
    if case is not None and case not in names:
        raise ParamError(f"case {case!r} is not in {file}: {', '.join(map(str, names))}")
    if case is None:
        return np.ones(len(cases), np.bool_)
    return (cases == case).to_numpy(np.bool_)


def _note_untimed(parsed: Parsed, untimed: Flags, in_case: Flags, times: str) -> None:
    """Note the trained models that ``times`` does not have; raise if no job has a run time."""
    models = parsed.frame["model"].astype(object).where(parsed.frame["model"].notna(), "")
    plan_times = named(times)
    timed_models: list[str] = []
    if isinstance(plan_times, IterationModel):
        timed_models = list(plan_times.models)
    elif isinstance(plan_times, MeasuredPlans):
        timed_models = list(plan_times.seconds)
    rule = f"no run time under times={times}"
    if untimed.any() and (untimed == in_case).all():
        name = str(models[untimed].iloc[0])
        accepted = f"known: {', '.join(timed_models)}{near(name.lower(), timed_models)}"
        if plan_times.own_name(name) in timed_models:
            accepted = (
                "the model is known: give numbers of parameter servers and workers, and a batch "
                "size, for which it has run times"
            )
        refuse(untimed, models, "model", parsed.source, rule, accepted)
    untimed_names = models[untimed & ~models.isin(timed_models).to_numpy(bool)].drop_duplicates()
    lines = [parsed.source.where(label) for label in untimed_names.index.tolist()]
    texts = [
        f"{shown(name)} on line {line}{near(name.lower(), timed_models)}"
        for name, line in zip(untimed_names, lines, strict=True)
    ]
    if texts:
        parsed.notes.append(f"models with {rule}: {', '.join(texts)}")


def _seconds(
    plan_times: PlanTimes, model: str, width: int, num_ps: float, batch: float, steps: float
) -> float:
    """Run time (s) with all containers on one node, NaN if ``plan_times`` has none."""
    try:
        return plan_times.run_s(str(model), (0,) * width, batch, steps, int(num_ps))
    except ParamError:
        return np.nan
