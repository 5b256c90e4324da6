"""Read traces in any published format, write them, describe them."""

import os
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import InputWarning, ParamError, ReproError, TraceError, refuse_unknown
from repro.base.outside import name_of, place_note, refuse_function_failure
from repro.base.typing import Floats
from repro.files import public
from repro.files.checks import BadRows, shown, type_of
from repro.files.guess import add_format, format_of_text
from repro.files.spreadsheet import safe_cells
from repro.files.table import Document, Parsed, header_of, no_jobs_error
from repro.files.whole import refuse_binary_name, write_whole
from repro.trace.formats import FORMATS, batsim, options_of, required_columns, swf
from repro.trace.schema import COLUMNS, REQUIRED, refuse_gpus, validate, validate_in_order
from repro.trace.synth import generators

TENTHS = 10
ANY_TYPE = "any type"
#: Largest number of characters of a path in a message.
_MAX_PATH = 200
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

#: The package's own format, and its options.
NATIVE = "repro"
NATIVE_OPTIONS = {"map", "unit"}
#: Types of the options that ``attrs`` hold as they are.
_PLAIN = (str, int, float, tuple, list, dict, Path, NoneType)
DROP_HINT = "--drop-bad-rows (drop_bad_rows=True) leaves such rows out and counts them"


class Loaded(NamedTuple):
    """A validated trace, and what else was read from its file."""

    frame: pd.DataFrame
    #: rows before validation, in file order, with the times of a log
    parsed: Parsed
    #: message on the first bad row that was left out; empty without bad rows
    fault: str
    #: row that was left out because it breaks a rule -> reason
    bad_rows: dict[int, str]


def load(
    path: str | Path,
    format: str | None = None,
    *,
    cluster_gpus: int | None = None,
    drop_bad_rows: bool = False,
    **options: Any,
) -> pd.DataFrame:
    r"""Read and validate a trace.

    A row that breaks a rule raises a `TraceError` with text ``file:line:column: rule (value)``.

    Parameters
    ----------
    path : str or Path
        A file, or the name of a public trace (``repro trace list``) when no such file exists.
    format : str, optional
        One of ``FORMATS``. A public trace needs none, nor does a file whose columns are those of
        one format alone; a note names that format. A file whose header has the columns job_id,
        submit_time, duration and num_gpus is of format ``repro`` by default.
    cluster_gpus : int, optional
        GPUs of the cluster; a job that needs more is an error.
    drop_bad_rows : bool
        Leave out rows that break a rule and count them in ``dropped``, instead of an error.
    **options
        Passed to the format, such as ``throughputs`` of ``gavel``. ``map`` and ``unit`` are options
        of format ``repro``, which is then the default: names and unit of the columns of the file.

    Returns
    -------
    DataFrame
        Columns of the schema, sorted by submit time; jobs with equal times keep the order of the
        file. ``attrs`` hold name, format, options (those of the format, a table or frame by its
        type), sha256 (of the file as stored, compressed or not), synthetic (False), dropped
        ({reason: rows}), notes, unread (columns of the file that are not used), and what the format
        itself adds, such as ``stand_in``.

    Raises
    ------
    TraceError
        If the file does not exist or cannot be read, has no jobs, or a row breaks a rule, or if the
        function of the format fails.
    ParamError
        If the format or an option is unknown, or a required option is absent.
    DataMissingError
        If a public trace is not available.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "jobs.csv"
    ...     _ = path.write_text("job_id,num_gpu,submit_time,duration\n0,4,0,60\n")
    ...     load(path, "tiresias").num_gpus.tolist()
    [4]
    """
    loaded = load_with_rows(
        path, format, cluster_gpus=cluster_gpus, drop_bad_rows=drop_bad_rows, **options
    )
    return loaded.frame


def load_public(name: str, format: str | None = None, **options: Any) -> pd.DataFrame:
    """Read a public trace as `load` does, also if a file in the working folder has its name."""
    path, format = _public_file(name, format)
    frame = load(path, format, **options)
    frame.attrs["name"] = name
    return frame


def _public_file(name: str, format: str | None) -> tuple[Path, str]:
    """File of a public trace, and its format; TraceError if it is no trace."""
    format = format or public.entry(name).format
    if format not in FORMATS:
        raise TraceError(f"{name}: a table ({format}), not a trace; see repro trace list")
    return public.fetch(name), format


