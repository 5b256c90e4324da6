"""``repro trace``: list, formats, fetch, info, convert, dress; `repro.cli.doctor` has doctor."""

import inspect
import json
import math
import textwrap
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from repro.base.errors import DataMissingError, ParamError
from repro.base.units import DAY_S
from repro.cli import complete
from repro.cli.lines import complain, reader_lines, say
from repro.cli.run_options import FormatOption, ProfilesOption, refuse_input_file
from repro.cli.settings import (
    READER_OPTIONS,
    DropOption,
    MapOption,
    UnitOption,
    column_options,
    setting_texts,
)
from repro.files import public
from repro.files.checks import shown
from repro.files.whole import refuse_binary_name
from repro.model.cluster.spec import Cluster
from repro.perf.throughput_files import PUBLIC
from repro.trace.dressing import ALL, REFERENCE, dress
from repro.trace.formats import FORMATS, documented, options_of
from repro.trace.load import FORMS, WRITERS, describe, format_to_write, load, write

TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="A file or a public trace (`repro trace list`).",
        autocompletion=complete.traces,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="K=V",
        help="Option of the format, such as attempts=join for helios; repeatable.",
        autocompletion=complete.trace_settings,
    ),
]
#: Names of ``--set`` that have separate options or arguments -> these.
_WITH_OPTION = READER_OPTIONS | {
    "path": "the argument FILE|NAME",
    "cluster_gpus": "--cluster of repro trace info",
}
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")]


