"""Cluster files: the Tiresias CSV, the Alibaba openb node list and YAML."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from repro.cluster.spec import MAX_GPUS_PER_NODE, MAX_NODES, Node
from repro.errors import TraceError

TIRESIAS_COLUMNS = ("num_switch", "num_node_p_switch", "num_gpu_p_node")
OPENB_COLUMNS = ("sn", "gpu", "model")
YAML_KEYS = ("count", "gpus", "type", "switch")
YAML_EXAMPLE = "e.g. nodes: [{count: 4, gpus: 8, type: v100, switch: 0}]"


def read_nodes(path: Path) -> tuple[Node, ...]:
    """Read the nodes of a cluster file.

    Parameters
    ----------
    path : Path
        ``.csv``: columns ``num_switch,num_node_p_switch,num_gpu_p_node`` (CPU and memory columns
        are ignored; every row adds its switches) or ``sn,cpu_milli,memory_mib,gpu,model`` (one
        row per node, nodes without GPUs are left out). ``.yaml``: a list ``nodes`` of
        ``{count, gpus, type, switch}``, where count is 1, switch 0 and type none by default.

    Returns
    -------
    tuple of Node
        In file order.

    Raises
    ------
    TraceError
        If the file cannot be read or breaks a rule; names file, line and column.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".yaml", ".yml"):
        raise TraceError(
            f"cluster file {path}: the name must end in .csv or .yaml; for a spec such as 8x8 "
            "use no slash"
        )
    text = _text(path)
    nodes: list[Node] = []
    for where, count, node in (_csv_nodes if suffix == ".csv" else _yaml_nodes)(path, text):
        if node.gpus > MAX_GPUS_PER_NODE or len(nodes) + count > MAX_NODES:
            raise TraceError(
                f"{where}: {len(nodes) + count} nodes, {node.gpus} GPUs in one; at most "
                f"{MAX_NODES} nodes of {MAX_GPUS_PER_NODE} GPUs are accepted"
            )
        nodes += [node] * count
    if not nodes:
        raise TraceError(f"{path}: no node with a GPU; at least one is needed")
    return tuple(nodes)


def _text(path: Path) -> str:
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise TraceError(
            f"cluster file {path} {found}; give a .csv or .yaml file or a spec such as 8x8"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: byte {error.start} is not UTF-8 text") from None
    except OSError as error:
        raise TraceError(f"cluster file {path} cannot be read: {error.strerror}") from None
    if not text.strip():
        raise TraceError(f"{path}: the file is empty")
    return text


def _csv_nodes(path: Path, text: str) -> Iterator[tuple[str, int, Node]]:
    lines = csv.reader(text.splitlines())
    header = [name.strip() for name in next(lines)]
    columns = next(
        (known for known in (TIRESIAS_COLUMNS, OPENB_COLUMNS) if set(known) <= set(header)), None
    )
    if columns is None:
        raise TraceError(
            f"{path}:1: columns {','.join(header)[:80]!r} are neither those of a Tiresias cluster "
            f"({','.join(TIRESIAS_COLUMNS)},...) nor of an openb node list "
            "(sn,cpu_milli,memory_mib,gpu,model), separated by commas"
        )
    next_switch = 0
    for row in lines:
        if not any(row):
            continue
        where = f"{path}:{lines.line_num}"
        if len(row) != len(header):
            raise TraceError(f"{where}: {len(row)} values under {len(header)} columns")
        value = dict(zip(header, row, strict=True))
        if columns is OPENB_COLUMNS:
            gpus = _whole(value["gpu"], f"{where}: column gpu", least=0)
            if gpus:
                yield where, 1, Node(gpus, value["model"].strip() or None)
            continue
        switches, nodes, gpus = (_whole(value[key], f"{where}: column {key}") for key in columns)
        if switches * nodes > MAX_NODES:
            raise TraceError(f"{where}: {switches * nodes} nodes; at most {MAX_NODES} are accepted")
        for switch in range(next_switch, next_switch + switches):
            yield where, nodes, Node(gpus, None, switch)
        next_switch += switches


def _yaml_nodes(path: Path, text: str) -> Iterator[tuple[str, int, Node]]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise TraceError(f"{path}{line}: not YAML ({problem}); {YAML_EXAMPLE}") from None
    listed = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise TraceError(f"{path}: needs a list under the key nodes, {YAML_EXAMPLE}")
    for number, entry in enumerate(listed):
        where = f"{path}: nodes[{number}]"
        if not isinstance(entry, dict) or "gpus" not in entry:
            raise TraceError(f"{where} is not a mapping with the key gpus; {YAML_EXAMPLE}")
        for key in entry:
            if key not in YAML_KEYS:
                near = difflib.get_close_matches(str(key), YAML_KEYS, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise TraceError(
                    f"{where} has the unknown key {key!r}{hint} (accepted: {', '.join(YAML_KEYS)})"
                )
        gpu_type = entry.get("type")
        if gpu_type is not None and not isinstance(gpu_type, str):
            raise TraceError(f"{where}.type is {gpu_type!r}; a name is needed, quote it if numeric")
        count = _whole(entry.get("count", 1), f"{where}.count")
        gpus = _whole(entry["gpus"], f"{where}.gpus")
        switch = _whole(entry.get("switch", 0), f"{where}.switch", least=0)
        yield where, count, Node(gpus, gpu_type, switch)


def _whole(value: Any, where: str, least: int = 1) -> int:
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        number = int(value.strip()[:12])
    if number is None or number < least:
        raise TraceError(f"{where} is {str(value)[:40]!r}; a whole number from {least} is needed")
    return number