def load_with_rows(
    path: str | Path,
    format: str | None = None,
    *,
    cluster_gpus: int | None = None,
    drop_bad_rows: bool = False,
    **options: Any,
) -> Loaded:
    """Read a trace as `load` does, and return also the rows before validation."""
    if not isinstance(path, str | os.PathLike):
        raise TraceError(
            f"the path of a trace is {shown(repr(path), _MAX_PATH)}; give a text or Path; "
            f"repro.simulate takes a DataFrame without repro.load"
        )
    name = Path(path).name
    # os.path instead of Path: a name may be too long for the file system
    if not os.path.isfile(path):
        if public.is_known(str(path)):
            name = str(path)
            path, format = _public_file(name, format)
        elif str(path) in generators:
            raise TraceError(
                f"{path}: is a generator of traces, not a file; use repro simulate --trace {path}, "
                f"or repro.trace.synth.make({str(path)!r}, seed)"
            )
        elif not os.path.exists(path):
            missing = shown(path, _MAX_PATH)
            raise TraceError(f"{missing}: no such file, nor {public.trace_hint(str(path))}")
    document = Document.read(path, is_trace=True)
    detected = format is None and not options.keys() & NATIVE_OPTIONS
    if format is None:
        format = _format_of(document) if detected else NATIVE
    _check_options(format, options)
    fault = ""
    while True:
        try:
            parsed = _read(format, document, options)
            if parsed.frame.empty:
                raise no_jobs_error(document, parsed.dropped)
            frame = validate(parsed.frame, parsed.source, cluster_gpus)
            break
        except BadRows as error:
            if error.source != document.name:
                # the bad rows are in a second table that the format reads
                raise
            if not drop_bad_rows:
                raise TraceError(f"{error}; {DROP_HINT}") from None
            if error.reasons.keys() <= document.left_out.keys():
                raise
            fault = fault or str(error)
            # read again, as the values of a row may depend on other rows
            document = document.leaving_out(error.reasons)
    notes = list(parsed.notes)
    if detected and format != NATIVE:
        notes.insert(0, f"read in format {format}, by the contents of the file")
    dropped = Counter(parsed.dropped)
    dropped.update(document.left_out.values())
    frame.attrs |= {
        "name": name,
        "format": format,
        # frames are no options here: pandas compares attrs, and two frames have no truth value
        "options": {
            option: value if isinstance(value, _PLAIN) else type(value).__name__
            for option, value in options.items()
        },
        "sha256": document.sha256,
        "synthetic": False,
        "dropped": dict(dropped),
        "notes": notes,
        "unread": parsed.unread,
    }
    return Loaded(frame, parsed, fault, dict(document.left_out))


def _check_options(format: str, options: Mapping[str, Any]) -> None:
    """Raise ParamError if a format does not have an option, or needs one that is absent."""
    accepted = options_of(format)
    refuse_unknown(f"format {format!r} has no option", options, accepted)
    for name, option in accepted.items():
        if option.default is option.empty and name not in options:
            raise ParamError(
                f"format {format!r} needs option {name!r}; give --set {name}=VALUE, or in Python "
                f"{name}=VALUE"
            )


def _read(format: str, document: Document, options: Mapping[str, Any]) -> Parsed:
    """Rows of a document; TraceError if the function of the format fails or returns no rows."""
    read = FORMATS[format]
    subject = f"{document.name}: format {format!r}"
    try:
        parsed = read(document, **options)
    except Exception as error:
        refuse_function_failure(error, read, subject, TraceError)
        raise
    if not isinstance(parsed, Parsed):
        raise TraceError(
            f"{subject}: {name_of(read)} returns {type_of(parsed)}; return a Parsed, as "
            f"Table.parsed does{place_note(read)}"
        )
    return parsed


def has_format(path: str | Path) -> bool:
    """Whether the columns of a file are those of a format of traces, whatever its values."""
    document = Document.read(Path(path), is_trace=True)
    header = header_of(document)[1]
    return "num_gpus" in header or bool(_fitting_formats(document, header))


