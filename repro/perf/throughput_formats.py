"""The two formats of throughput tables, checked entry by entry: Gavel's JSON, and CSV."""

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

#: (job type, GPUs of the gang) to GPU type to steps per second.
Rows = dict[tuple[str, int], dict[str, float]]
#: (job type, other job type, GPUs of each gang) to GPU type to steps per second of the two.
Pairs = dict[tuple[str, str, int], dict[str, tuple[float, float]]]

#: Between these the ratio of any two, times any number of steps, is a plain float.
_SLOWEST = 1e-9
_FASTEST = 1e9
_SPEED = f"a throughput is steps per second, 0 or more: 0, or {_SLOWEST:g} to {_FASTEST:g}"
_NAME = "the name of a job type or GPU type"
_LONGEST_KEY = 1000
_FORM = (
    '{gpu type: {"(\'<job type>\', <scale factor>)": {"null": steps per second, '
    "\"('<other>', <scale factor>)\": [steps per second, of the other]}}}"
)


def from_json(document: Document) -> tuple[Rows, Pairs]:
    """Return speeds alone and in pairs from Gavel's JSON."""
    tables = parse(document)
    if not isinstance(tables, dict) or not tables:
        raise _no_table(document, "no GPU types")
    rows: Rows = {}
    pairs: Pairs = {}
    for gpu_type, held in tables.items():
        if not is_plain(gpu_type):
            raise _no_table(document, f"{shown(gpu_type)}: control characters in a GPU type")
        if not isinstance(held, dict):
            raise _no_table(document, f"{shown(gpu_type)}: no job types")
        for text, entries in held.items():
            _read_row(document, gpu_type, text, entries, rows, pairs)
    _complete(rows, pairs, document.name)
    return rows, pairs


def _read_row(
    document: Document, gpu_type: str, text: str, entries: Any, rows: Rows, pairs: Pairs
) -> None:
    """Add the speeds of one job type on one GPU type, alone and beside every other."""
    key = _key(text)
    if key is None or not isinstance(entries, dict):
        raise _no_table(document, f"{gpu_type}: {shown(text)}: not a job type with its speeds")
    place = f"{gpu_type}: {text}"
    if "null" not in entries:
        raise _missing(document.name, f'{place}: "null"', "the throughput alone")
    row = rows.setdefault(key, {})
    if gpu_type in row:
        raise _no_table(document, f"{place}: a job type that stands there twice")
    row[gpu_type] = _speed(document, f'{place}: "null"', entries["null"])
    model, gang = key
    for other_text, both in entries.items():
        if other_text == "null":
            continue
        other = _key(other_text)
        if other is None or not isinstance(both, list) or len(both) != 2:
            raise _no_table(document, f"{place}: {shown(other_text)}: not a pair of speeds")
        where = f"{place}: {other_text}"
        if other[1] == gang:
            found = _speed(document, where, both[0]), _speed(document, where, both[1])
            _add_pair(pairs, model, other[0], gang, gpu_type, found, f"{document.name}: {where}")


def from_csv(document: Document) -> tuple[Rows, Pairs]:
    """Return speeds alone and in pairs from a CSV file."""
    names = ("job_type", "scale_factor", "gpu_type", "steps_per_second")
    table = Table(document, names, text=("job_type", "gpu_type", "job_type_b"))
    origin = table.origin({})
    for name in ("job_type", "gpu_type"):
        gone = table.frame[name].isna().to_numpy()
        table.refuse(gone, name, "missing value", "each row names one")
    for name in {"job_type", "gpu_type", "job_type_b"} & set(table.header):
        refuse_strange(table.frame[name], name, origin, _NAME)
    gang_rule = f"a gang has 1 to {MAX_GPUS_PER_JOB:,} whole GPUs"
    gangs = table.numbers("scale_factor", gang_rule, low=1, high=MAX_GPUS_PER_JOB)
    table.refuse(gangs != np.floor(gangs), "scale_factor", "not whole", gang_rule)
    speeds = _speeds(table, "steps_per_second").tolist()
    keys = list(zip(table.frame["job_type"], gangs.astype(int).tolist(), strict=True))
    gpu_types = table.frame["gpu_type"].tolist()
    others = [None] * len(keys)
    if "job_type_b" in table:
        held = table.frame["job_type_b"]
        others = held.astype(object).where(held.notna(), None).tolist()
    beside = _beside(table, others)
    rows: Rows = {}
    pairs: Pairs = {}
    for row, ((model, gang), gpu_type, other) in enumerate(
        zip(keys, gpu_types, others, strict=True)
    ):
        if other is not None:
            found = speeds[row], beside[row]
            place = f"{document.name}:{origin.where(row)}:job_type_b"
            _add_pair(pairs, model, other, gang, gpu_type, found, place)
        elif rows.setdefault((model, gang), {}).setdefault(gpu_type, speeds[row]) != speeds[row]:
            rule = f"a second throughput of {model} on {gang} GPUs of type {gpu_type}"
            raise origin.error(row, "steps_per_second", rule, speeds[row], "give it once")
    _complete(rows, pairs, document.name)
    return rows, pairs


