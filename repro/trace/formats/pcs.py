"""PCS's CSV of apps (its word for jobs): work in GPU-seconds, gaps between arrivals."""

from pathlib import Path

import numpy as np
import pandas as pd

from repro.base.typing import Floats
from repro.files.table import Document, Parsed, Table
from repro.perf.speedup import load_speedups, pcs_speedups
from repro.trace.formats import FORMATS
from repro.trace.schema import MAX_TIME_S

_GAP = f"a gap is 0 to {MAX_TIME_S:,.0f} s"


@FORMATS.register("pcs")
def read(document: Document, speedups: str | Path | None = None) -> Parsed:
    """Read PCS's CSV of apps, its word for jobs.

    Columns: app_id, service, num_jobs, sleep_time; optional: model_name.

    As in the artifact, an app arrives at the running sum of ``sleep_time``, including the gap of
    the first row. ``submit_time`` is not used; it differs from this sum in the testbed trace.
    ``num_jobs`` is the number of GPUs: an app of the testbed has that many trials of one GPU each,
    scheduled as one job. ``service`` is work in single-GPU seconds. Duration is ``service / S``,
    the run time on the app's demand. S is the speed-up at that demand on the curve of
    ``model_name``, or the demand itself for an app without a model.

    Options: ``speedups`` is a file of curves (:func:`repro.perf.load_speedups`) in place of those
    of the nine models of the public traces.

    PCS, artifact ``simulation/traces`` and ``testbed/traces``.
    """
    required = ("app_id", "service", "num_jobs", "sleep_time")
    table = Table(document, required, text=("model_name",), ids="app_id")
    parsed = table.parsed(
        "service",
        job_id="app_id",
        submit_time="sleep_time",
        duration="service",
        num_gpus="num_jobs",
        model="model_name",
    )
    table.numbers("sleep_time", _GAP, low=0, high=MAX_TIME_S)
    # the gap of a row that is left out still counts, unless the gap itself is wrong
    gaps = pd.to_numeric(table.all_rows["sleep_time"], errors="coerce")
    gaps = gaps.astype(float).where(gaps.between(0, MAX_TIME_S), 0.0)
    service = table.numbers("service", "service is GPU-seconds above 0")
    parsed.frame["submit_time"] = gaps.cumsum()[parsed.frame.index]
    gpus = table.numbers("num_jobs", "an app demands 1 or more GPUs", low=1)
    parsed.frame["duration"] = service / _app_speedups(table, gpus, speedups)
    return parsed


def _app_speedups(table: Table, gpus: Floats, speedups: str | Path | None) -> Floats:
    """Speed-up of each app at its demand, (apps,)."""
    if "model_name" not in table:
        return gpus
    curves = (pcs_speedups() if speedups is None else load_speedups(speedups)).curves
    models = table.frame["model_name"]
    curve_gpus = models.map({name: len(curve) for name, curve in curves.items()}).to_numpy(float)
    ranges = ", ".join(f"{name} to {len(curve)}" for name, curve in curves.items())
    is_unknown = models.notna().to_numpy() & np.isnan(curve_gpus)
    table.refuse(is_unknown, "model_name", "no speed-up curve", f"there are curves of {ranges}")
    accepted = f"each curve ends at a number of GPUs: {ranges}"
    table.refuse(gpus > curve_gpus, "num_jobs", "beyond its curve", accepted)
    values = gpus.copy()
    for model, curve in curves.items():
        rows = (models == model).to_numpy()
        values[rows] = np.array(curve)[gpus[rows].astype(np.int64) - 1]
    return values
