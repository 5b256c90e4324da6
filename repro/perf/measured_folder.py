"""Measured folders: rates, pairs, stage times and pauses of job types on one GPU.

`repro measure` writes such a folder; ``traces/measured`` is that of one H100.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, TraceError
from repro.files.checks import shown
from repro.files.table import Document, Table
from repro.perf.stages import MEASURED_STAGES, STAGE_COLUMNS

#: Name by which users ask for the measured folder of the checkout, ``traces/measured``.
H100 = "h100"
#: Ways in which two jobs share a GPU: by time slicing, or by Multi-Process Service.
SHARING = ("timeslice", "mps")
#: File that names the machine of a folder.
MACHINE = "machine.csv"
#: Required columns of each file: text, and numbers of 0 or more.
COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "isolated.csv": (("mode", "job", "when"), ("batch_size", "iters_per_s")),
    "colocated.csv": (("mode", "job_a", "job_b"), ("norm_a", "norm_b")),
    "stages.csv": (
        ("job",),
        ("batch_size", "storage_s", "cpu_s", "gpu_s", "network_s", "total_s"),
    ),
    "pause.csv": (
        ("job",),
        ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s", "resume_total_s"),
    ),
}
#: Parts of a pause: copy to the host, write, flush, exit.
_PAUSE = ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s")
#: Column of stages.csv -> column of a trace.
_TRACE_COLUMNS = {
    "total_s": "iteration_time",
    **dict(zip(MEASURED_STAGES, STAGE_COLUMNS, strict=True)),
}
#: Model of the map of names (params/model_names.csv) -> job type, where the names differ.
OTHER_NAMES: Mapping[str, str] = {
    "inception3": "inception_v3",
    "shufflenet_v2_x1_0": "shufflenet",
    "lm": "lstm",
    "recommendation": "recoder",
}


@dataclass(frozen=True)
class MeasuredFolder:
    """Tables of one folder, each read when it is first asked for.

    Parameters
    ----------
    path : Path
        Folder with some of the files of `COLUMNS`.

    Examples
    --------
    >>> folder = measured_folder("h100")
    >>> folder.gpu_type
    'h100'
    >>> round(folder.rates_alone()["vgg16"], 1)
    34.9
    """

    path: Path

    @functools.cached_property
    def gpu_type(self) -> str:
        """GPU type in ``machine.csv``; without this file, the name of the folder."""
        path = self.path / MACHINE
        if not path.is_file():
            return self.path.resolve().name
        table = Table(Document.read(path), ("name", "value"), text=("name", "value"))
        frame = table.frame
        repeated = (frame["name"] == "gpu_type") & frame["name"].duplicated()
        table.refuse(repeated.to_numpy(bool), "name", "repeated row", "give one GPU type")
        values = dict(zip(frame["name"], frame["value"], strict=True))
        gpu_type = values.get("gpu_type")
        if not isinstance(gpu_type, str):
            raise TraceError(f"{path}: no row gpu_type; give one, such as gpu_type,h100")
        return gpu_type

    def rates_alone(self, sharing: str = "timeslice") -> dict[str, float]:
        """Rate of each job type alone (iterations/s): median over the runs of one mode.

        Parameters
        ----------
        sharing : {"timeslice", "mps"}
            Mode of the runs.

        Raises
        ------
        ParamError
            If the folder lacks the file, or the file has no run of this mode.
        TraceError
            If a row cannot be read.
        """
        medians = self._of_mode("isolated.csv", sharing).groupby("job")["iters_per_s"].median()
        return {str(job): float(rate) for job, rate in medians.items() if rate > 0}

    def pair_rates(self, sharing: str = "timeslice") -> dict[tuple[str, str], tuple[float, float]]:
        """Rates (iterations/s) of the two jobs of each measured pair, by names in sorted order.

        A rate is the rate alone times the normalised rate of the pair, the median over repeated
        measurements. Pairs that failed, and pairs with a job type without a rate alone, are left
        out.

        Parameters
        ----------
        sharing : {"timeslice", "mps"}
            How the two share the GPU.
        """
        alone = self.rates_alone(sharing)
        repeats: dict[tuple[str, str], list[tuple[float, float]]] = {}
        pairs = self._of_mode("colocated.csv", sharing)
        columns = pairs[["job_a", "job_b", "norm_a", "norm_b"]]
        for job_a, job_b, norm_a, norm_b in columns.itertuples(index=False, name=None):
            if job_a not in alone or job_b not in alone:
                continue
            pair = (norm_a * alone[job_a], norm_b * alone[job_b])
            if job_a == job_b:
                pair = (sum(pair) / 2,) * 2
            names = (min(job_a, job_b), max(job_a, job_b))
            repeats.setdefault(names, []).append(pair if job_a <= job_b else pair[::-1])
        rates: dict[tuple[str, str], tuple[float, float]] = {}
        for names, pair_rates in repeats.items():
            rates_a, rates_b = zip(*pair_rates, strict=True)
            rates[names] = (median(rates_a), median(rates_b))
        return rates

    def stage_times(self) -> pd.DataFrame:
        """Batch size and times (s) of an iteration, by job type (the index).

        Columns ``batch_size``, ``iteration_time`` (sum of the stages), ``stage_storage``,
        ``stage_cpu``, ``stage_gpu`` and ``stage_network``. If ``stages.csv`` has several batch
        sizes of a job type, the row with the batch size of ``isolated.csv`` is taken. Without such
        a row, the first row of the job type is taken.
        """
        stages = self._rows("stages.csv")
        if self.has("isolated.csv"):
            batches = self._rows("isolated.csv").drop_duplicates("job").set_index("job")
            is_default = stages["batch_size"] == stages["job"].map(batches["batch_size"])
            stages = pd.concat([stages[is_default], stages[~is_default]])
        first = stages.drop_duplicates("job").set_index("job").sort_index()
        return first[["batch_size", *_TRACE_COLUMNS]].rename(columns=_TRACE_COLUMNS)

    def pauses(self) -> tuple[dict[str, float], float]:
        """Seconds of a pause by job type (save and exit), and mean seconds of a resumption."""
        rows = self._rows("pause.csv")
        pause_s = rows[list(_PAUSE)].sum(axis=1).groupby(rows["job"]).median()
        resume_s = float(rows.groupby("job")["resume_total_s"].median().mean())
        return {str(job): float(seconds) for job, seconds in pause_s.items()}, resume_s

    def files(self) -> list[Path]:
        """Files of the folder that this class reads."""
        return [path for file in (MACHINE, *COLUMNS) if (path := self.path / file).is_file()]

    def has(self, file: str) -> bool:
        """Whether the folder has a file of `COLUMNS`."""
        return (self.path / file).is_file()

    def _of_mode(self, file: str, sharing: str) -> pd.DataFrame:
        """Rows of a file with one way of sharing."""
        if sharing not in SHARING:
            raise ParamError(f"sharing {shown(sharing)}: give {' or '.join(SHARING)}")
        rows = self._rows(file)
        chosen = rows[rows["mode"] == sharing]
        if chosen.empty:
            modes = ", ".join(sorted(rows["mode"].unique()))
            raise ParamError(
                f"{self.path / file}: no rows of mode {sharing}; it has {modes}: measure them with "
                f"repro measure pairs, or give another mode"
            )
        return chosen

    def _rows(self, file: str) -> pd.DataFrame:
        """Rows of a file whose measurement did not fail."""
        path = self.path / file
        if not path.is_file():
            command = "pairs" if file in ("isolated.csv", "colocated.csv") else file[:-4]
            raise ParamError(
                f"{path}: no such file; write it with repro measure {command} --out {self.path}"
            )
        return _read(path, path.stat().st_mtime_ns, path.stat().st_size)


def measured_folder(source: str | Path) -> MeasuredFolder:
    """Folder of measured tables.

    Parameters
    ----------
    source : str or Path
        A folder that `repro measure` wrote, or ``h100``: ``traces/measured`` of the checkout.

    Returns
    -------
    MeasuredFolder
        The folder; its files are not read yet.

    Raises
    ------
    ParamError
        If there is no such folder, or none of its files is a measured table.
    DataMissingError
        If the table of the checkout is missing.

    Examples
    --------
    >>> sorted(measured_folder("h100").pauses()[0])[:2]
    ['cnn_mnist', 'inception_v3']
    """
    if source == H100 and not os.path.isdir(source):
        path = paths.traces_dir() / "measured"
        if not path.is_dir():
            raise DataMissingError(
                f"{path}: the measured tables are missing; restore them from the checkout"
            )
        return MeasuredFolder(path)
    path = Path(os.path.expanduser(source))
    if not is_measured(path):
        raise ParamError(
            f"{shown(source)}: not a measured folder ({', '.join(COLUMNS)}); give {H100}, or "
            f"write one with repro measure pairs --out DIR"
        )
    return MeasuredFolder(path)


def is_measured(path: Path) -> bool:
    """Whether a folder has a measured table."""
    # os.path, as methods of Path raise for a name too long for the file system
    return any(os.path.isfile(path / file) for file in COLUMNS)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int, size: int) -> pd.DataFrame:
    """Read a file; time and size make a changed file a new entry of the cache."""
    text, numbers = COLUMNS[path.name]
    table = Table(Document.read(path), (*text, *numbers), text=(*text, "error"))
    if "error" in table:
        table.frame = table.frame[table.frame["error"].isna()]
    if path.name == "colocated.csv" and "k" in table:
        table.frame = table.frame[table.frame["k"] == 2]
    if table.frame.empty:
        raise TraceError(f"{path}: no row of a measurement that ended; measure again")
    return table.complete(text, numbers)
