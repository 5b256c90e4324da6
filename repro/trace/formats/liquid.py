"""Job lists of Liquid's experiments, as the artifact's launchers submit them, all at once."""

import numpy as np

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
def read(document: Document, case: str | None = None, times: str = "t4") -> Parsed:
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
        cases = list(dict.fromkeys(table.frame["case"]))
        if case is None and len(cases) > 1:
            raise TraceError(
                f"{document.name}: holds {len(cases)} lists; choose one with case=, of "
                f"{', '.join(map(str, cases))}"
            )
        if case is not None and case not in cases:
            raise ParamError(f"case {case!r} is not in {document.name}: {', '.join(cases)}")
        in_case = (table.frame["case"] == case).to_numpy() if case is not None else in_case
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
        refuse(untimed, models, "model", parsed.origin, rule, accepted)
    untimed_names = models[untimed & ~models.isin(timed_models).to_numpy(bool)].drop_duplicates()
    lines = [parsed.origin.where(label) for label in untimed_names.index.tolist()]
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
