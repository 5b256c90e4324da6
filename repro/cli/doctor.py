"""``repro trace doctor``: a trace examined for a cluster, as text or JSON."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any

import typer

from repro.base.compiled import compile_watch
from repro.base.errors import ParamError
from repro.base.units import DAY_S, HOUR_S
from repro.cli import complete
from repro.cli.lines import compiling_line, say
from repro.cli.run_options import ClusterOption, FormatOption, ThroughputsOption
from repro.cli.settings import DropOption, MapOption, UnitOption, column_options
from repro.cli.trace import (
    JsonOption,
    SetOption,
    TraceArgument,
    format_options,
)
from repro.comparison.doctor import Diagnosis, diagnose
from repro.trace.doctor.loads import ALL
from repro.trace.doctor.queue import TENTHS, Queue


def doctor(
    trace: TraceArgument,
    cluster: ClusterOption,
    names: Annotated[
        str | None,
        typer.Option(
            "--policies",
            metavar="A,B,…",
            help="Policies to try (default: all).",
            autocompletion=complete.policy_list,
        ),
    ] = None,
    throughputs: ThroughputsOption = None,
    format: FormatOption = None,
    options: SetOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    as_json: JsonOption = False,
) -> None:
    """Examine a trace for a cluster: load, jobs, times, queue, policies; exit 1 on an error."""
    chosen = None
    if names is not None:
        chosen = [name.strip() for name in names.split(",") if name.strip()]
        if not chosen:
            raise ParamError("--policies: names no policy; give some, or leave it out")
    with compile_watch(compiling_line()) if not as_json else contextlib.nullcontext():
        diagnosis = diagnose(
            trace,
            cluster,
            chosen,
            format=format,
            throughputs=throughputs,
            drop_bad_rows=drop_bad_rows,
            options=format_options(options) | column_options(columns, unit),
        )
    if as_json:
        typer.echo(json.dumps(diagnosis.to_dict(), indent=2))
    else:
        say("\n".join([*_facts(diagnosis), "", *_findings(diagnosis)]))
    if diagnosis.has_errors:
        raise typer.Exit(1)


def _facts(diagnosis: Diagnosis) -> list[str]:
    """Lines on size, loads and queue, names aligned."""
    facts = diagnosis.facts
    rows = {
        "trace": f"{facts['name']} (format {facts['format']})",
        "jobs": f"{facts['jobs']:,} in {_length(facts['span_s'])}",
        "cluster": f"{facts['cluster_gpus']:,} GPUs",
    }
    for name, load in facts["loads"].items():
        key = "load" if name == ALL else f"load on {name}"
        rows[key] = (
            f"{load['mean']:.3f} on {load['gpus']:,} GPUs; highest {load['highest']:.3f} in the "
            f"{_length(load['period_s'])} from {_time(load['highest_from_s'])}"
        )
    if not facts["loads"]:
        rows["load"] = "undefined, all jobs arrive at once"
    if diagnosis.queue is not None:
        rows |= _queue(diagnosis.queue)
    width = max(map(len, rows))
    return [f"{key:<{width}}  {value}" for key, value in rows.items()]


def _queue(queue: Queue) -> dict[str, str]:
    """Rows on the queue under first in, first out."""
    rows = {
        "queue (FIFO)": f"a job waits for {queue.waiting_share:.0%} of the span, and at all times "
        f"in {queue.full_tenths} of its {TENTHS} tenths"
    }
    begin, end = queue.longest_wait_s
    if end > begin:
        rows["longest queue"] = f"{_length(end - begin)}, from {_time(begin)} to {_time(end)}"
    empties = queue.empties_up_to
    rows["empties"] = (
        "at any load (all jobs before the last tenth fit at once)"
        if empties is None
        else f"in every tenth up to load {empties:.3f}"
    )
    never = queue.never_empties_from
    rows["never empties"] = (
        "at no load (all jobs of the first half fit at once)"
        if never is None
        else f"in the second half of the span from load {never:.3f}"
    )
    return rows


def _findings(diagnosis: Diagnosis) -> list[str]:
    """Lines of the findings, and their numbers by level."""
    lines = [line for finding in diagnosis.findings for line in finding.lines()]
    counts = [
        f"{number} {level}{'' if number == 1 else 's'}"
        for level, number in diagnosis.counts().items()
    ]
    return [*lines, ", ".join(counts)]


def _time(seconds: Any) -> str:
    """Time of the trace in seconds and days."""
    return f"{seconds:,.0f} s (day {seconds / DAY_S:,.1f})"


def _length(seconds: float) -> str:
    """Length of a period in words."""
    for name, length in (("days", DAY_S), ("h", HOUR_S), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {name}"
    return f"{seconds:,.3g} s"