def detect(path: str | Path) -> str | None:
    """Format that a file has by its contents; None if several formats fit, or none."""
    document = Document.read(Path(path), is_trace=True)
    header = header_of(document)[1]
    if set(REQUIRED) <= set(header):
        return NATIVE
    fitting = _fitting_formats(document, header)
    return fitting[0] if len(fitting) == 1 else None


def _format_of(document: Document) -> str:
    """Format of a file by its contents.

    Raises
    ------
    TraceError
        If several formats fit, the message names them. If none fits, it lists the columns that the
        package's own format lacks.
    """
    line, header = header_of(document)
    if set(REQUIRED) <= set(header):
        return NATIVE
    fitting = _fitting_formats(document, header)
    if len(fitting) > 1:
        raise TraceError(
            f"{document.name}:{line}: needs a format, looks like {' or '.join(fitting)}; "
            f"{add_format(*fitting)}"
        )
    if not fitting:
        # raises the error of the package's own format about missing columns
        FORMATS[NATIVE](document)
    return fitting[0] if fitting else NATIVE


def _fitting_formats(document: Document, header: list[str]) -> list[str]:
    """Formats that the contents of a file fit, or whose required columns it has.

    A format is left out if it requires only a part of the columns of another that fits.
    """
    by_contents = format_of_text(document.text)
    if by_contents is not None and by_contents in FORMATS:
        return [by_contents]
    required = {name: set(required_columns(name)) for name in FORMATS}
    fitting = {name: columns for name, columns in required.items() if columns <= set(header)}
    # a format with more required columns fits better
    return [
        name
        for name, columns in fitting.items()
        if columns and not any(columns < larger for larger in fitting.values())
    ]


def write(frame: pd.DataFrame, path: str | Path, format: str | None = None) -> Path:
    """Write a trace as a file of format ``repro``, ``swf`` or ``batsim``, all of it or nothing.

    Text that a spreadsheet would run as a formula gets a ``'`` in front. :func:`load` removes it.
    An `InputWarning` names what the format does not hold.

    Parameters
    ----------
    frame : DataFrame
        A trace; columns outside the schema are left out.
    path : str or Path
        File to write, in a folder that exists.
    format : str, optional
        One of ``WRITERS``; by default ``swf`` for a path that ends in .swf, ``batsim`` for one
        that ends in .json, else ``repro``. A path that ends in .gz, such as jobs.swf.gz, gives a
        compressed file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TraceError
        If the trace breaks its schema, or the file cannot be written.
    ParamError
        If the format is none to write, or the path ends like a binary file, such as .xlsx.

    Warns
    -----
    InputWarning
        If the format lacks a column of the trace, or the throughput table of the trace.

    Examples
    --------
    >>> import tempfile
    >>> from repro.testing import small_trace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write(small_trace(), Path(folder) / "jobs.csv")
    ...     print(path.read_text().splitlines()[:2])
    ['job_id,submit_time,duration,num_gpus', '0,0.0,10.0,2']
    """
    path = Path(path)
    refuse_binary_name(path, FORMS)
    format = format or format_to_write(path)
    refuse_unknown("trace formats to write do not include", [format], list(WRITERS))
    checked = validate(frame, str(frame.attrs.get("name", "trace")))
    text, notes = WRITERS[format](checked)
    try:
        write_whole(path, text.encode(), parents=False)
    except ReproError as error:
        raise TraceError(str(error)) from None
    for note in notes:
        warnings.warn(note, InputWarning, stacklevel=2)
    return path


def format_to_write(path: Path) -> str:
    """Format that the ending of a path names, else ``repro``.

    >>> [format_to_write(Path(name)) for name in ("jobs.swf", "jobs.json.gz", "jobs.csv")]
    ['swf', 'batsim', 'repro']
    """
    uncompressed = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return _FORMAT_BY_ENDING.get(uncompressed.suffix.lower(), NATIVE)


def _csv(frame: pd.DataFrame) -> tuple[str, list[str]]:
    """Text of a valid trace as the package's own CSV, and a note on throughputs by GPU type."""
    columns = [name for name in COLUMNS if name in frame]
    text = safe_cells(frame[columns]).to_csv(index=False, lineterminator="\n")
    source = frame.attrs.get("throughputs")
    if source is None:
        return text, []
    here = Path.cwd()
    path = Path(str(source))
    table = shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
    note = (
        "throughputs by GPU type are not in the file: runs on GPU types need --throughputs "
        f"{table} --reference-gpu {frame.attrs.get('reference_gpu', 'v100')}"
    )
    return text, [note]


