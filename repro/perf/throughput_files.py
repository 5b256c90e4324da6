"""Throughput tables: Gavel's JSON, CSV, a measured folder, a public name, or its stand-in."""

import dataclasses
import functools
import itertools
import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, StandInWarning, TraceError
from repro.files import public
from repro.files.table import Document
from repro.files.tables import ModelTable
from repro.perf.measured_folder import (
    H100,
    OTHER_NAMES,
    SHARING,
    MeasuredFolder,
    is_measured,
    measured_folder,
)
from repro.perf.synthetic_throughputs import gavel_like
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_formats import Pairs, Rows, from_csv, from_json

Source = str | Path | pd.DataFrame | ThroughputTable

#: GPU type to which durations refer, unless a measured folder has another.
_REFERENCE = "v100"
#: Name of the table of Gavel's simulations, and of its stand-in.
PUBLIC = "gavel-throughputs"
STAND_IN = "gavel-like-throughputs"
#: Name of the table of Gavel's simulations in September 2019, one-GPU jobs only.
EARLY = "gavel-throughputs-2019"
_EARLY_TABLE = ModelTable(
    "gavel_throughputs_2019.csv",
    ("job_type", "scale_factor", "gpu_type", "steps_per_second", "job_type_b"),
)


def load_throughputs(source: Source = PUBLIC, reference: str | None = None) -> ThroughputTable:
    """Read a throughput table; each file is read once per process.

    A JSON file has Gavel's form: ``{gpu type: {"('<job type>', <gang>)": {"null": steps/s alone,
    "('<other>', <gang>)": [steps/s, steps/s of the other]}}}``. An entry
    ``<gpu type>_unconsolidated`` has the throughputs of gangs on more nodes than they need.

    A CSV file has one row per throughput: job_type, scale_factor (GPUs of the gang), gpu_type and
    steps_per_second. Rows of pairs also have job_type_b and steps_per_second_b, which are empty
    elsewhere. One order of each pair is enough.

    A table may have no pairs. A table with a pair for a GPU type and gang size must have all pairs
    of the job types that have a throughput for this type and size. Throughput 0 means that a job
    or pair cannot run on the type.

    A measured folder (`repro.perf.measured_folder`) has the job types of one GPU, or subfolders for
    several GPU types. Its pairs were measured under time slicing. With ``:mps`` after the name, the
    pairs are those measured under Multi-Process Service. A job of a pair is at most as fast as
    alone. Two jobs whose pair was not measured share no GPU. A gang of several GPUs has a rate in
    proportion to its GPUs, and shares no GPUs.

    Parameters
    ----------
    source : str, Path, DataFrame or ThroughputTable
        A file, a measured folder or ``h100``, a public name (``gavel-throughputs``,
        ``gavel-throughputs-physical``), ``gavel-throughputs-2019`` (a table of the checkout),
        ``gavel-like-throughputs`` (the stand-in), a frame with the columns of the CSV file, or a
        table, which is returned as it is.
        A StandInWarning says that the stand-in replaces a public table that is not available.
    reference : str, optional
        GPU type on which durations were measured; by default v100, or the type of a measured
        folder.

    Returns
    -------
    ThroughputTable
        Throughputs (steps/s) by model, gang size and GPU type.

    Raises
    ------
    TraceError
        If the file cannot be read or breaks a rule above, or the table lacks the reference type.
    ParamError
        If a folder has no measured table.

    Warns
    -----
    StandInWarning
        If the stand-in replaces a public table that is not available.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a3c", 1, "v100", 40.0), ("a3c", 1, "k80", 10.0)]
    >>> columns = ["job_type", "scale_factor", "gpu_type", "steps_per_second"]
    >>> table = load_throughputs(pd.DataFrame(rows, columns=columns))
    >>> table.speeds("a3c", 1, ["v100", "k80"])
    [40.0, 10.0]
    """
    if isinstance(source, ThroughputTable):
        return source
    if isinstance(source, str | Path) and (measured := measured_folders_of(str(source))):
        return _measured_table(*measured, reference)
    reference = reference or _REFERENCE
    if not isinstance(source, str | Path):
        document = Document("throughputs", source.to_csv(index=False).encode())
        return _with_reference(*from_csv(document), reference, document.name)
    if str(source) == EARLY:
        return _early(reference)
    path = paths.expanded(source)
    if public.is_known(str(source)) or not os.path.exists(path):
        public_file = _public(str(source))
        if public_file is None:
            return _stand_in(reference)
        path = public_file
    return _read(path, path.stat().st_mtime_ns, path.stat().st_size, reference)


