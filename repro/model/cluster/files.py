"""Cluster files: YAML, Tiresias' CSV, and the node lists of openb, Philly and Alibaba's PAI."""

import csv
import io
import itertools
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from repro.base.errors import InputWarning, TraceError, near
from repro.files.guess import MEANINGS, renames
from repro.files.strict_yaml import MAX_BYTES as MAX_YAML_BYTES
from repro.files.strict_yaml import parse_yaml
from repro.files.whole import read_small
from repro.model.cluster.node import MAX_GPUS_PER_NODE, MAX_NODES, Node

#: Largest accepted cluster file (bytes). A million nodes take about 40 MB.
MAX_BYTES = 64 << 20
MAX_NAME = 60
#: Page with the columns of the layouts.
_PAGE = "docs/formats/clusters.md"
MAX_COLUMNS = 100
MAX_NUMBER = 10**12 - 1
MIB_PER_GB = 1024
MB_PER_GB = 1000


class Layout(NamedTuple):
    """Columns of a CSV file of nodes."""

    #: what the file is, for messages
    title: str
    required: tuple[str, ...]
    #: further columns that are accepted; those of Tiresias are ignored
    optional: tuple[str, ...]
    #: column with the name of a node, which no other node has; empty if there is no such column
    id: str = ""


TIRESIAS = Layout(
    "a Tiresias cluster",
    ("num_switch", "num_node_p_switch", "num_gpu_p_node"),
    ("num_cpu_p_node", "mem_p_node"),
)
OPENB = Layout("an openb node list", ("sn", "gpu", "model"), ("cpu_milli", "memory_mib"), "sn")
PHILLY = Layout(
    "Philly's machine list",
    ("machineId", "number of GPUs"),
    ("single GPU mem",),
    "machineId",
)
PAI = Layout(
    "PAI's machine list",
    ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
    (),
    "machine",
)
LAYOUTS = (TIRESIAS, OPENB, PHILLY, PAI)
#: GPU type of PAI's machines without a GPU.
_PAI_NO_GPU = "CPU"
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_WHOLE_GB = re.compile(r"([0-9]{1,6}) ?GB", re.IGNORECASE)
#: Meaning of the columns of node lists, by name.
_NODE_MEANINGS = MEANINGS | dict.fromkeys(("model", "gpumodel", "gputype", "gpuspec"), "a GPU type")
YAML_KEYS = (
    "count",
    "gpus",
    "type",
    "switch",
    "domain",
    "used",
    "gpu_mem_mb",
    "bandwidth_mb_s",
    "cpus",
    "memory_mib",
)
YAML_EXAMPLE = "e.g. nodes: [{count: 4, gpus: 8, type: v100, switch: 0}]"


def read_nodes(path: Path) -> tuple[Node, ...]:
    """Nodes of a cluster file, in order."""
    suffix = path.suffix.lower()
    # Philly's cluster_machine_list has no ending
    is_csv = suffix == ".csv" or (not suffix and path.is_file())
    if not is_csv and suffix not in (".yaml", ".yml"):
        raise TraceError(
            f"cluster file {path}: the name must end in .csv or .yaml; for a spec such as 8x8 "
            "use no slash"
        )
    text = read_small(path, MAX_BYTES if is_csv else MAX_YAML_BYTES, TraceError)
    if not text.strip():
        raise TraceError(f"{path}: the file is empty")
    nodes: list[Node] = []
    rows = _csv_nodes(path, text) if is_csv else _yaml_nodes(path, text)
    for where, count, node in rows:
        if node.total > MAX_GPUS_PER_NODE or len(nodes) + count > MAX_NODES:
            raise TraceError(
                f"{where}: {len(nodes) + count} nodes, {node.total} GPUs in one; at most "
                f"{MAX_NODES} nodes of {MAX_GPUS_PER_NODE} GPUs are accepted"
            )
        nodes += [node] * count
    if not any(node.gpus for node in nodes):
        raise TraceError(f"{path}: no node with a GPU that jobs can get; at least one is needed")
    return tuple(nodes)