#: Format -> function from a valid trace to the text of a file and notes on what it lacks.
WRITERS: dict[str, Callable[[pd.DataFrame], tuple[str, list[str]]]] = {
    NATIVE: _csv,
    "swf": swf.text_of,
    "batsim": batsim.text_of,
}
#: Ending of a path -> format to write.
_FORMAT_BY_ENDING = {".swf": "swf", ".json": "batsim"}
#: Formats to write, in words.
FORMS = "CSV, SWF or Batsim"


def describe(
    frame: pd.DataFrame,
    cluster_gpus: int | None = None,
    gpus_by_type: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Size, load and contents of a trace, a summary to read before a simulation.

    The keys are name, format, sha256, synthetic, jobs, first_submit_s, span_s (first to last
    submission), gpus ({GPUs: jobs}), duration_s (mean, min, p10 … p99, max), mean_interarrival_s,
    gpu_seconds (of whole GPUs, whatever ``gpu_share``), mean_gpus_demanded (gpu_seconds / span),
    demand_over_time (GPUs demanded by the jobs of each tenth of the span), cluster_gpus,
    offered_load (mean_gpus_demanded / cluster_gpus), load_over_time (demand_over_time /
    cluster_gpus), load_by_type, never_fit (jobs that demand more GPUs than the cluster has),
    wider_than_any_type (jobs that demand more GPUs than the cluster has of any one type), dropped,
    notes, unread. Values are None where they are undefined: a span of 0 s, no cluster.

    ``load_by_type`` needs a trace with ``gpu_type`` and a cluster with GPU types. For each type, or
    choice of types such as ``A|B``, it has jobs, gpu_seconds, gpus of the cluster, offered_load and
    never_fit.

    Parameters
    ----------
    frame : DataFrame
        A trace.
    cluster_gpus : int, optional
        GPUs of the cluster, for the offered load.
    gpus_by_type : mapping of str to int, optional
        GPUs of each type of the cluster.

    Returns
    -------
    dict
        A value per key above. Times are seconds, and loads are fractions of the GPUs.

    Raises
    ------
    TraceError
        If the trace breaks its schema.
    ParamError
        If ``cluster_gpus`` is no whole number of 1 or more.

    Examples
    --------
    >>> jobs = {"job_id": [0, 1], "submit_time": [0, 60], "duration": [60, 30], "num_gpus": [1, 2]}
    >>> describe(pd.DataFrame(jobs), cluster_gpus=4)["offered_load"]
    0.5
    """
    frame = validate_in_order(frame)
    if cluster_gpus is not None:
        refuse_gpus(cluster_gpus)
    submit = frame["submit_time"].to_numpy(float)
    duration = frame["duration"].to_numpy(float)
    span = float(submit.max() - submit.min())
    work = gpu_seconds(frame)
    total = float(work.sum())
    demand = total / span if span > 0 else None
    tenths = _tenths(submit, work, span) if span > 0 else None
    load_over_time = None
    if tenths is not None and cluster_gpus is not None:
        load_over_time = [gpus / cluster_gpus for gpus in tenths]
    mix = frame["num_gpus"].value_counts().sort_index()
    values = np.quantile(duration, QUANTILES).tolist()
    quantiles = {f"p{round(100 * q)}": value for q, value in zip(QUANTILES, values, strict=True)}
    range_and_quantiles = {"min": float(duration.min()), **quantiles, "max": float(duration.max())}
    attrs = frame.attrs
    by_type = None
    if gpus_by_type and "gpu_type" in frame:
        by_type = _load_by_type(frame, work, span, gpus_by_type)
    largest = max(gpus_by_type.values()) if gpus_by_type else None
    notes = [
        *attrs.get("notes", []),
        *_share_notes(frame, work),
        *_spelling_notes(frame, gpus_by_type or {}),
    ]
    return {
        **{name: attrs.get(name) for name in ("name", "format", "sha256", "synthetic")},
        "jobs": len(frame),
        "first_submit_s": float(submit.min()),
        "span_s": span,
        "gpus": dict(zip(mix.index.tolist(), mix.tolist(), strict=True)),
        "duration_s": {"mean": float(duration.mean()), **range_and_quantiles},
        "mean_interarrival_s": span / (len(frame) - 1) if len(frame) > 1 else None,
        "gpu_seconds": total,
        "mean_gpus_demanded": demand,
        "demand_over_time": tenths,
        "cluster_gpus": cluster_gpus,
        "offered_load": None if demand is None or cluster_gpus is None else demand / cluster_gpus,
        "load_over_time": load_over_time,
        "load_by_type": by_type,
        "never_fit": _jobs_above(frame, cluster_gpus),
        "wider_than_any_type": _jobs_above(frame, largest),
        "dropped": dict(attrs.get("dropped", {})),
        "notes": notes,
        "unread": list(attrs.get("unread", [])),
    }


def gpu_seconds(frame: pd.DataFrame) -> Floats:
    """GPU-seconds that each job holds, (jobs,): whole GPUs, also where it uses a share of them."""
    seconds: Floats = frame["duration"].to_numpy(float) * frame["num_gpus"].to_numpy(float)
    return seconds


def _share_notes(frame: pd.DataFrame, work: Floats) -> list[str]:
    """Note on the part of the held GPU-seconds that jobs with a share of a GPU use."""
    if "gpu_share" not in frame:
        return []
    share = frame["gpu_share"].fillna(1.0).to_numpy(float)
    parts = int((share < 1).sum())
    if not parts:
        return []
    used = float((work * share).sum() / work.sum())
    return [
        f"{parts:,} of {len(frame):,} jobs use a part of a GPU (gpu_share): work and load count "
        f"whole GPUs, and the jobs use {used:.1%} of these GPU-seconds"
    ]


def _spelling_notes(frame: pd.DataFrame, gpus_by_type: Mapping[str, int]) -> list[str]:
    """Note on GPU types of trace and cluster that differ in upper and lower case alone."""
    if "gpu_type" not in frame:
        return []
    demanded = {gpu for name in frame["gpu_type"].dropna().unique() for gpu in name.split("|")}
    by_letters = {name.casefold(): name for name in gpus_by_type}
    pairs = [
        f"{name} of the trace and {by_letters[name.casefold()]} of the cluster"
        for name in sorted(demanded - gpus_by_type.keys())
        if name.casefold() in by_letters
    ]
    if not pairs:
        return []
    return [f"GPU types differ in upper and lower case alone: {', '.join(pairs)}; write them alike"]


def _jobs_above(frame: pd.DataFrame, gpus: int | None) -> int | None:
    """Number of jobs that demand more than ``gpus`` GPUs; None if ``gpus`` is None."""
    return None if gpus is None else int((frame["num_gpus"] > gpus).sum())


def _tenths(submit: Floats, work: Floats, span: float) -> list[float]:
    """GPUs demanded by the jobs that arrive in each tenth of the span, (10,)."""
    tenth = np.minimum((submit - submit.min()) * TENTHS // span, TENTHS - 1).astype(np.int64)
    demanded: list[float] = (np.bincount(tenth, work, TENTHS) * TENTHS / span).tolist()
    return demanded


def _load_by_type(
    frame: pd.DataFrame, work: Floats, span: float, gpus_by_type: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Jobs, work and load of each GPU type, or choice of types, that jobs demand."""
    all_gpus = sum(gpus_by_type.values())
    demanded = frame["gpu_type"].astype(object).where(frame["gpu_type"].notna(), ANY_TYPE)
    loads = {}
    for name in sorted(demanded.unique()):
        rows = (demanded == name).to_numpy()
        gpus = all_gpus
        largest = all_gpus
        if name != ANY_TYPE:
            # a job may accept several GPU types
            counts = [gpus_by_type.get(gpu_type, 0) for gpu_type in dict.fromkeys(name.split("|"))]
            gpus = sum(counts)
            largest = max(counts)
        seconds = float(work[rows].sum())
        loads[name] = {
            "jobs": int(rows.sum()),
            "gpu_seconds": seconds,
            "gpus": gpus,
            "offered_load": seconds / span / gpus if span > 0 and gpus else None,
            "never_fit": int((frame["num_gpus"].to_numpy()[rows] > largest).sum()),
        }
    return loads