def list_(
    tables: Annotated[
        bool,
        typer.Option(
            "--tables", help="Also list files that are no traces, such as throughput tables."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the public files, and whether each is available here."""
    items = [item for item in public.entries().values() if tables or item.format in FORMATS]
    if as_json:
        rows = [
            vars(item) | {"url": item.url, "here": public.available(item.name)} for item in items
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max(len(item.name) for item in items)
    for item in items:
        available = "here" if public.available(item.name) else "-"
        size = f"{item.bytes / 1e3:,.1f} kB"
        facts = f"{item.format:<13}  {size:>10}  {available:<4}  {item.description}"
        typer.echo(f"{item.name:<{width}}  {facts}")


def formats(as_json: JsonOption = False) -> None:
    """List the formats of traces with their files, columns and options."""
    rows = [_format_row(name) for name in FORMATS]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        lines = [row["reads"], *textwrap.wrap(row["columns"], 78 - width)]
        lines += map(_option_text, options_of(row["name"]).values())
        for number, line in enumerate(lines):
            name = "" if number else row["name"]
            say(f"{name:<{width}}  {line}")


def _format_row(name: str) -> dict[str, Any]:
    """Name, first paragraph of the docstring (key ``reads``), columns and options of a format."""
    summary = (inspect.getdoc(FORMATS[name]) or "").split("\n\n")[0]
    return {
        "name": name,
        "reads": " ".join(summary.split()),
        "columns": " ".join(documented(name).split()),
        "options": {
            option.name: None if option.default is option.empty else option.default
            for option in options_of(name).values()
        },
    }


def _option_text(option: inspect.Parameter) -> str:
    """Text ``--set NAME=DEFAULT`` of an option of a format."""
    if option.default is option.empty:
        return f"--set {option.name}=VALUE (required)"
    return f"--set {option.name}={option.default}"


def fetch_files(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Public files (`repro trace list --tables`).",
            autocompletion=complete.public_files,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every public file.")] = False,
    optional: Annotated[
        bool,
        typer.Option("--optional", help="Go on without files that cannot be fetched; exit 0."),
    ] = False,
) -> None:
    """Fetch public files, verify their checksums and print their paths."""
    if bool(names) == everything:
        raise ParamError("repro trace fetch takes names from `repro trace list`, or --all")
    for name in names or []:
        # also with --optional an unknown name is an error
        public.entry(name)
    missing = []
    for name in names or list(public.entries()):
        try:
            typer.echo(f"{name}  {public.fetch(name)}")
        except DataMissingError as error:
            if not optional:
                raise
            missing.append(name)
            complain(str(error))
    if missing:
        number = "1 public file is" if len(missing) == 1 else f"{len(missing)} public files are"
        pronoun = "it" if len(missing) == 1 else "them"
        complain(f"{number} missing; figures use stand-ins for {pronoun}")


def info(
    trace: TraceArgument,
    format: FormatOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Cluster for the offered load: 8x8, 8x4:v100, 36xv100, or a file of nodes.",
            autocompletion=complete.clusters,
        ),
    ] = None,
    options: SetOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print jobs, span, GPU mix, duration quantiles and offered load of a trace."""
    machines = None if cluster is None else Cluster.parse(cluster)
    frame = _load(trace, format, options, column_options(columns, unit), drop_bad_rows)
    if machines is None:
        facts = describe(frame)
    else:
        facts = describe(frame, int(machines.num_gpus), machines.gpu_types)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        say("\n".join(_lines(facts)))


def convert(
    trace: TraceArgument,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File to write; x.swf is SWF, x.json is Batsim."),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="Format to write: repro, swf or batsim (default: by the name of --out).",
            autocompletion=complete.written_formats,
        ),
    ] = None,
    format: FormatOption = None,
    options: SetOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    as_json: JsonOption = False,
) -> None:
    """Validate a trace and write it as CSV in the package's own columns, SWF or Batsim."""
    refuse_binary_name(out, FORMS)
    refuse_input_file(out, {"the trace": trace})
    if to is not None and to not in WRITERS:
        raise ParamError(f"--to {shown(to)}: give one of {', '.join(WRITERS)}")
    frame = _load(trace, format, options, column_options(columns, unit), drop_bad_rows)
    _write_and_report(frame, out, to or format_to_write(out), as_json=as_json)


def dress_jobs(
    trace: TraceArgument,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV file to write, in the format repro.")
    ],
    models: Annotated[
        str,
        typer.Option(
            metavar="TABLES",
            help="Tables of models: muri, gavel, pcs, liquid, tiresias, with commas, or all.",
            autocompletion=complete.table_list,
        ),
    ] = ALL,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random numbers.")] = 0,
    weights: Annotated[
        str | None,
        typer.Option(metavar="M=W,…", help="Models with weights (default: all equally likely)."),
    ] = None,
    reference_gpu: Annotated[
        str, typer.Option(metavar="TYPE", help="GPU type that durations refer to (table gavel).")
    ] = REFERENCE,
    throughputs: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help="Throughputs (steps/s) by model and GPU type (table gavel).",
            autocompletion=complete.throughput_tables,
        ),
    ] = PUBLIC,
    profiles: ProfilesOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace models and stage times of the trace.")
    ] = False,
    format: FormatOption = None,
    options: SetOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    as_json: JsonOption = False,
) -> None:
    """Sample a model for every job and write the columns that each paper's policies read."""
    refuse_binary_name(out)
    refuse_input_file(out, {"the trace": trace})
    frame = dress(
        _load(trace, format, options, column_options(columns, unit), drop_bad_rows),
        models,
        seed,
        weights=None if weights is None else _weights(weights),
        reference=reference_gpu,
        throughputs=throughputs,
        profiles=profiles,
        replace=replace,
    )
    _write_and_report(frame, out, "repro", as_json=as_json)


