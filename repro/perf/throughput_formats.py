"""Readers of throughput tables in Gavel's JSON and in CSV. They check each entry."""

import ast
import functools
import itertools
import math
from typing import Any

import numpy as np

from repro.base.errors import TraceError
from repro.base.typing import Floats
from repro.files.checks import is_plain, refuse_strange, shown
from repro.files.strict_json import parse
from repro.files.table import Document, Table
from repro.model.jobs import MAX_GPUS_PER_JOB
from repro.perf.throughput import UNCONSOLIDATED

#: (job type, GPUs of the gang) to GPU type to steps/s.
Rows = dict[tuple[str, int], dict[str, float]]
#: (job type, other job type, GPUs of each gang) to GPU type to steps/s of the two.
Pairs = dict[tuple[str, str, int], dict[str, tuple[float, float]]]

#: Limits (steps/s) that keep times computed from ratios of throughputs finite.
_SLOWEST = 1e-9
_FASTEST = 1e9
_SPEED_RULE = f"a throughput is steps per second, 0 or more: 0, or {_SLOWEST:g} to {_FASTEST:g}"
_NAME_RULE = "the name of a job type or GPU type"
_LONGEST_KEY = 1000
_FORM = (
    '{gpu type: {"(\'<job type>\', <scale factor>)": {"null": steps per second, '
    "\"('<other>', <scale factor>)\": [steps per second, of the other]}}}"
)


def from_json(document: Document) -> tuple[Rows, Pairs]:
    """Read throughputs alone and in pairs from Gavel's JSON."""
    tables = parse(document)
    if not isinstance(tables, dict) or not tables:
        raise _no_table(document, "no GPU types")
    rows: Rows = {}
    pairs: Pairs = {}
    for gpu_type, job_types in tables.items():
        if not is_plain(gpu_type):
            raise _no_table(document, f"{shown(gpu_type)}: control characters in a GPU type")
        if not isinstance(job_types, dict):
            raise _no_table(document, f"{shown(gpu_type)}: no job types")
        for text, entries in job_types.items():
            _read_row(document, gpu_type, text, entries, rows, pairs)
    _refuse_incomplete(rows, pairs, document.name)
    return rows, pairs


def _read_row(
    document: Document, gpu_type: str, text: str, entries: Any, rows: Rows, pairs: Pairs
) -> None:
    """Add the throughputs of a job type on a GPU type, alone and in pairs."""
    key = _key(text)
    if key is None or not isinstance(entries, dict):
        raise _no_table(document, f"{gpu_type}: {shown(text)}: not a job type with its speeds")
    where = f"{gpu_type}: {text}"
    if "null" not in entries:
        raise _missing(document.name, f'{where}: "null"', "the throughput alone")
    row = rows.setdefault(key, {})
    if gpu_type in row:
        raise _no_table(document, f"{where}: a job type given twice")
    row[gpu_type] = _speed(document, f'{where}: "null"', entries["null"])
    model, width = key
    for other_text, speeds in entries.items():
        if other_text == "null":
            continue
        other = _key(other_text)
        if other is None or not isinstance(speeds, list) or len(speeds) != 2:
            raise _no_table(document, f"{where}: {shown(other_text)}: not a pair of speeds")
        where_pair = f"{where}: {other_text}"
        # Pairs of gangs of different sizes are not read.
        if other[1] == width:
            pair = _speed(document, where_pair, speeds[0]), _speed(document, where_pair, speeds[1])
            names = model, other[0], width
            _add_pair(pairs, names, gpu_type, pair, f"{document.name}: {where_pair}")


def from_csv(document: Document) -> tuple[Rows, Pairs]:
    """Read throughputs alone and in pairs from a CSV file."""
    names = ("job_type", "scale_factor", "gpu_type", "steps_per_second")
    table = Table(document, names, text=("job_type", "gpu_type", "job_type_b"))
    source = table.source({})
    for name in ("job_type", "gpu_type"):
        missing = table.frame[name].isna().to_numpy()
        table.refuse(missing, name, "missing value", "each row names one")
    for name in {"job_type", "gpu_type", "job_type_b"} & set(table.header):
        refuse_strange(table.frame[name], name, source, _NAME_RULE)
    gang_rule = f"a gang has 1 to {MAX_GPUS_PER_JOB:,} whole GPUs"
    widths = table.numbers("scale_factor", gang_rule, low=1, high=MAX_GPUS_PER_JOB)
    table.refuse(widths != np.floor(widths), "scale_factor", "not whole", gang_rule)
    speeds = _speeds(table, "steps_per_second").tolist()
    keys = list(zip(table.frame["job_type"], widths.astype(int).tolist(), strict=True))
    gpu_types = table.frame["gpu_type"].tolist()
    others = [None] * len(keys)
    if "job_type_b" in table:
        column = table.frame["job_type_b"]
        others = column.astype(object).where(column.notna(), None).tolist()
    other_speeds = _other_speeds(table, others)
    rows: Rows = {}
    pairs: Pairs = {}
    for row, ((model, width), gpu_type, other) in enumerate(
        zip(keys, gpu_types, others, strict=True)
    ):
        if other is not None:
            pair = speeds[row], other_speeds[row]
            where = f"{document.name}:{source.where(row)}:job_type_b"
            _add_pair(pairs, (model, other, width), gpu_type, pair, where)
            continue
        alone = rows.setdefault((model, width), {})
        if alone.setdefault(gpu_type, speeds[row]) != speeds[row]:
            fault = f"a second throughput of {model} on {width} GPUs of type {gpu_type}"
            raise source.error(row, "steps_per_second", fault, speeds[row], "give it once")
    _refuse_incomplete(rows, pairs, document.name)
    return rows, pairs


