"""Tables of the checkout, read once: facts in ``params/``, measured quantiles in ``traces/``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, ReproError, TraceError
from repro.base.typing import Floats

#: Columns of each table of ``traces/`` that must be there, units in the names.
MEASURED = {
    "philly_hours": ("hour", "week", "hour_of_week", "jobs", "probes"),
    "philly_gaps": ("jobs_per_hour", "level", "gap_s"),
    "philly_durations": ("stream", "num_gpus", "jobs", "level", "duration_s"),
    "philly_single_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_wide_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_gpu_mix": ("num_gpus", "share"),
    "muri_gaps": ("trace", "span_s"),
    "muri_durations": ("trace", "num_gpus", "jobs", "total_s"),
    "pcs_workloads": ("workload", "quantity", "value", "share"),
    "tiresias_gpu_time_quantiles": ("level", "gpu_time_s", "source"),
    "gavel_speeds": ("quantity", "model", "gpu_type", "gpus", "constant", "slope", "curvature"),
}
_RESTORE = "restore it from the checkout"
_REMEASURE = f"{_RESTORE} or write it anew with python -m tools.calibrate"


@dataclass(frozen=True)
class ModelTable:
    """A table in ``params/``: one row per model or GPU type, below one line about its sources."""

    file: str
    columns: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where the table is."""
        return paths.params_dir() / self.file

    @property
    def frame(self) -> pd.DataFrame:
        """A copy of the table; ParamError if it is missing or has lost a column."""
        if not self.path.is_file():
            raise ParamError(f"{self.path}: the table of models is missing; {_RESTORE}")
        return _read(self.path, self.columns, ParamError, _RESTORE).copy()

    def column(self, name: str) -> dict[str, float]:
        """Return a column of numbers by model."""
        table = self.frame
        return dict(zip(table["model"].astype(str), table[name].astype(float), strict=True))

    def lists(self, name: str, fits: Callable[[Floats], bool], accepted: str) -> list[Floats]:
        """Return the numbers of each cell of a column, finite ones of which ``fits`` holds."""
        found = []
        for line, text in enumerate(self.frame[name].astype(str), start=3):
            try:
                numbers = np.array([float(part) for part in text.split()])
            except ValueError:
                numbers = np.array([np.nan])
            if not (np.isfinite(numbers).all() and fits(numbers)):
                raise ParamError(f"{self.path}:{line}: {name} is {text!r}; give {accepted}")
            found.append(numbers)
        return found


def measured(name: str) -> pd.DataFrame:
    """Return a table of ``traces/`` (a key of ``MEASURED``); treat it as read-only."""
    path = paths.traces_dir() / f"{name}.csv"
    if not path.is_file():
        raise DataMissingError(f"{path}: the calibrated table is missing; {_REMEASURE}")
    return _read(path, MEASURED[name], TraceError, _REMEASURE)


@lru_cache(maxsize=64)
def _read(
    path: Path, columns: tuple[str, ...], error: type[ReproError], remedy: str
) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, comment="#")
    except (ValueError, pd.errors.ParserError) as problem:
        raise error(f"{path}: not a table ({problem}); {remedy}") from None
    if lost := [column for column in columns if column not in table]:
        raise error(f"{path}: no column {', '.join(lost)}; {remedy}")
    return table