def provenance(source: str | Path, reference: str) -> dict[str, Any]:
    """Attributes of a trace that name its throughput table: a public name or an absolute path."""
    name = str(source)
    sharing = ""
    is_measured_name = measured_folders_of(name) is not None
    if is_measured_name:
        name, sharing = _split_sharing(name)
    path = paths.expanded(name)
    if _is_own_file(name) or (is_measured_name and os.path.isdir(path)):
        name = str(path.resolve())
    attrs: dict[str, Any] = {"throughputs": name + sharing, "reference_gpu": reference}
    return attrs | {"stand_in": True} if is_stand_in(source) else attrs


def throughputs_of(trace: pd.DataFrame) -> ThroughputTable | None:
    """Throughput table behind the durations of a trace, or None."""
    named = source_of(trace)
    if named is None:
        return None
    source, reference = named
    # The durations come from the stand-in. Its warning came when the trace was made.
    if trace.attrs.get("stand_in"):
        return _stand_in(reference)
    return load_throughputs(source, reference)


def source_of(trace: pd.DataFrame) -> tuple[Source, str] | None:
    """Source of the throughput table behind the durations of a trace, and its reference GPU type.

    The table is not read. None: the trace names no table.
    """
    source: Source | None = trace.attrs.get("throughputs")
    if source is None:
        return None
    if isinstance(source, ThroughputTable):
        return source, source.reference
    return source, str(trace.attrs.get("reference_gpu", _REFERENCE))


def measured_folders_of(source: str) -> tuple[tuple[MeasuredFolder, ...], str] | None:
    """Measured folders that a text names, and how pairs share the GPU.

    Parameters
    ----------
    source : str
        A measured folder, a folder of measured folders, or ``h100``; ``:mps`` or ``:timeslice``
        may follow.

    Returns
    -------
    tuple of (tuple of MeasuredFolder, str), or None
        The folders and one of `SHARING`. None if the text names no measured folder.

    Examples
    --------
    >>> measured_folders_of("h100:mps")[1]
    'mps'
    >>> measured_folders_of("gavel-throughputs") is None
    True
    """
    name, suffix = _split_sharing(source)
    sharing = suffix.removeprefix(":") or SHARING[0]
    path = Path(os.path.expanduser(name))
    # `./gavel-throughputs` names a folder beside the public name
    if os.path.isdir(path) and not public.is_known(name):
        folders = [path] if is_measured(path) else sorted(filter(is_measured, path.iterdir()))
        return (tuple(map(measured_folder, folders)), sharing) if folders else None
    if name == H100 and not os.path.exists(path):
        return (measured_folder(name),), sharing
    return None


def measured_files(source: str) -> list[Path]:
    """Files of the measured folders that a text names; empty if it names none.

    Parameters
    ----------
    source : str
        As in `measured_folders_of`.

    Examples
    --------
    >>> measured_files("gavel-throughputs")
    []
    """
    measured = measured_folders_of(source)
    if measured is None:
        return []
    folders = measured[0]
    return [file for folder in folders for file in folder.files()]


def _is_own_file(source: str | Path) -> bool:
    """Whether a text is the path of a file; ``./gavel-throughputs`` is, the public name is not."""
    # os.path, as methods of Path raise for a name too long for the file system.
    return os.path.isfile(paths.expanded(source)) and not public.is_known(str(source))


def is_stand_in(source: Source) -> bool:
    """Whether ``source`` is the stand-in, or a name without an available public file."""
    if not isinstance(source, str | Path) or _is_own_file(source):
        return False
    if measured_folders_of(str(source)):
        return False
    if str(source) in (STAND_IN, EARLY):
        return str(source) == STAND_IN
    # A text is the message of a failure.
    return isinstance(_fetched(str(source), paths.mirror_dir(), paths.cache_dir()), str)


