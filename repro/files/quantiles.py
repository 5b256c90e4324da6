"""The calibrated tables in ``traces/``: measured or published quantiles, read once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from repro import paths
from repro.errors import DataMissingError, TraceError

_Floats = npt.NDArray[np.float64]

#: Columns of each table, units in the names.
COLUMNS = {
    "philly_hours": ("hour", "week", "hour_of_week", "jobs", "probes"),
    "philly_gaps": ("jobs_per_hour", "level", "gap_s"),
    "philly_durations": ("stream", "num_gpus", "jobs", "level", "duration_s"),
    "philly_single_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_wide_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_gpu_mix": ("num_gpus", "share"),
    "muri_gaps": ("trace", "span_s"),
    "muri_durations": ("trace", "num_gpus", "jobs", "total_s"),
    "tiresias_gpu_time_quantiles": ("level", "gpu_time_s", "source"),
    "gavel_speeds": (
        "quantity",
        "model",
        "gpu_type",
        "gpus",
        "constant",
        "slope",
        "curvature",
    ),
}


@lru_cache(maxsize=len(COLUMNS))
def table(name: str) -> pd.DataFrame:
    """Return a calibrated table; treat it as read-only."""
    path = paths.traces_dir() / f"{name}.csv"
    remedy = "restore it from the checkout or write it anew with python -m repro.trace.calibrate"
    if not path.is_file():
        raise DataMissingError(f"{path}: the calibrated table is missing; {remedy}")
    try:
        read = pd.read_csv(path, comment="#")
    except (ValueError, pd.errors.ParserError) as error:
        raise TraceError(f"{path}: not a table ({error}); {remedy}") from None
    if lost := [column for column in COLUMNS[name] if column not in read]:
        raise TraceError(f"{path}: no column {', '.join(lost)}; {remedy}")
    return read


def inverse_cdf(u: _Floats, levels: _Floats, values: _Floats) -> _Floats:
    """Return quantiles between tabulated ones, interpolated in the logarithm."""
    return np.asarray(np.exp(np.interp(u, levels, np.log(values))))