def _other_speeds(table: Table, others: list[Any]) -> list[float]:
    """Throughput (steps/s) of the second job of each row, NaN for a job alone."""
    name = "steps_per_second_b"
    is_pair = np.array([other is not None for other in others])
    if name not in table:
        if is_pair.any():
            raise table.source({}).missing([name], table.header)
        return [math.nan] * len(others)
    values = _speeds(table, name, required=False)
    is_missing = np.isnan(values)
    table.refuse(is_missing & is_pair, name, "missing value", _SPEED_RULE)
    alone_rule = "a pair names the second job in job_type_b; a job alone leaves both cells empty"
    table.refuse(~is_missing & ~is_pair, name, "no job_type_b in this row", alone_rule)
    return values.tolist()  # type: ignore[no-any-return]


def _speeds(table: Table, name: str, *, required: bool = True) -> Floats:
    """Column of throughputs (steps/s). TraceError unless each is 0 or within the limits."""
    values = table.numbers(name, _SPEED_RULE, low=0, high=_FASTEST, required=required)
    table.refuse((values > 0) & (values < _SLOWEST), name, "too small", _SPEED_RULE)
    return values


def _add_pair(
    pairs: Pairs,
    key: tuple[str, str, int],
    gpu_type: str,
    speeds: tuple[float, float],
    where: str,
) -> None:
    """Add a pair in alphabetical order. TraceError for a second, different value."""
    first, second, width = key
    if first == second and speeds[0] != speeds[1]:
        raise TraceError(
            f"{where}: {first} paired with itself on {gpu_type} has two speeds, {speeds[0]:g} and "
            f"{speeds[1]:g} steps/s; give one speed twice"
        )
    if second < first:
        first, second = second, first
        speeds = speeds[::-1]
    earlier = pairs.setdefault((first, second, width), {}).setdefault(gpu_type, speeds)
    if earlier != speeds:
        raise TraceError(
            f"{where}: {first} paired with {second} on {gpu_type} is given twice, as "
            f"{earlier[0]:g} and {earlier[1]:g} and as {speeds[0]:g} and {speeds[1]:g} steps/s; "
            f"give it once"
        )


def _refuse_incomplete(rows: Rows, pairs: Pairs, name: str) -> None:
    """Raise for a file with gaps.

    A job type needs a throughput alone on each GPU type, `UNCONSOLIDATED` ones excepted. If a GPU
    type has a pair of gangs of one size, it needs all pairs of its job types of this size. Both
    jobs of a pair need a throughput alone.
    """
    gpu_types = sorted({gpu_type for row in rows.values() for gpu_type in row})
    for (model, width), row in rows.items():
        for gpu_type in gpu_types:
            if gpu_type not in row and not gpu_type.endswith(UNCONSOLIDATED):
                entry = f"the throughput of {model} on {width} GPUs alone"
                raise _missing(name, f"{gpu_type}: ('{model}', {width})", entry)
    file_pairs = {
        (gpu_type, width, first, second)
        for (first, second, width), row in pairs.items()
        for gpu_type in row
    }
    for gpu_type, width in sorted({key[:2] for key in file_pairs}):
        models = sorted(
            model
            for (model, row_width), row in rows.items()
            if row_width == width and gpu_type in row
        )
        needed_pairs = {
            (gpu_type, width, first, second)
            for first, second in itertools.combinations_with_replacement(models, 2)
        }
        for _, _, first, second in sorted(needed_pairs - file_pairs):
            entry = "this pair, while others of the GPU type and gang size are there"
            raise _missing(name, f"{gpu_type}: ('{first}', {width}): ('{second}', {width})", entry)
        file_pairs -= needed_pairs
    # In each pair that is left, a job type has no throughput alone.
    for gpu_type, width, first, second in sorted(file_pairs):
        unmeasured = second if gpu_type in rows.get((first, width), ()) else first
        entry = f"the throughput alone of {unmeasured}, which is in a pair"
        raise _missing(name, f"{gpu_type}: ('{unmeasured}', {width})", entry)


def _speed(document: Document, where: str, value: Any) -> float:
    """Throughput (steps/s) of an entry. TraceError unless it is 0 or within the limits."""
    fault = None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
        fault = "not a number"
    elif value < 0:
        fault = "negative"
    elif value and not _SLOWEST <= value <= _FASTEST:
        fault = "too small" if value < _SLOWEST else "too large"
    if fault:
        raise TraceError(f"{document.name}: {where}: {fault} ({shown(repr(value))}); {_SPEED_RULE}")
    return float(value)


@functools.lru_cache(maxsize=4096)
def _key(text: str) -> tuple[str, int] | None:
    """Job type and GPUs from ``('<job type>', <scale factor>)``; None for other text."""
    try:
        model, width = ast.literal_eval(
            text if len(text) <= _LONGEST_KEY and is_plain(text) else ""
        )
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    # isinstance would take True for a whole number.
    valid = isinstance(model, str) and is_plain(model) and type(width) is int
    return (model, width) if valid and 1 <= width <= MAX_GPUS_PER_JOB else None


def _missing(name: str, where: str, entry: str) -> TraceError:
    return TraceError(f"{name}: {where}: missing entry: {entry}; give 0 where a job cannot run")


def _no_table(document: Document, reason: str) -> TraceError:
    return TraceError(
        f"{document.name}: not a Gavel throughput table ({reason}); expected JSON {_FORM}"
    )
