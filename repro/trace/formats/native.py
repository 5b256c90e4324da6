"""The package's own CSV: the columns of the schema under their own or other names."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.base.typing import Floats
from repro.files.checks import MissingColumns, is_plain, shown
from repro.files.guess import UNITS, foreign_format, renames_with_units, unit_words
from repro.files.spreadsheet import plain_cells
from repro.files.table import MOST_COLUMNS, Document, Parsed, Table, header_of
from repro.trace.formats import FORMATS
from repro.trace.schema import COLUMNS, REQUIRED, TIMES

#: Times that every trace has.
_REQUIRED_TIMES = ("submit_time", "duration")
_EXAMPLE = "submit_time=arrival,duration=runtime"


@FORMATS.register("repro")
def read(
    document: Document, map: str | Sequence[str] | Mapping[str, str] = "", unit: str = "s"
) -> Parsed:
    """Read the package's own CSV, as ``repro trace convert`` writes it.

    Columns: job_id, submit_time, duration, num_gpus; optional: predicted_duration, gpu_share,
    gpu_type, user, vc, model, batch_size, iterations, iteration_time, service, num_ps, num_cpus,
    memory_mib, time_limit, gpu_mem_mb, bandwidth_mb_s, gpu_util, min_gpus, max_gpus, priority,
    priority_weight, slo, stage_storage, stage_cpu, stage_gpu, stage_network.

    Columns outside the schema are left out. Ids become integers if all are whole numbers. A ``'``
    in front of text that a spreadsheet would run as a formula is removed.

    Options: ``map`` gives columns of the file the names of the schema
    (``submit_time=arrival,duration=runtime``, or a dict). ``unit`` is the unit of all times of the
    file (submit_time, duration, predicted_duration, service, iteration_time, time_limit, stage
    times): s, ms, us, ns, min, h or d.
    """
    if unit not in UNITS:
        raise ParamError(f"unit={shown(unit)}: give {', '.join(UNITS)}")
    pairs = _pairs(map)
    if pairs:
        _check_header(document, pairs)
    sources = {
        name: pairs.get(name, name)
        for name in COLUMNS
        # a column that the map renames is read under its new name only
        if name in pairs or name not in pairs.values()
    }
    text = [source for name, source in sources.items() if COLUMNS[name].value_type == "text"]
    required = [sources.get(name, name) for name in REQUIRED]
    units = {sources[name]: unit for name in TIMES if name in sources}
    try:
        table = Table(
            document, required, text=text, ids=sources.get("job_id", "job_id"), units=units
        )
    except MissingColumns as error:
        hint = _map_hint(document, pairs, unit)
        raise TraceError(f"{error}{hint}") if hint else error from None
    if b"'" in document.raw:
        table.frame = plain_cells(table.frame)
    parsed = table.parsed(**sources)
    if unit != "s":
        for name in TIMES:
            if name in parsed.frame:
                parsed.frame[name] = _seconds(table, sources[name], unit)
    return parsed


def _pairs(map: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Name in the schema -> name in the file."""
    if isinstance(map, Mapping):
        items = [(str(name), str(source)) for name, source in map.items()]
    else:
        texts = map.split(",") if isinstance(map, str) else map
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise ParamError(f"map={shown(map)}: expected COLUMN=NAME, such as {_EXAMPLE}")
        items = []
        for text in filter(str.strip, texts):
            name, equals, source = (part.strip() for part in text.partition("="))
            if not (name and equals and source):
                raise ParamError(f"map={shown(text)}: expected COLUMN=NAME, such as {_EXAMPLE}")
            items.append((name, source))
    refuse_unknown("a trace has no column", [name for name, _ in items], list(COLUMNS))
    for kind, names in (("column", [name for name, _ in items]), ("name", [n for _, n in items])):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ParamError(f"map: the {kind} {shown(twice[0])} is given twice; give it once")
    return dict(items)


def _check_header(document: Document, pairs: Mapping[str, str]) -> None:
    """Raise if the file lacks a mapped column, or already has a column of its new name."""
    line, header = header_of(document)
    if foreign_format(document.text, REQUIRED):
        # the table raises the error about another format
        return
    for name, source in pairs.items():
        where = f"{document.name}:{line}:{shown(source)}"
        if source not in header:
            raise TraceError(
                f"{where}: no such column (found {shown(', '.join(header), 200)}); map={name}="
                "NAME names a column of the file"
            )
        if name != source and name in header and name not in pairs.values():
            raise TraceError(
                f"{where}: mapped to {name}, which is a column of the file as well; leave it out "
                f"of the map, or map {name} to another column"
            )


def _map_hint(document: Document, pairs: Mapping[str, str], unit: str) -> str:
    """Map of the missing columns to columns of the file, with dots for columns not recognised.

    The map keeps the entries of ``pairs``. ``--unit`` holds for all times of the file, and times
    without a unit in their name have the unit ``unit``. If the times have several units, columns
    in another unit than ``unit``, such as runtime_ms, have no entry. The hint is empty if no
    column is to be mapped.
    """
    header = header_of(document)[1]
    if len(header) > MOST_COLUMNS or any(name.startswith("#") for name in header):
        return ""
    absent = [name for name in REQUIRED if name not in pairs and name not in header]
    # a map cannot have names with a comma, and nobody can copy names with hidden characters
    unmapped = [
        name
        for name in header
        if name not in pairs.values()
        and "," not in name
        and shown(name, len(name)) == name
        and is_plain(name)
    ]
    recognised = renames_with_units(absent, unmapped)
    times = [name for name in _REQUIRED_TIMES if name in absent]
    units = {named for _, named in recognised.values() if named is not None}
    has_time_without_unit = len(times) < len(_REQUIRED_TIMES) or any(
        recognised.get(name) and recognised[name][1] is None for name in times
    )
    if units and has_time_without_unit:
        units.add(unit)
    if len(units) > 1:
        # the error before this hint already says how to convert and rename the other columns
        absent = [
            name for name in absent if name not in recognised or recognised[name][1] in (None, unit)
        ]
        units = set()
    elif unit == "s" and not units and any(name not in recognised for name in times):
        sources = [source for source, _ in recognised.values()]
        units = unit_words([name for name in unmapped if name not in sources])
    entries = dict.fromkeys(absent, "…") | {
        name: source for name, (source, _) in recognised.items() if name in absent
    }
    if not entries:
        return ""
    entries |= pairs
    in_order = [name for name in COLUMNS if name in entries]
    mapped = ",".join(f"{name}={entries[name]}" for name in in_order)
    without_dots = mapped.replace("…", "")
    if shlex.quote(without_dots) != without_dots:
        mapped = shlex.quote(mapped)
    if len(units) == 1:
        (unit,) = units
    return f", or add --map {mapped}" + (f" --unit {unit}" if unit != "s" else "")


def _seconds(table: Table, column: str, unit: str) -> Floats:
    """Column of times in a unit as seconds; NaN for empty cells."""
    name, _, length = UNITS[unit]
    accepted = f"a time of the file is a number of {name}"
    values = table.numbers(column, accepted, required=False)
    # a division by 1000 is exact more often than a product with 0.001
    return values * length if length >= 1 else values / round(1 / length)
