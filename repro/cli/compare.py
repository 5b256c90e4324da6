"""``repro compare``: several policies on the same jobs, with intervals, pictures and a report."""

from __future__ import annotations

import contextlib
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base.counts import refuse_below
from repro.base.errors import ParamError
from repro.base.extras import require
from repro.cli import complete
from repro.cli.extra_files import ENDING, register_files
from repro.cli.lines import complain
from repro.cli.run_options import (
    ClusterOption,
    FailuresOption,
    FormatOption,
    OverheadOption,
    PlacementOption,
    PredictionErrorOption,
    ReferenceOption,
    SlowdownOption,
    ThroughputsOption,
    TraceOption,
    check_options_used,
    is_generator,
    open_jobs,
    present,
    refuse_empty,
)
from repro.cli.settings import (
    GENERATOR_OPTIONS,
    READER_OPTIONS,
    DropOption,
    MapOption,
    UnitOption,
    column_options,
    parse_placement,
    parse_settings,
)
from repro.comparison.compare import RULES, compare
from repro.comparison.result import FILES, Comparison
from repro.figures.extra import read_extra
from repro.figures.saved import to_json
from repro.files.checks import shown
from repro.files.strict_yaml import parse_value
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.trace import synth

#: Remedy for an unknown policy of ``--extra``.
_REGISTER = "--extra FILE.py registers the policies of a file"


def compare_policies(
    trace: TraceOption,
    cluster: ClusterOption,
    names: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="A,B,…",
            help="Policies (`repro policies`).",
            autocompletion=complete.policy_list,
        ),
    ],
    loads: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y,…",
            help="Offered loads, to which submit times are stretched (default: that of the trace).",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Samples: N seeds of the generator.")
    ] = None,
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="NxLENGTH",
            help="Samples: windows of the trace, such as 20x7d, or 20x400j for 400 jobs each.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Policy that the others are compared with, in paired differences (default: the "
            "first).",
            autocompletion=complete.policies,
        ),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py|NAME|{…}",
            help="Another policy: a file that registers policies, a name, or {policy: NAME, "
            "settings: {…}, label: TEXT}; repeatable.",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--dress",
            metavar="TABLES|none",
            help="Sample a model for every job from these tables of models; all: every table; "
            "none: never. By default only if a policy reads columns that the trace lacks.",
            autocompletion=complete.table_list,
        ),
    ] = None,
    predict: Annotated[
        int, typer.Option(metavar="N", help="Number of jobs of each run whose JCT is predicted.")
    ] = 0,
    prediction_error: PredictionErrorOption = None,
    overhead: OverheadOption = "none",
    placement: PlacementOption = None,
    slowdown: SlowdownOption = None,
    failures: FailuresOption = None,
    throughputs: ThroughputsOption = None,
    reference_gpu: ReferenceOption = None,
    format: FormatOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="K=V",
            help="Option of the generator or the trace format; repeatable.",
            autocompletion=complete.trace_settings,
        ),
    ] = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random numbers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", help="Processes; by default one per CPU."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for CSV files, pictures, JSON and report."),
    ] = None,
) -> None:
    """Compare policies on the same jobs under equal terms; print means with 95 % intervals."""
    refuse_empty(
        {
            "slowdown": slowdown,
            "placement": placement,
            "throughputs": throughputs,
            "failures": failures,
            "overhead": overhead,
            "dress": models,
        }
    )
    refuse_below("--seed", seed, 0)
    refuse_below("--seeds", seeds, 1)
    refuse_below("--predict", predict, 0)
    refuse_below("-j", jobs, 1, "a number of processes")
    if out is not None:
        # the runs take long, so this is checked before them
        require("figures", "the pictures of repro compare --out")
        if out.exists() and not out.is_dir():
            raise ParamError(f"--out {out}: is a file; give a folder")
    machines = Cluster.parse(cluster)
    chosen = _policies(names, extra or [])
    speed_options = present(throughputs=throughputs, reference_gpu=reference_gpu)
    options = parse_settings(settings or [], READER_OPTIONS | GENERATOR_OPTIONS)
    reader_options: dict[str, Any] = dict(column_options(columns, unit))
    reader_options |= {"drop_bad_rows": True} if drop_bad_rows else {}
    source: Any = trace
    used_options: frozenset[str] = frozenset()
    if is_generator(trace):
        if format is not None or reader_options:
            names_given = [f"--{name.replace('_', '-')}" for name in reader_options]
            option = names_given[0] if format is None else f"--format {format}"
            raise ParamError(f"{option}: {trace!r} is a generator, not a file; leave it out")
        accepted = inspect.signature(synth.generators[trace]).parameters
        used_options = frozenset(name for name in speed_options if name in accepted)
        options |= {name: speed_options[name] for name in used_options}
    else:
        opened = open_jobs(trace, format, None, seed, speed_options, options | reader_options)
        source = opened.frame
        used_options = opened.used_options
        options = {}
    if throughputs is None or not machines.gpu_types:
        check_options_used(used_options, machines, speed_options)
        # the reader or generator has used them already
        throughputs = None
        reference_gpu = None
    # progress goes to stderr
    with contextlib.redirect_stdout(sys.stderr):
        comparison = compare(
            source,
            machines,
            chosen,
            loads=None if loads is None else _numbers(loads),
            seeds=seeds,
            windows=windows,
            reference=reference,
            dress=_dress(models),
            predict=predict,
            prediction_error=prediction_error,
            overhead=_overhead(overhead),
            placement=parse_placement(placement),
            slowdown=slowdown,
            failures=failures,
            throughputs=throughputs,
            reference_gpu=reference_gpu,
            options=options,
            seed=seed,
            workers=jobs,
            out=out,
        )
    _print(comparison, as_json, out)


