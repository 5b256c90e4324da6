"""Columns of a trace with their types and limits, and the function that enforces them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import InvalidOperation
from typing import Any, Literal

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Flags, Floats
from repro.files.checks import Source, numbers, refuse, refuse_strange, row_label, shown, type_of
from repro.files.guess import epoch_unit
from repro.model.jobs import MAX_GPUS_PER_JOB

MAX_EXACT = 2**53  # whole numbers beyond are not exact as float64
MAX_TIME_S = 2.0**33  # beyond, a float64 does not resolve a microsecond
MIN_DURATION_S = 1e-6
RESOLUTION = 1e-6  # largest rounding error of a job's end, as a fraction of its duration
_ID = "an id is a whole number or text, used once"
_NO_ID = "neither whole number nor text"
_REMEDY = "; repro.load reads a file"
_WHOLE = (int, np.integer)
#: Code of a NumPy dtype -> class of the dates in a column.
_DATE_DTYPES = {"M": "date", "m": "span"}
#: Class of dates -> types of its objects.
_DATE_TYPES: dict[str, tuple[type, ...]] = {
    "date": (date, np.datetime64),
    "span": (timedelta, np.timedelta64),
    "period": (pd.Period,),
}


@dataclass(frozen=True)
class Column:
    """Type and limits of one column."""

    value_type: Literal["id", "text", "int", "float"]
    #: values that the column accepts, in words
    accepted: str
    low: float = -np.inf
    high: float = np.inf
    required: bool = False
    #: whether ``low`` itself is outside the limits
    low_excluded: bool = False
    #: whether every job has a value if some job has one
    all_or_none: bool = False


_MAX_S = f"{MAX_TIME_S:,.0f}"
_GPUS = f"{MAX_GPUS_PER_JOB:,}"
_LONGEST = f"{_MAX_S} (272 years, exact to a microsecond)"
_SUBMIT = f"a submit time is seconds from the start of the trace, 0 or more, at most {_LONGEST}"
_DURATION = f"a duration is seconds above 0, at most {_LONGEST}"
_PREDICTED = (
    f"a predicted duration is seconds above 0, at most {_LONGEST}; give it for all jobs, or leave "
    "the column out"
)
_SERVICE = "a service is work in single-GPU seconds: duration x speed-up at the job's demand"
_ITERATION = f"an iteration takes above 0, at most {_MAX_S} s"
_SLO = "an SLO is above 0, at most 1e9, in multiples of the duration"
_CPUS = "a number of CPU cores is that of the whole job, 0 or more"
_MEMORY = "memory is MiB of the whole job, 0 or more"
_PS = f"a number of parameter servers is 0 to {_GPUS}"
_STAGE = Column("float", f"a stage time is seconds per iteration, 0 to {_MAX_S}", 0, MAX_TIME_S)

COLUMNS: dict[str, Column] = {
    "job_id": Column("id", _ID, required=True),
    "submit_time": Column("float", _SUBMIT, 0, MAX_TIME_S, required=True),
    "duration": Column("float", _DURATION, 0, MAX_TIME_S, required=True, low_excluded=True),
    "num_gpus": Column(
        "int", f"a job holds 1 to {_GPUS} whole GPUs", 1, MAX_GPUS_PER_JOB, required=True
    ),
    "predicted_duration": Column(
        "float", _PREDICTED, 0, MAX_TIME_S, low_excluded=True, all_or_none=True
    ),
    "gpu_share": Column("float", "a share is above 0, at most 1", 0, 1, low_excluded=True),
    "gpu_type": Column("text", "the name of a GPU type"),
    "user": Column("text", "the name of a user"),
    "vc": Column("text", "the name of a virtual cluster"),
    "model": Column("text", "the name of a model"),
    "batch_size": Column("int", "a batch size is 1 or more", 1),
    "iterations": Column("float", f"a number of iterations is 0 to {MAX_EXACT:,}", 0, MAX_EXACT),
    "iteration_time": Column("float", _ITERATION, 0, MAX_TIME_S, low_excluded=True),
    "service": Column("float", f"{_SERVICE}, above 0", 0, low_excluded=True),
    "num_ps": Column("int", _PS, 0, MAX_GPUS_PER_JOB),
    "num_cpus": Column("float", _CPUS, 0, MAX_EXACT),
    "memory_mib": Column("float", _MEMORY, 0, MAX_EXACT),
    "time_limit": Column(
        "float",
        f"a time limit is seconds above 0, at most {_MAX_S}",
        0,
        MAX_TIME_S,
        low_excluded=True,
    ),
    "gpu_mem_mb": Column("float", "GPU memory of a container is MB above 0", 0, low_excluded=True),
    "bandwidth_mb_s": Column(
        "float", "the traffic of a container is MB/s above 0", 0, low_excluded=True
    ),
    "gpu_util": Column("float", "a GPU is used for 0 to 100 % of the time", 0, 100),
    "min_gpus": Column("int", "a smallest number of GPUs is 0 or more", 0),
    "max_gpus": Column("int", "a largest number of GPUs is 1 or more", 1),
    "priority": Column("int", "a priority class is a whole number"),
    "priority_weight": Column("float", "a weight is 1e-9 to 1e9", 1e-9, 1e9),
    "slo": Column("float", _SLO, 0, 1e9, low_excluded=True),
    "stage_storage": _STAGE,
    "stage_cpu": _STAGE,
    "stage_gpu": _STAGE,
    "stage_network": _STAGE,
}
STAGES = tuple(name for name, column in COLUMNS.items() if column is _STAGE)
#: Columns of times (s), and of GPU seconds. Doubling all of them doubles the time of a run.
TIMES = (
    *("submit_time", "duration", "predicted_duration"),
    *("iteration_time", "service", "time_limit"),
    *STAGES,
)
REQUIRED = tuple(name for name, column in COLUMNS.items() if column.required)


def validate(
    frame: pd.DataFrame,
    source: str | Source = "trace",
    cluster_gpus: int | None = None,
    *,
    keep_order: bool = False,
) -> pd.DataFrame:
    """Trace with typed columns, sorted by submit time; the first broken rule raises.

    With ``keep_order``, rows keep their order.

    Optional columns (see ``COLUMNS``) are checked where present. Columns of text and floats may
    have missing values, columns of whole numbers may not. ``predicted_duration`` has values for all
    jobs or for none. Columns outside the schema are not changed.
    """
    if isinstance(source, str):
        source = Source(source)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise TraceError(f"{source.name}: column {twice!r} appears twice; name each column once")
    absent = [source.columns.get(name, name) for name in REQUIRED if name not in frame]
    if absent:
        raise source.missing(absent, [str(name) for name in frame.columns])
    if frame.empty:
        raise TraceError(f"{source.name}: no jobs; a trace holds at least one row")
    refuse_dates(frame, source.name)
    typed: dict[str, Any] = {
        name: _typed(frame[name], name, column, source)
        for name, column in COLUMNS.items()
        if name in frame
    }
    typed |= {str(name): frame[name] for name in frame.columns if name not in COLUMNS}
    checked = pd.DataFrame(typed, index=frame.index)
    refuse_repeats(checked["job_id"], source)
    _check_times(checked, frame, source)
    _check_limits(checked, source)
    if cluster_gpus is not None:
        refuse_gpus(cluster_gpus)
        check_fits(checked, source, cluster_gpus)
    if not keep_order and not checked["submit_time"].is_monotonic_increasing:
        checked = checked.sort_values("submit_time", kind="stable")
    checked = checked.reset_index(drop=True)
    checked.attrs = dict(frame.attrs)
    return checked


def validate_in_order(trace: pd.DataFrame, remedy: str = _REMEDY) -> pd.DataFrame:
    """Trace with typed columns under its own name; rows keep their order.

    Parameters
    ----------
    trace : DataFrame
        Jobs.
    remedy : str
        End of the message if ``trace`` is no frame.

    Raises
    ------
    TraceError
        If the trace is no frame, or breaks a rule of the schema.
    """
    if not isinstance(trace, pd.DataFrame):
        raise TraceError(
            f"the trace is {type_of(trace)}; give a DataFrame (pd.DataFrame(...)) with the "
            f"columns {', '.join(REQUIRED)}{remedy}"
        )
    return validate(trace, str(trace.attrs.get("name", "trace")), keep_order=True)


def are_sound(submit: Floats, duration: Floats, gpus: Floats) -> Flags:
    """Whether traces keep the rules of times and demands, (traces,); `validate` names the rule.

    Parameters
    ----------
    submit, duration, gpus : array of float, shape (traces, jobs)
        Columns submit_time and duration (s) and num_gpus of every trace.
    """
    is_sound = gpus == np.floor(gpus)
    columns = {"submit_time": submit, "duration": duration, "num_gpus": gpus}
    for name, values in columns.items():
        is_sound &= (values >= COLUMNS[name].low) & (values <= COLUMNS[name].high)
    is_sound &= duration >= MIN_DURATION_S
    is_sound &= np.spacing(submit + duration) <= RESOLUTION * duration
    every_job: Flags = is_sound.all(axis=1)
    return every_job


def refuse_dates(frame: pd.DataFrame, name: str) -> None:
    """Raise for dates or time spans in a column of the schema.

    The message has a Python expression that converts them.

    Parameters
    ----------
    frame : DataFrame
        Trace before validation.
    name : str
        Name of the trace in the message.
    """
    for column_name, dtype in zip(frame.columns, frame.dtypes.tolist(), strict=True):
        if column_name not in COLUMNS or not _may_hold_dates(dtype):
            continue
        column = COLUMNS[str(column_name)]
        values = frame[column_name]
        try:
            date_class = _date_class(values)
        except InvalidOperation:
            # pandas cannot compare a signalling NaN
            raise TraceError(
                f"{name}: column {column_name!r} holds a signalling NaN of Decimal; give numbers"
            ) from None
        if date_class is None:
            continue
        cells = f"trace[{column_name!r}]"
        if column.value_type in ("id", "text"):
            hint = f"text: {cells}.astype(str)"
        elif column.value_type == "int":
            hint = f"whole numbers ({column.accepted})"
        else:
            hint = f"seconds: {_to_seconds(cells, date_class, values.dtype == object)}"
        type_name = str(values.dtype)
        if values.dtype == object:
            type_name = type(values.dropna().iloc[0]).__name__
        raise TraceError(f"{name}: column {column_name!r} holds {type_name}; give {hint}")


def _may_hold_dates(dtype: Any) -> bool:
    """Whether values of a dtype may be dates, time spans or periods."""
    is_object = pd.api.types.is_object_dtype(dtype)
    return is_object or dtype.kind in _DATE_DTYPES or isinstance(dtype, pd.PeriodDtype)


def _date_class(values: pd.Series[Any]) -> str | None:
    """``date``, ``span`` or ``period`` if a column has such objects, else None."""
    if values.dtype.kind in _DATE_DTYPES:
        return _DATE_DTYPES[values.dtype.kind]
    if isinstance(values.dtype, pd.PeriodDtype):
        return "period"
    if values.dtype != object:
        return None
    cell_types = values.dropna().map(type).unique().tolist()
    for date_class, date_types in _DATE_TYPES.items():
        if any(issubclass(cell_type, date_types) for cell_type in cell_types):
            return date_class
    return None


def _to_seconds(cells: str, date_class: str, is_object_dtype: bool) -> str:
    """Python expression that converts dates, time spans or periods into seconds."""
    if date_class == "span":
        spans = f"pd.to_timedelta({cells})" if is_object_dtype else cells
        return f"{spans}.dt.total_seconds()"
    dates = cells
    if date_class == "period":
        dates = f"{cells}.map(pd.Period.to_timestamp)"
    elif is_object_dtype:
        dates = f"pd.to_datetime({cells})"
    return f"({dates} - {dates}.min()).dt.total_seconds()"


def refuse_gpus(cluster_gpus: Any) -> None:
    """Raise for a number of GPUs of a cluster that is no whole number of 1 or more."""
    is_whole = isinstance(cluster_gpus, _WHOLE) and not isinstance(cluster_gpus, bool)
    if not is_whole or cluster_gpus < 1:
        raise ParamError(
            f"cluster_gpus is {cluster_gpus!r}; give the number of GPUs of the cluster, 1 or more"
        )


def check_fits(frame: pd.DataFrame, source: str | Source, cluster_gpus: int) -> None:
    """Raise for the first job that demands more GPUs than the cluster has."""
    if isinstance(source, str):
        source = Source(source)
    over = (frame["num_gpus"] > cluster_gpus).to_numpy()
    if over.any():
        job = frame["job_id"].iloc[int(over.argmax())]
        hint = (
            f"job {job} can never start on {cluster_gpus:,} GPUs: leave it out or take a larger "
            "cluster"
        )
        refuse(over, frame["num_gpus"], "num_gpus", source, "more GPUs than the cluster has", hint)


def _typed(series: pd.Series[Any], name: str, column: Column, source: Source) -> pd.Series[Any]:
    """Column with the type of the schema; values outside its limits raise."""
    if column.value_type == "id":
        return _ids(series, name, source)
    if column.value_type == "text":
        plain = pd.api.types.is_string_dtype(series.dtype) and series.dtype != object
        text = series if plain else series.map(as_name, na_action="ignore").astype("str")
        refuse_strange(text, name, source, column.accepted)
        return text
    is_integer = column.value_type == "int"
    is_filled = column.all_or_none and _has_values(series)
    required = column.required or is_integer or is_filled
    values = numbers(series, name, source, column.accepted, required=required)

    def refuse_values(bad: Flags, rule: str, hint: str = "") -> None:
        refuse(bad, series, name, source, rule, f"{column.accepted}{hint}")

    if is_integer:
        refuse_values(values != np.floor(values), "not a whole number")
        refuse_values(np.abs(values) > MAX_EXACT, "too large")
    if column.low_excluded:
        refuse_values(values <= column.low, "not positive")
    else:
        refuse_values(values < column.low, "too small" if column.low else "negative")
    beyond = values > column.high
    unit = epoch_unit(values[int(beyond.argmax())]) if name == "submit_time" else None
    refuse_values(beyond, "too large", _since_epoch(unit))
    dtype = np.dtype(np.int64 if is_integer else np.float64)
    return series if series.dtype == dtype else pd.Series(values.astype(dtype), index=series.index)


def as_name(value: object) -> str:
    """Name as text. Whole numbers have no point: those of a column with gaps are floats.

    >>> as_name(7.0)
    '7'
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _has_values(series: pd.Series[Any]) -> bool:
    """Whether a column has a value; blank text counts as none."""
    if pd.api.types.is_numeric_dtype(series.dtype):
        return bool(series.notna().any())
    filled = series.notna() & (series.astype(str).str.strip() != "")
    return bool(filled.any())