def _csv_nodes(path: Path, text: str) -> Iterator[tuple[str, int, Node]]:
    """Yield file and line, a number of equal nodes, and the node, from a CSV file."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TraceError(f"{path}:{line}: a byte is zero; a cluster file is text")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = _rows(lines, path)
    header = [name.strip() for name in next(rows)]
    where = f"{path}:{lines.line_num}"
    if _is_pai_row(header):
        # the public file has its header in a file of its own
        rows = itertools.chain([header], rows)
        header = list(PAI.required)
    if len(header) > MAX_COLUMNS:
        raise TraceError(f"{where}: {len(header):,} columns; at most {MAX_COLUMNS} are accepted")
    fitting = (layout for layout in LAYOUTS if set(layout.required) <= set(header))
    layout = next(fitting, None)
    if layout is None:
        advice = _rename_hint(header) or f"; give {_accepted()}, separated by commas ({_PAGE})"
        raise TraceError(
            f"{where}: columns {','.join(header)[:30]!r} are those of no node list{advice}"
        )
    _check_header(header, layout, where)
    if layout is TIRESIAS:
        yield from _tiresias_nodes(_cells(path, lines, rows, header))
        return
    first_use: dict[str, str] = {}
    left_out = 0
    total = 0
    for where, cells in _cells(path, lines, rows, header):
        name = cells[layout.id]
        if name in first_use:
            raise TraceError(
                f"{where}: column {layout.id} is {name[:40]!r}, as at {first_use[name]}; keep one "
                "row per node"
            )
        if name:
            first_use[name] = where
        total += 1
        node = _NODE_OF_ROW[layout](cells, where)
        if node is None:
            left_out += 1
        else:
            yield where, 1, node
    if left_out and left_out < total:
        warnings.warn(
            f"{path}: {left_out:,} of {total:,} nodes have no GPU and are left out",
            InputWarning,
            stacklevel=2,
        )


def _cells(
    path: Path, lines: Any, rows: Iterator[list[str]], header: list[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield file and line of each row, and its cells by column without blanks around them."""
    for row in rows:
        where = f"{path}:{lines.line_num}"
        if len(row) != len(header):
            raise TraceError(f"{where}: {len(row)} values under {len(header)} columns")
        yield where, dict(zip(header, map(str.strip, row), strict=True))


def _tiresias_nodes(
    rows: Iterator[tuple[str, dict[str, str]]],
) -> Iterator[tuple[str, int, Node]]:
    """Yield file and line, number of nodes and the node, for each switch; its nodes are equal."""
    next_switch = 0
    for where, cells in rows:
        switches, nodes, gpus = (
            _integer(_digits(cells[key]), f"{where}: column {key}") for key in TIRESIAS.required
        )
        if switches * nodes > MAX_NODES:
            raise TraceError(f"{where}: {switches * nodes} nodes; at most {MAX_NODES} are accepted")
        for switch in range(next_switch, next_switch + switches):
            yield where, nodes, Node(gpus, None, switch)
        next_switch += switches


def _openb_node(cells: dict[str, str], where: str) -> Node | None:
    """Node of a row of openb's list; None without a GPU."""
    gpus = _integer(_digits(cells["gpu"]), f"{where}: column gpu", least=0)
    if not gpus:
        return None
    model = cells["model"]
    gpu_type = _gpu_type_name(model, f"{where}: column model") if model else None
    cpus = _openb_number(cells, "cpu_milli", where) / 1000.0
    memory_mib = _openb_number(cells, "memory_mib", where)
    return Node(gpus, gpu_type, cpus=cpus, memory_mib=memory_mib)


def _openb_number(cells: dict[str, str], name: str, where: str) -> float:
    """Number in an optional column of an openb list; infinity without a value."""
    text = cells.get(name, "")
    return float(_integer(_digits(text), f"{where}: column {name}")) if text else math.inf


def _philly_node(cells: dict[str, str], where: str) -> Node | None:
    """Node of a row of Philly's list, of no GPU type; None without a GPU."""
    column = "number of GPUs"
    gpus = _integer(_digits(cells[column]), f"{where}: column {column}", least=0)
    if not gpus:
        return None
    text = cells.get("single GPU mem", "")
    if not text:
        return Node(gpus)
    match = _WHOLE_GB.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise TraceError(
            f"{where}: column single GPU mem is {text[:40]!r}; a memory such as 24GB is needed"
        )
    return Node(gpus, gpu_mem_mb=float(MB_PER_GB * int(match[1])))


def _pai_node(cells: dict[str, str], where: str) -> Node | None:
    """Node of a row of PAI's list; None without a GPU."""
    gpus = _integer(_digits(cells["cap_gpu"]), f"{where}: column cap_gpu", least=0)
    cpus, memory_gb = (_decimal(cells, name, where) for name in ("cap_cpu", "cap_mem"))
    if not gpus:
        return None
    gpu_type = cells["gpu_type"]
    if gpu_type == _PAI_NO_GPU:
        raise TraceError(
            f"{where}: column gpu_type is {_PAI_NO_GPU!r}, a machine without a GPU, but cap_gpu is "
            f"{gpus}; give a GPU type"
        )
    name = _gpu_type_name(gpu_type, f"{where}: column gpu_type") if gpu_type else None
    return Node(gpus, name, cpus=cpus, memory_mib=memory_gb * MIB_PER_GB)


def _is_pai_row(cells: list[str]) -> bool:
    """Whether the first row of a file is a machine of PAI: two names and three numbers."""
    return (
        len(cells) == len(PAI.required)
        and not _DECIMAL.fullmatch(cells[1])
        and all(map(_DECIMAL.fullmatch, cells[2:]))
    )


def _decimal(cells: dict[str, str], name: str, where: str) -> float:
    """Number above 0 in a column; infinity without a value."""
    text = cells[name]
    if not text:
        return math.inf
    if not _DECIMAL.fullmatch(text) or float(text) == 0:
        raise TraceError(f"{where}: column {name} is {text[:40]!r}; a number above 0 is needed")
    return float(text)


