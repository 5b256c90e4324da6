"""Muri's job CSV: the Tiresias columns in milliseconds, plus stage times per iteration."""

import numpy as np

from repro.base.errors import near
from repro.files.checks import refuse
from repro.files.table import Document, Parsed, Table
from repro.perf.muri_models import muri_profiles
from repro.trace.formats import FORMATS
from repro.trace.runs import ROUNDING_S
from repro.trace.schema import COLUMNS

#: Column of the schema -> column of the file, for times.
_TIMES = {
    "submit_time": "submit_time",
    "duration": "duration",
    "iteration_time": "iteration_time",
    "stage_storage": "resource_time_0",
    "stage_gpu": "resource_time_1",
    "stage_network": "resource_time_2",
}
#: Largest plausible sum of stage times, in iteration times; public traces have at most 1.8.
_MAX_STAGE_SUM = 2
_REQUIRED = ("job_id", "num_gpu", *_TIMES.values())


@FORMATS.register("muri")
def read(document: Document) -> Parsed:
    """Read Muri's job CSV, whose times are in milliseconds.

    Columns: job_id, num_gpu, submit_time, duration, iteration_time, resource_time_0,
    resource_time_1, resource_time_2; optional: model_name, batch_size, iterations, priority.

    ``resource_time_0`` is the data stage: storage read plus preprocessing on the CPU, or the RL
    simulation. Its split is not published, so it becomes ``stage_storage`` and there is no
    ``stage_cpu``. ``resource_time_1`` is the GPU, ``resource_time_2`` the network. ``interval``
    (gap in the unfiltered trace) is not used. Notes count the rows whose duration is not
    ``iterations`` x ``iteration_time``, and the rows whose stages sum to more than twice the
    iteration time.

    Muri (SIGCOMM'22), artifact ``simulator/trace-data``.
    """
    units = dict.fromkeys(_TIMES.values(), "ms")
    table = Table(document, _REQUIRED, text=("model_name",), ids="job_id", units=units)
    parsed = table.parsed(
        *("job_id", "batch_size", "iterations", "priority"),
        **(_TIMES | {"num_gpus": "num_gpu", "model": "model_name"}),
    )
    for name, column in _TIMES.items():
        parsed.frame[name] = table.numbers(column, "a time in milliseconds") / 1000.0
    if "model" in parsed.frame:
        names = muri_profiles()["model"].unique().tolist()
        models = parsed.frame["model"]
        is_unknown = (~models.str.lower().isin(names)).to_numpy(bool)
        model = str(models.iloc[int(np.argmax(is_unknown))])
        similar = near(model.lower(), names).removeprefix("; ")
        accepted = f"known: {', '.join(names)}; write a file with other models in format repro"
        hint = f"{similar} {accepted}" if similar else accepted
        refuse(is_unknown, models, "model", parsed.source, "unknown model", hint)
    _note_contradictions(parsed, table)
    return parsed


def _note_contradictions(parsed: Parsed, table: Table) -> None:
    """Note durations that are not the time of all iterations, and stage times that sum too high."""
    frame = parsed.frame
    iteration_s = frame["iteration_time"].to_numpy(float)
    if "iterations" in table:
        accepted = COLUMNS["iterations"].accepted
        product = table.numbers("iterations", accepted, required=False) * iteration_s
        # The duration may cut the last iteration short.
        slack = iteration_s + ROUNDING_S
        differs = np.abs(frame["duration"].to_numpy(float) - product) > slack
        if wrong := int(differs.sum()):
            parsed.notes.append(
                f"duration contradicts iterations x iteration_time in {wrong:,} of {len(frame):,} "
                "rows: rules paper use duration, rules muri use iterations x iteration_time"
            )
    stages = [name for name in _TIMES if name.startswith("stage_")]
    long = frame[stages].sum(axis=1).to_numpy(float) > _MAX_STAGE_SUM * iteration_s
    if wrong := int(long.sum()):
        parsed.notes.append(
            f"stage times sum to more than {_MAX_STAGE_SUM} x iteration_time in {wrong:,} of "
            f"{len(frame):,} rows"
        )
