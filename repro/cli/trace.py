"""``repro trace``: list, formats, fetch, info, convert."""

import inspect
import json
import textwrap
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from repro.cli.lines import say
from repro.cluster.spec import Cluster
from repro.errors import ParamError
from repro.files import public
from repro.trace.formats import FORMATS
from repro.trace.load import describe, load, write

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", help="Trace format (`repro trace formats`); not needed for a public trace."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V", help="Option of the format (throughputs=FILE)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")]


def list_(
    tables: Annotated[bool, typer.Option("--tables", help="Also tables, not only traces.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the public files, and which of them are here."""
    items = [item for item in public.entries().values() if tables or item.format in FORMATS]
    if as_json:
        held = [
            vars(item) | {"url": item.url, "here": public.available(item.name)} for item in items
        ]
        typer.echo(json.dumps(held, indent=2))
        return
    width = max(len(item.name) for item in items)
    for item in items:
        here = "here" if public.available(item.name) else "-"
        size = f"{item.bytes / 1e3:,.1f} kB"
        typer.echo(
            f"{item.name:<{width}}  {item.format:<13}  {size:>10}  {here:<4}  {item.description}"
        )


def formats(as_json: JsonOption = False) -> None:
    """List the formats of traces: what each reads, its columns and options."""
    rows = [_format(name) for name in FORMATS]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        lines = [row["reads"], *textwrap.wrap(row["columns"], 78 - width)]
        lines += [f"--set {name}={value}" for name, value in row["options"].items()]
        for first, line in zip([row["name"], *[""] * len(lines)], lines, strict=False):
            say(f"{first:<{width}}  {line}")


def _format(name: str) -> dict[str, Any]:
    """Return what the docstring of a format says of it: first line, and where columns are named."""
    first, *rest = (inspect.getdoc(FORMATS[name]) or "").split("\n\n")
    columns = next((part for part in rest if part.startswith("Columns:")), "")
    options = list(inspect.signature(FORMATS[name]).parameters.values())[1:]
    return {
        "name": name,
        "reads": " ".join(first.split()),
        "columns": " ".join(columns.split()),
        "options": {option.name: option.default for option in options},
    }


def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names from `repro trace list`.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every public file.")] = False,
) -> None:
    """Bring public files here, verified; print where each is."""
    if bool(names) == everything:
        raise ParamError("repro trace fetch takes names from `repro trace list`, or --all")
    for name in names or list(public.entries()):
        typer.echo(f"{name}  {public.fetch(name)}")


def info(
    trace: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A file or a public trace.")],
    format: FormatOption = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster (8x8, 36xv100, FILE), for the offered load.")
    ] = None,
    options: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print jobs, span, GPU mix, duration quantiles and offered load of a trace."""
    gpus = None if cluster is None else int(Cluster.parse(cluster).num_gpus)
    facts = describe(_load(trace, format, gpus, options), gpus)
    typer.echo(json.dumps(facts, indent=2) if as_json else "\n".join(_lines(facts)))


def convert(
    trace: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A file or a public trace.")],
    out: Annotated[Path, typer.Option(help="CSV file to write, in format 'repro'.")],
    format: FormatOption = None,
    options: SetOption = None,
) -> None:
    """Write a trace as CSV in the package's own columns, validated."""
    frame = _load(trace, format, None, options)
    typer.echo(f"{len(frame):,} jobs written to {write(frame, out)} (format repro)")


def _load(
    trace: str, format: str | None, gpus: int | None, options: list[str] | None
) -> pd.DataFrame:
    settings: dict[str, Any] = {}
    for option in options or []:
        key, equals, value = option.partition("=")
        if not equals:
            raise ParamError(f"--set {option}: expected K=V, such as throughputs=table.json")
        settings[key.strip()] = value.strip()
    return load(trace, format, cluster_gpus=gpus, **settings)


def _lines(facts: dict[str, Any]) -> list[str]:
    total = facts["jobs"]
    mix = ", ".join(f"{g}: {n:,} ({n / total:.1%})" for g, n in facts["gpus"].items())
    times = ", ".join(f"{key} {value:,.0f}" for key, value in facts["duration_s"].items())
    keys = ("mean_interarrival_s", "mean_gpus_demanded", "offered_load")
    gap, demand, load = map(facts.get, keys)
    rows = {
        "trace": f"{facts['name']} (format {facts['format']}, sha256 {facts['sha256'][:12]}…)",
        "jobs": f"{total:,}",
        "span": f"{facts['span_s']:,.0f} s ({facts['span_s'] / 86400:,.1f} days)",
        "GPUs per job": mix,
        "duration s": times,
        "mean interarrival": "-" if gap is None else f"{gap:,.1f} s",
        "work": f"{facts['gpu_seconds']:,.0f} GPU-s",
        "mean GPUs demanded": "-" if demand is None else f"{demand:,.1f}",
    }
    if facts["cluster_gpus"] is not None:
        shown = "undefined, all jobs arrive at once" if load is None else f"{load:.3f}"
        rows["offered load"] = f"{shown} on {facts['cluster_gpus']:,} GPUs"
    rows |= {f"dropped, {why}": f"{count:,}" for why, count in facts["dropped"].items()}
    more = {"notes": "; ".join(facts["notes"]), "not used": ", ".join(facts["unread"])}
    rows |= {key: text for key, text in more.items() if text}
    width = max(map(len, rows))
    return [f"{key:<{width}}  {value}" for key, value in rows.items()]