def _policies(names: str, extra: list[str]) -> dict[str, Policy]:
    """Policies by label: those of ``--policies``, then those of ``--extra``."""
    listed = [name.strip() for name in names.split(",") if name.strip()]
    if not listed and not extra:
        raise ParamError(f"--policies {shown(repr(names))}: names none; see `repro policies`")
    # --policies and the other entries may name the policies of a file
    file_policies = register_files(text for text in extra if text.endswith(ENDING))
    chosen = [(name, make(name, RULES)) for name in listed]
    chosen += [(name, make(name, RULES)) for name in file_policies if name not in listed]
    for text in extra:
        if not text.endswith(ENDING):
            chosen += [
                (entry.label, make(entry.name, RULES, **entry.settings))
                for entry in read_extra(parse_value(text), _REGISTER)
            ]
    by_label: dict[str, Policy] = {}
    for label, policy in chosen:
        if label in by_label:
            raise ParamError(f"two policies are named {shown(repr(label))}; give one a label")
        by_label[label] = policy
    return by_label


def _dress(models: str | None) -> bool | str | None:
    """Argument ``dress`` of `repro.compare`."""
    return False if models == "none" else models


def _numbers(text: str) -> list[float]:
    """Numbers of a text, separated by commas."""
    try:
        return [float(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise ParamError(f"--loads {shown(text)}: give numbers, such as 0.6,0.8") from None


def _overhead(text: str | None) -> str | float:
    """Argument ``overhead`` of `repro.compare`: a name, or seconds."""
    try:
        return float(text or "none")
    except ValueError:
        return text or "none"


def _print(comparison: Comparison, as_json: bool, out: Path | None) -> None:
    """Print the table; on stderr the policies that cannot run, and the terms."""
    for label, reason in comparison.refused.items():
        complain(f"{label} cannot run: {reason}")
    if as_json:
        typer.echo(to_json(comparison.content()).decode().rstrip())
        return
    for note in comparison.notes:
        complain(f"note: {note}")
    typer.echo(comparison.text())
    if out is not None:
        typer.echo(f"{', '.join(FILES)} in {out}")