def _beside(table: Table, others: list[Any]) -> list[float]:
    """Return the speed of the second job of each row, NaN where there is none."""
    name = "steps_per_second_b"
    if not any(others):
        return [math.nan] * len(others)
    if name not in table:
        raise table.origin({}).missing([name], table.header)
    values = _speeds(table, name, required=False)
    gone = np.isnan(values) & np.array([other is not None for other in others])
    table.refuse(gone, name, "missing value", _SPEED)
    return values.tolist()  # type: ignore[no-any-return]


def _speeds(table: Table, name: str, *, required: bool = True) -> Floats:
    """Return a column of speeds; what is neither 0 nor within the limits raises."""
    values = table.numbers(name, _SPEED, low=0, high=_FASTEST, required=required)
    table.refuse((values > 0) & (values < _SLOWEST), name, "too small", _SPEED)
    return values


def _add_pair(
    pairs: Pairs,
    one: str,
    other: str,
    gang: int,
    gpu_type: str,
    found: tuple[float, float],
    place: str,
) -> None:
    """File a pair under its alphabetical order; a second, different value raises."""
    if one == other and found[0] != found[1]:
        raise TraceError(
            f"{place}: {one} beside itself on {gpu_type} has two speeds, {found[0]:g} and "
            f"{found[1]:g} steps/s; give one speed twice"
        )
    if other < one:
        one, other, found = other, one, found[::-1]
    known = pairs.setdefault((one, other, gang), {}).setdefault(gpu_type, found)
    if known != found:
        raise TraceError(
            f"{place}: {one} beside {other} on {gpu_type} is given twice, as {known[0]:g} and "
            f"{known[1]:g} and as {found[0]:g} and {found[1]:g} steps/s; give it once"
        )


def _complete(rows: Rows, pairs: Pairs, name: str) -> None:
    """Raise for a job type without a speed, or a pair missing among those of its GPU type."""
    gpu_types = sorted({gpu_type for row in rows.values() for gpu_type in row})
    for (model, gang), row in rows.items():
        for gpu_type in gpu_types:
            if gpu_type not in row and not gpu_type.endswith(UNCONSOLIDATED):
                what = f"the throughput of {model} on {gang} GPUs alone"
                raise _missing(name, f"{gpu_type}: ('{model}', {gang})", what)
    present = {
        (gpu_type, gang, one, other)
        for (one, other, gang), row in pairs.items()
        for gpu_type in row
    }
    for gpu_type, gang in sorted({entry[:2] for entry in present}):
        models = sorted(m for (m, width), row in rows.items() if width == gang and gpu_type in row)
        both = itertools.combinations_with_replacement(models, 2)
        wanted = {(gpu_type, gang, one, other) for one, other in both}
        for _, _, one, other in sorted(wanted - present):
            what = "this pair, while others of the GPU type and gang size are there"
            raise _missing(name, f"{gpu_type}: ('{one}', {gang}): ('{other}', {gang})", what)
        present -= wanted
    for gpu_type, gang, one, other in sorted(present):
        alone = other if gpu_type in rows.get((one, gang), ()) else one
        what = f"the throughput alone of {alone}, which is in a pair"
        raise _missing(name, f"{gpu_type}: ('{alone}', {gang})", what)


def _speed(document: Document, place: str, value: Any) -> float:
    rule = None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
        rule = "not a number"
    elif value < 0:
        rule = "negative"
    elif value and not _SLOWEST <= value <= _FASTEST:
        rule = "too small" if value < _SLOWEST else "too large"
    if rule:
        raise TraceError(f"{document.name}: {place}: {rule} ({shown(repr(value))}); {_SPEED}")
    return float(value)


@functools.lru_cache(maxsize=4096)
def _key(text: str) -> tuple[str, int] | None:
    """Split ``('<job type>', <scale factor>)``; None if it is no such text."""
    try:
        model, gang = ast.literal_eval(text if len(text) <= _LONGEST_KEY and is_plain(text) else "")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    # the truth values are whole numbers to isinstance
    whole = isinstance(model, str) and is_plain(model) and type(gang) is int
    return (model, gang) if whole and 1 <= gang <= MAX_GPUS_PER_JOB else None


def _missing(name: str, place: str, what: str) -> TraceError:
    return TraceError(f"{name}: {place}: missing entry: {what}; 0 stands for what cannot run")


def _no_table(document: Document, why: str) -> TraceError:
    return TraceError(
        f"{document.name}: not a Gavel throughput table ({why}); expected JSON {_FORM}"
    )