def _public(name: str) -> Path | None:
    """File of a public table.

    None if ``name`` is the stand-in, or, with a warning, if the stand-in replaces the table.
    """
    if name == STAND_IN:
        return None
    if not public.is_known(name):
        raise TraceError(
            f"{name}: no such file, nor {public.trace_hint(name)}; a throughput table is a JSON or "
            f"CSV file, measured folder, {H100}, {PUBLIC}[-physical], {EARLY} or {STAND_IN}"
        )
    file_format = public.entry(name).format
    if file_format != "throughputs":
        raise TraceError(f"{name}: a public file of format {file_format}, not a throughput table")
    fetched = _fetched(name, paths.mirror_dir(), paths.cache_dir())
    if isinstance(fetched, Path):
        return fetched
    line = f"{fetched}; a synthetic stand-in takes its place ({STAND_IN})"
    warnings.warn(line, StandInWarning, stacklevel=3)
    return None


@functools.lru_cache(maxsize=64)
def _fetched(name: str, mirror: Path | None, cache: Path) -> Path | str:
    """File of a public table, or the message of the failure. A process tries each name once."""
    try:
        return public.fetch(name)
    except DataMissingError as error:
        return str(error)


def _split_sharing(source: str) -> tuple[str, str]:
    """Name of a source, and its suffix that says how pairs share, such as ``:mps``, or empty."""
    name, colon, sharing = source.rpartition(":")
    return (name, colon + sharing) if colon and sharing in SHARING else (source, "")


def _measured_table(
    folders: tuple[MeasuredFolder, ...], sharing: str, reference: str | None
) -> ThroughputTable:
    """Table of measured folders, one GPU type each."""
    rows: Rows = {}
    pairs: Pairs = {}
    for folder in folders:
        gpu_type = folder.gpu_type
        alone = folder.rates_alone(sharing)
        measured_pairs = folder.pair_rates(sharing) if folder.has("colocated.csv") else {}
        for job, rate in alone.items():
            row = rows.setdefault((job, 1), {})
            if gpu_type in row:
                raise TraceError(
                    f"{folder.path}: a second folder of GPU type {gpu_type}; give each GPU type one"
                )
            row[gpu_type] = rate
        if not measured_pairs:
            continue
        for job_a, job_b in itertools.combinations_with_replacement(sorted(alone), 2):
            rate_a, rate_b = measured_pairs.get((job_a, job_b), (0.0, 0.0))
            shared = min(rate_a, alone[job_a]), min(rate_b, alone[job_b])
            pairs.setdefault((job_a, job_b, 1), {})[gpu_type] = shared
    if reference is None:
        types = [folder.gpu_type for folder in folders]
        reference = types[0] if len(types) == 1 else _REFERENCE
    table = _with_reference(rows, pairs, reference, str(folders[0].path))
    return dataclasses.replace(table, names=OTHER_NAMES)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int, size: int, reference: str) -> ThroughputTable:
    """Read a file; time and size make a changed file a new entry of the cache."""
    document = Document.read(path)
    is_json = path.suffix == ".json" or document.text.lstrip()[:1] in "{["
    rows, pairs = from_json(document) if is_json else from_csv(document)
    return _with_reference(rows, pairs, reference, document.name)


@functools.lru_cache(maxsize=8)
def _early(reference: str) -> ThroughputTable:
    """Table of September 2019 with a reference type."""
    return load_throughputs(_EARLY_TABLE.frame, reference)


@functools.lru_cache(maxsize=8)
def _stand_in(reference: str) -> ThroughputTable:
    """Stand-in table with a reference type."""
    table = gavel_like()
    stand_in = _with_reference(table.rows, table.pairs, reference, STAND_IN)
    return dataclasses.replace(stand_in, stand_in=True)


def _with_reference(rows: Any, pairs: Any, reference: str, name: str) -> ThroughputTable:
    """Table with a reference type; TraceError if no job type has a throughput there."""
    gpu_types = sorted({gpu_type for row in rows.values() for gpu_type in row})
    if reference not in gpu_types:
        raise TraceError(
            f"{name}: no throughputs for GPU type {reference!r:.60}; reference_gpu is one of: "
            f"{', '.join(gpu_types)}"
        )
    return ThroughputTable(rows, reference, pairs)