def _since_epoch(unit: str | None) -> str:
    """Advice to convert submit times in a unit since 1970; empty without a known unit."""
    divisor = {"milliseconds": "1000", "microseconds": "1e6", "nanoseconds": "1e9"}.get(unit or "")
    return f"; looks like {unit} since 1970: divide by {divisor}" if divisor else ""


def _ids(series: pd.Series[Any], name: str, source: Source) -> pd.Series[Any]:
    """Ids as int64 or text; missing ids and ids of other types raise."""
    if series.dtype == np.int64:
        return series
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    missing = series.isna().to_numpy()
    refuse(missing, series, name, source, "missing value", _ID)
    if pd.api.types.is_float_dtype(series.dtype):
        values = series.to_numpy(float)
        broken = (values != np.floor(values)) | (np.abs(values) > MAX_EXACT)
        refuse(broken, series, name, source, _NO_ID, _ID)
        return series.astype(np.int64)
    if pd.api.types.is_integer_dtype(series.dtype):
        return _integer_ids(series)
    if not pd.api.types.is_string_dtype(series.dtype) or series.dtype == object:
        series = series.astype(object)
        cell_types = series.map(type)
        strange = [cell_type for cell_type in cell_types.unique() if not _is_id(cell_type)]
        refuse(cell_types.isin(strange).to_numpy(bool), series, name, source, _NO_ID, _ID)
        if all(issubclass(cell_type, _WHOLE) for cell_type in cell_types.unique()):
            return _integer_ids(series)
        series = series.map(str).astype("str")
    refuse((series.str.strip() == "").to_numpy(), series, name, source, "missing value", _ID)
    refuse_strange(series, name, source, _ID)
    return series


