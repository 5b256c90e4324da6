"""Throughput tables from files: Gavel's JSON, one CSV, a public name, or the stand-in for it."""

import dataclasses
import functools
import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, StandInWarning, TraceError
from repro.files import public
from repro.files.table import Document
from repro.perf.synthetic_throughputs import gavel_like
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_formats import from_csv, from_json

Source = str | Path | pd.DataFrame | ThroughputTable

#: The table of the simulations and, under ``STAND_IN``, the calibrated one that replaces it.
PUBLIC = "gavel-throughputs"
STAND_IN = "gavel-like-throughputs"


def load_throughputs(source: Source = PUBLIC, reference: str = "v100") -> ThroughputTable:
    """Return a throughput table; each file is read once per process.

    A JSON file has the form of Gavel's: ``{gpu type: {"('<job type>', <gang>)": {"null": steps/s
    alone, "('<other>', <gang>)": [steps/s, steps/s of the other]}}}``, and ``<gpu
    type>_unconsolidated`` for gangs spread over more servers than they need.

    A CSV file has one row per speed: job_type, scale_factor (GPUs of the gang), gpu_type,
    steps_per_second, and for pairs that share their GPUs also job_type_b and steps_per_second_b,
    both empty in the rows of jobs alone. One order of each pair is enough.

    A table may have no pairs at all; if it has some for a GPU type and gang size, it has those of
    all job types with speeds there. 0 stands for what cannot run.

    Parameters
    ----------
    source : str, Path, DataFrame or ThroughputTable
        A file, a public name (``gavel-throughputs``, ``gavel-throughputs-physical``),
        ``gavel-like-throughputs`` for the calibrated stand-in, a frame with the columns of the CSV
        file, or a table, returned as it is. A StandInWarning tells when the calibrated table
        replaces a public one that cannot be had.
    reference : str
        GPU type on which durations are meant.
    """
    if isinstance(source, ThroughputTable):
        return source
    if not isinstance(source, str | Path):
        document = Document("throughputs", source.to_csv(index=False).encode())
        return _referred(*from_csv(document), reference, document.name)
    path = Path(source).expanduser()
    # the functions of os.path, as a name may be too long for the file system
    if not os.path.isfile(path) and (public.is_known(str(source)) or not os.path.exists(path)):
        found = _public(str(source))
        if found is None:
            return _stand_in(reference)
        path = found
    return _read(path, path.stat().st_mtime_ns, path.stat().st_size, reference)


def provenance(source: str | Path, reference: str) -> dict[str, Any]:
    """Return what the attributes of a trace keep of its speeds: a name or an absolute path."""
    path = Path(source).expanduser()
    named = str(path.resolve()) if os.path.isfile(path) else str(source)
    attrs: dict[str, Any] = {"throughputs": named, "reference_gpu": reference}
    return attrs | {"stand_in": True} if is_stand_in(source) else attrs


def throughputs_of(trace: pd.DataFrame) -> ThroughputTable | None:
    """Return the throughput table that the durations of a trace were measured with."""
    source = trace.attrs.get("throughputs")
    if source is None:
        return None
    reference = str(trace.attrs.get("reference_gpu", "v100"))
    # the warning came when the trace was made, and its steps belong to the stand-in
    if trace.attrs.get("stand_in"):
        return _stand_in(reference)
    return load_throughputs(source, reference)


def is_stand_in(source: Source) -> bool:
    """Tell whether the calibrated table replaces (or is) what ``source`` names."""
    if not isinstance(source, str | Path) or os.path.isfile(Path(source).expanduser()):
        return False
    return str(source) == STAND_IN or isinstance(
        _fetched(str(source), paths.mirror_dir(), paths.cache_dir()), str
    )


def _public(name: str) -> Path | None:
    """Return the file of a public table, or None (and warn) if the stand-in replaces it."""
    if name == STAND_IN:
        return None
    if not public.is_known(name):
        raise TraceError(
            f"{name}: no such file, nor {public.unknown(name)}; a throughput table is a JSON or "
            f"CSV file, {PUBLIC}, {PUBLIC}-physical or {STAND_IN}"
        )
    if (kind := public.entry(name).format) != "throughputs":
        raise TraceError(f"{name}: a public file of kind {kind}, not a throughput table")
    found = _fetched(name, paths.mirror_dir(), paths.cache_dir())
    if isinstance(found, Path):
        return found
    line = f"{found}; a synthetic stand-in takes its place ({STAND_IN})"
    warnings.warn(line, StandInWarning, stacklevel=3)
    return None


@functools.lru_cache(maxsize=64)
def _fetched(name: str, mirror: Path | None, cache: Path) -> Path | str:
    """Return the file of a public table, or why it cannot be had; a process tries once."""
    try:
        return public.fetch(name)
    except DataMissingError as error:
        return str(error)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int, size: int, reference: str) -> ThroughputTable:
    document = Document.read(path)
    is_json = path.suffix == ".json" or document.text.lstrip()[:1] in "{["
    rows, pairs = from_json(document) if is_json else from_csv(document)
    return _referred(rows, pairs, reference, document.name)


@functools.lru_cache(maxsize=8)
def _stand_in(reference: str) -> ThroughputTable:
    table = gavel_like()
    referred = _referred(table.rows, table.pairs, reference, STAND_IN)
    return dataclasses.replace(referred, stand_in=True)


def _referred(rows: Any, pairs: Any, reference: str, name: str) -> ThroughputTable:
    known = sorted({gpu_type for row in rows.values() for gpu_type in row})
    if reference not in known:
        raise TraceError(
            f"{name}: no throughputs for GPU type {reference!r}; reference_gpu is one of: "
            f"{', '.join(known)}"
        )
    return ThroughputTable(rows, reference, pairs)
