"""Tables of the checkout, cached: ``params/`` (models, prices), ``traces/`` (quantiles)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, ReproError, TraceError
from repro.base.typing import Floats

#: Required columns of each table of ``traces/``. A suffix ``_s`` means seconds.
MEASURED = {
    "philly_hours": ("hour", "week", "hour_of_week", "jobs", "probes"),
    "philly_gaps": ("jobs_per_hour", "level", "gap_s"),
    "philly_durations": ("stream", "num_gpus", "jobs", "level", "duration_s"),
    "philly_single_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_wide_runs": ("num_gpus", "first_hour", "last_hour", "jobs"),
    "philly_gpu_mix": ("num_gpus", "share"),
    "philly_clocks": ("vc", "start_s", "jobs", "matched"),
    "muri_gaps": ("trace", "span_s"),
    "muri_durations": ("trace", "num_gpus", "jobs", "total_s"),
    "elasticflow_gaps": ("trace", "span_s"),
    "elasticflow_durations": ("trace", "num_gpus", "jobs", "total_s"),
    "pcs_workloads": ("workload", "quantity", "value", "share"),
    "tiresias_gpu_time_quantiles": ("level", "gpu_time_s", "source"),
    "gavel_speeds": ("quantity", "model", "gpu_type", "gpus", "constant", "slope", "curvature"),
}
_RESTORE = "restore it from the checkout"
_REMEASURE = f"{_RESTORE} or write it anew with python -m tools.calibrate"


@dataclass(frozen=True)
class ModelTable:
    """A table in ``params/``, with a row per model or GPU type below a line on its sources."""

    file: str
    columns: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Path of the table."""
        return paths.params_dir() / self.file

    @property
    def frame(self) -> pd.DataFrame:
        """Copy of the table; ParamError if the table or a column is missing."""
        if not self.path.is_file():
            raise ParamError(f"{self.path}: the table of models is missing; {_RESTORE}")
        return _read_table(self.path, self.columns, ParamError, _RESTORE).copy()

    def column(self, name: str) -> dict[str, float]:
        """Numbers of a column by model."""
        table = self.frame
        return dict(zip(table["model"].astype(str), table[name].astype(float), strict=True))

    def lists(self, name: str, fits: Callable[[Floats], bool], accepted: str) -> list[Floats]:
        """Numbers in each cell of a column.

        A cell raises if a number is not finite or ``fits`` refuses the numbers.
        """
        cells = []
        # a line on the sources and the header come before the rows
        for line, text in enumerate(self.frame[name].astype(str), start=3):
            try:
                numbers = np.array([float(part) for part in text.split()])
            except ValueError:
                numbers = np.array([np.nan])
            if not (np.isfinite(numbers).all() and fits(numbers)):
                raise ParamError(f"{self.path}:{line}: {name} is {text!r}; give {accepted}")
            cells.append(numbers)
        return cells


def measured(name: str) -> pd.DataFrame:
    """Table of ``traces/`` by its key in ``MEASURED``; callers share it and must not change it."""
    path = paths.traces_dir() / f"{name}.csv"
    if not path.is_file():
        raise DataMissingError(f"{path}: the calibrated table is missing; {_REMEASURE}")
    return _read_table(path, MEASURED[name], TraceError, _REMEASURE)


@lru_cache(maxsize=64)
def _read_table(
    path: Path, columns: tuple[str, ...], error: type[ReproError], remedy: str
) -> pd.DataFrame:
    """Read a table of the checkout; ``error`` if it is broken or lacks a column."""
    try:
        table = pd.read_csv(path, comment="#")
    except (ValueError, pd.errors.ParserError) as problem:
        raise error(f"{path}: not a table ({problem}); {remedy}") from None
    if missing := [column for column in columns if column not in table]:
        raise error(f"{path}: no column {', '.join(missing)}; {remedy}")
    return table