def _weights(text: str) -> dict[str, float]:
    """Weights by model from text ``vgg16=2,bert=1``."""
    weights: dict[str, float] = {}
    for pair in text.split(","):
        model, equals, value = (part.strip() for part in pair.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = math.nan
        if not equals or math.isnan(weight) or model in weights:
            raise ParamError(
                f"--weights {shown(text)}: give each model once with a number, such as "
                "vgg16=2,bert=1"
            )
        weights[model] = weight
    return weights


def _write_and_report(frame: pd.DataFrame, out: Path, format: str, *, as_json: bool) -> None:
    """Write a trace; print its size, what was not read, and its notes."""
    written = write(frame, out, format)
    for line in reader_lines(frame.attrs):
        complain(line)
    if as_json:
        remarks = {name: frame.attrs[name] for name in ("dropped", "notes", "unread")}
        typer.echo(json.dumps({"out": str(written), "jobs": len(frame), **remarks}, indent=2))
    else:
        say(f"{len(frame):,} jobs written to {written} (format {format})")


def _load(
    trace: str,
    format: str | None,
    options: list[str] | None,
    columns: dict[str, str],
    drop_bad_rows: bool,
) -> pd.DataFrame:
    """Read a trace with the options of ``--set`` and of `column_options`."""
    settings: dict[str, Any] = {**columns, **format_options(options)}
    return load(trace, format, drop_bad_rows=drop_bad_rows, **settings)


def format_options(options: list[str] | None) -> dict[str, Any]:
    """Options of a format from texts ``K=V`` of ``--set``."""
    texts = setting_texts(options or [], _WITH_OPTION, "throughputs=table.json")
    return {name: text.strip() for name, text in texts.items()}


def _lines(facts: dict[str, Any]) -> list[str]:
    """Lines of the facts of `describe`, names aligned."""
    total = facts["jobs"]
    mix = ", ".join(f"{g}: {n:,} ({n / total:.1%})" for g, n in facts["gpus"].items())
    times = ", ".join(f"{key} {_amount(value)}" for key, value in facts["duration_s"].items())
    gap = facts["mean_interarrival_s"]
    demand = facts["mean_gpus_demanded"]
    rows = {
        "trace": f"{facts['name']} (format {facts['format']}, sha256 {facts['sha256'][:12]}…)",
        "jobs": f"{total:,}",
    }
    if facts["first_submit_s"]:
        rows["first submission"] = f"{_amount(facts['first_submit_s'])} s"
    rows |= {
        "span": f"{_amount(facts['span_s'])} s ({facts['span_s'] / DAY_S:,.1f} days)",
        "GPUs per job": mix,
        "duration (s)": times,
        "mean interarrival": "-" if gap is None else f"{gap:,.1f} s",
        "work": f"{_amount(facts['gpu_seconds'])} GPU-s",
        "mean load (GPUs)": "-" if demand is None else f"{demand:,.1f}",
    }
    if facts["cluster_gpus"] is not None:
        rows |= _load_rows(facts)
    elif facts["demand_over_time"] is not None:
        rows["mean load over time (GPUs)"] = _over_time(facts["demand_over_time"], ",.1f")
    rows |= {f"dropped, {reason}": f"{count:,}" for reason, count in facts["dropped"].items()}
    more = {"notes": "; ".join(facts["notes"]), "not used": ", ".join(facts["unread"])}
    rows |= {key: text for key, text in more.items() if text}
    width = max(map(len, rows))
    return [f"{key:<{width}}  {value}" for key, value in rows.items()]


def _load_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Rows about the load on a cluster: total, by GPU type, over time, and jobs that never fit."""
    load = facts["offered_load"]
    text = "undefined, all jobs arrive at once" if load is None else f"{load:.3f}"
    rows = {"offered load": f"{text} on {facts['cluster_gpus']:,} GPUs"}
    for name, type_facts in (facts["load_by_type"] or {}).items():
        load = type_facts["offered_load"]
        percentage = "-" if load is None else f"{load:.1%}"
        text = f"{percentage} on {type_facts['gpus']:,} GPUs, {type_facts['jobs']:,} jobs"
        if type_facts["never_fit"]:
            text += f", {type_facts['never_fit']:,} of them never fit"
        rows[f"load on {name}"] = text
    if facts["load_over_time"] is not None:
        rows["load over time"] = _over_time(facts["load_over_time"], ".3f")
    reasons = {
        "never_fit": f"more than {facts['cluster_gpus']:,} GPUs",
        "wider_than_any_type": "more GPUs than there are of any one type",
    }
    for key, reason in reasons.items():
        if jobs := facts[key]:
            rows[key.replace("_", " ")] = f"{jobs:,} job{'' if jobs == 1 else 's'} with {reason}"
    return rows


def _over_time(values: list[float], form: str) -> str:
    """Values by tenth of the span, and the largest value."""
    text = " ".join(f"{value:{form}}" for value in values)
    return f"{text} (tenths of the span; peak {max(values):{form}})"


def _amount(value: float) -> str:
    """Number as text: in whole units, or with three digits where it is small."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