def _is_id(cell_type: type) -> bool:
    """Whether a type is that of whole numbers or text, bool excluded."""
    return issubclass(cell_type, (str, *_WHOLE)) and not issubclass(cell_type, bool)


def _integer_ids(series: pd.Series[Any]) -> pd.Series[Any]:
    """Whole numbers as int64, or as text where int64 overflows."""
    in_range = series.min() >= -(2**63) and series.max() < 2**63
    return series.astype(np.int64) if in_range else series.map(str).astype("str")


def refuse_repeats(ids: pd.Series[Any], source: Source, hint: str = "") -> None:
    """Raise for the first repeated id; ``hint`` ends the message."""
    repeated = ids.duplicated().to_numpy()
    if repeated.any():
        repeated_id = ids.iloc[int(repeated.argmax())]
        first_row = source.where(row_label(ids, int((ids == repeated_id).to_numpy().argmax())))
        where = f"line {first_row}" if source.line else first_row
        accepted = f"{_ID}; first used on {where}{f'; {hint}' if hint else ''}"
        refuse(repeated, ids, "job_id", source, "duplicate id", accepted)


def _check_times(frame: pd.DataFrame, raw: pd.DataFrame, source: Source) -> None:
    """Raise for durations too short to resolve at their submit time in float64."""
    duration = frame["duration"].to_numpy()
    hint = f"a duration is at least {MIN_DURATION_S:g} s"
    refuse(duration < MIN_DURATION_S, raw["duration"], "duration", source, "too short", hint)
    resolution = np.spacing(frame["submit_time"].to_numpy() + duration)
    unresolved = resolution > RESOLUTION * duration
    if unresolved.any():
        first_row = int(unresolved.argmax())
        hint = (
            f"float64 resolves times near {shown(frame['submit_time'].iloc[first_row])} s to "
            f"{resolution[first_row]:.1g} s only; a duration is at least "
            f"{1 / RESOLUTION:,.0f} times that; count submit times from the start of the trace"
        )
        refuse(unresolved, raw["duration"], "duration", source, "too short", hint)


def _check_limits(frame: pd.DataFrame, source: Source) -> None:
    """Raise for min_gpus above max_gpus, and for jobs whose stage times are all zero."""
    if "min_gpus" in frame and "max_gpus" in frame:
        crossed = (frame["min_gpus"] > frame["max_gpus"]).to_numpy()
        hint = "min_gpus is at most max_gpus"
        refuse(crossed, frame["min_gpus"], "min_gpus", source, "above max_gpus", hint)
    stages = [name for name in STAGES if name in frame]
    if stages:
        # a missing stage time is not a zero
        idle = np.all([frame[name].to_numpy() == 0 for name in stages], axis=0)
        if not idle.any():
            return
        names = ", ".join(source.columns.get(name, name) for name in stages)
        hint = f"an iteration takes time in at least one stage: {names}"
        refuse(idle, frame[stages[0]], stages[0], source, "all stage times are zero", hint)