#: Layout with a row per node -> function from the cells of a row to the node.
_NODE_OF_ROW = {OPENB: _openb_node, PHILLY: _philly_node, PAI: _pai_node}


def _accepted() -> str:
    """Layouts, for messages."""
    titles = [layout.title for layout in LAYOUTS]
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


def _check_header(header: list[str], layout: Layout, where: str) -> None:
    """Refuse repeated and unknown columns."""
    accepted = layout.required + layout.optional
    for name in header:
        if header.count(name) > 1:
            raise TraceError(f"{where}: column {name[:40]!r} stands twice; keep one")
        if name not in accepted:
            raise TraceError(
                f"{where}: column {name[:40]!r} has no meaning in a cluster file; accepted are "
                f"{','.join(accepted)}"
            )


def _rename_hint(header: list[str]) -> str:
    """Advice to rename columns as in openb; empty without a column of GPUs."""
    absent = [name for name in OPENB.required if name not in header]
    renamed = renames(
        absent, [name for name in header if name not in OPENB.required], _NODE_MEANINGS
    )
    if "gpu" not in renamed and "gpu" not in header:
        return ""
    hint = [f"rename {name} to {accepted}" for accepted, name in renamed.items()]
    hint += [f"add {name} (may be empty)" for name in absent if name not in renamed]
    accepted_names = {*OPENB.required, *OPENB.optional, *renamed.values()}
    if superfluous := [name for name in header if name not in accepted_names]:
        hint.append(f"leave out {', '.join(superfluous)}")
    return f"; to make it an openb node list: {', '.join(hint)[:300]}"


def _rows(lines: Any, path: Path) -> Iterator[list[str]]:
    """Yield the rows that are not blank; TraceError for text that is not CSV."""
    try:
        yield from filter(None, lines)
    except csv.Error as error:
        raise TraceError(f"{path}:{lines.line_num}: not CSV ({error}); check the quotes") from None


def _yaml_nodes(path: Path, text: str) -> Iterator[tuple[str, int, Node]]:
    """Yield file and line, a number of equal nodes, and the node, from a YAML file."""
    located = parse_yaml(text, str(path), TraceError)
    content = located.value
    entries = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise TraceError(f"{path}:1: needs a list under the key nodes, {YAML_EXAMPLE}")
    for key in content:
        if key != "nodes":
            line = located.line((str(key),))
            raise TraceError(f"{path}:{line}: unknown key {str(key)[:40]!r} (accepted: nodes)")
    for number, entry in enumerate(entries):
        where = f"{path}:{located.line(('nodes', number))}: nodes[{number}]"
        if not isinstance(entry, dict) or "gpus" not in entry:
            raise TraceError(f"{where} is not a mapping with the key gpus; {YAML_EXAMPLE}")
        for key in entry:
            if key not in YAML_KEYS:
                hint = f"{near(key, YAML_KEYS)} (accepted: {', '.join(YAML_KEYS)})"
                raise TraceError(f"{where} has the unknown key {str(key)[:40]!r}{hint}")
        gpu_type = entry.get("type")
        if gpu_type is not None:
            gpu_type = _gpu_type_name(gpu_type, f"{where}.type")
        count = _integer(entry.get("count", 1), f"{where}.count")
        gpus = _integer(entry["gpus"], f"{where}.gpus")
        switch, domain, used = (
            _integer(entry.get(key, 0), f"{where}.{key}", least=0)
            for key in ("switch", "domain", "used")
        )
        if used > gpus:
            raise TraceError(f"{where}.used is {used}, but gpus is {gpus}; give at most {gpus}")
        limits = {
            key: float(_integer(entry[key], f"{where}.{key}"))
            for key in ("gpu_mem_mb", "bandwidth_mb_s", "cpus", "memory_mib")
            if key in entry
        }
        yield where, count, Node(gpus - used, gpu_type, switch, domain, used, **limits)


def _gpu_type_name(name: Any, where: str) -> str:
    """Name of a GPU type; TraceError if it is not printable text of accepted length."""
    if not isinstance(name, str):
        raise TraceError(f"{where} is {name!r:.40}; a name is needed, quote it if numeric")
    if not name.isprintable() or not name.strip() or name != name.strip() or len(name) > MAX_NAME:
        raise TraceError(
            f"{where} is {name[:40]!r}; a name of 1 to {MAX_NAME} printable characters without "
            "blanks around it is needed"
        )
    return name


def _digits(text: str) -> int | str:
    """Whole number in a CSV cell, or the cell itself if it is not digits of accepted length."""
    digits = text.strip()
    return int(digits) if re.fullmatch(f"[0-9]{{1,{len(str(MAX_NUMBER))}}}", digits) else text


def _integer(value: Any, where: str, least: int = 1) -> int:
    """Whole number of at least ``least``; TraceError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_NUMBER:
        raise TraceError(
            f"{where} is {str(value)[:40]!r}; a whole number from {least} to {MAX_NUMBER} is needed"
        )
    return value
