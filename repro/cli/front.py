"""``repro front``: Pareto front of a policy's configurations in the metrics an operator prefers."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from repro.base.counts import refuse_below
from repro.base.errors import ParamError
from repro.cli import complete
from repro.cli.extra_files import ExtraFileOption, register_files
from repro.cli.lines import complain, reader_lines
from repro.cli.run_options import FormatOption, TraceOption, check_out, curves_for, is_generator
from repro.cli.settings import (
    READER_OPTIONS,
    DropOption,
    MapOption,
    UnitOption,
    column_options,
    parse_settings,
)
from repro.figures.data import open_trace
from repro.figures.saved import to_json
from repro.files import public
from repro.files.whole import write_whole
from repro.model.policy import make, parameter_names, policies
from repro.papers.pcs.fronts import Method
from repro.papers.pcs.objectives import Objective, parse
from repro.papers.pcs.preferences import CONFIGURATION, Preferences, default_rules
from repro.trace.load import load

_FORM = "give METRIC=avg or METRIC=PERCENTILE, with :LIMIT for an upper limit"


def search_front(
    trace: TraceOption,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Nodes x GPUs, such as 1x64, or a file of nodes.",
            autocompletion=complete.clusters,
        ),
    ],
    prefer: Annotated[
        list[str],
        typer.Option(
            metavar="M=HOW[:LIMIT]",
            help="Metric to minimise: jct, pred_err, unfairness or preemptions; HOW is avg or a "
            "percentile, such as jct=avg or pred_err=99; repeatable.",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Policy whose parameters are searched (`repro policies`).",
            autocompletion=complete.policies,
        ),
    ] = "pcs",
    extra: ExtraFileOption = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            metavar="K=LOW:HIGH",
            help="Parameter to search and its range; :log is a logarithmic scale, :1-3 a list of "
            "one to three numbers; ranges by commas are a list. By default PCS's configuration.",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rule set; by default pcs for policy pcs, else paper.",
            autocompletion=complete.rule_sets,
        ),
    ] = None,
    format: FormatOption = None,
    train: Annotated[
        int | None,
        typer.Option(metavar="N", help="Search on the first N jobs, and test on the other jobs."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Search method: spea2, nsga2, gaussian-process or random.",
            autocompletion=complete.search_methods,
        ),
    ] = "spea2",
    budget: Annotated[int, typer.Option(metavar="N", help="Configurations to simulate.")] = 370,
    population: Annotated[
        int, typer.Option(metavar="N", help="Configurations to begin with.")
    ] = 70,
    heuristics: Annotated[
        bool,
        typer.Option(
            help="Search two numbers from which thresholds and weights follow; --no-heuristics "
            "searches every threshold and weight."
        ),
    ] = True,
    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Speed-up curves, for policies that divide GPUs (pcs-speedups: PCS's).",
            autocompletion=complete.speedup_tables,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="K=V",
            help="Parameter of the policy that is not searched, or option of the trace format; "
            "repeatable.",
            autocompletion=complete.policy_settings,
        ),
    ] = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random numbers.")] = 0,
    jobs: Annotated[
        int | None, typer.Option("-j", metavar="N", help="Processes; by default one per CPU.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FRONT.csv", help="CSV file of the front.")
    ] = None,
) -> None:
    """Search for the Pareto front of a policy's configurations in the preferred metrics."""
    refuse_below("--seed", seed, 0)
    refuse_below("-j", jobs, 1)
    # the search takes long, so this is checked before it
    inputs = {
        "the trace": trace,
        "the file of nodes": cluster,
        "the file of speed-ups": speedups,
        **{f"the file {path} of --extra": path for path in extra or []},
    }
    check_out(out, inputs)
    # --policy may name a policy of a file
    register_files(extra or [])
    objectives = parse([_objective(text) for text in prefer])
    search = Method(method, budget, population)
    fixed, reader_options = _split(policy, parse_settings(settings or [], READER_OPTIONS))
    parameters = parse_ranges(ranges or []) if ranges else None
    if twice := set(fixed) & set(parameters or CONFIGURATION):
        name = min(twice)
        raise ParamError(f"--set {name}: the search chooses {name}; leave one of them out")
    reader_options |= column_options(columns, unit)
    reader_options |= {"drop_bad_rows": True} if drop_bad_rows else {}
    rule_set = rules or default_rules(policy)
    curves = None
    if speedups is not None:
        # whether a policy divides GPUs may depend on its settings and on the rules
        curves = curves_for(make(policy, rule_set, **fixed), speedups)
    frame = _open_jobs(trace, format, speedups, seed, reader_options)
    for line in reader_lines(frame.attrs):
        complain(line)
    pcs = Preferences(
        frame,
        cluster,
        policy=make(policy, rule_set, **fixed) if fixed else policy,
        parameters=parameters,
        train=train,
        perf=curves,
        rules=rules,
        workers=jobs,
    )
    pcs.set_preference(objectives)
    names = [objective.name for objective in objectives]
    # progress goes to stderr, with --json nowhere
    with contextlib.redirect_stdout(io.StringIO() if as_json else sys.stderr):
        points = pcs.pareto_front(
            search, seed=seed, heuristics=heuristics, watch=lambda table: _progress(table, names)
        )
        if len(pcs.test):
            tested = pcs.evaluate(points)[names].add_prefix("test_")
            points = pd.concat([points[names], tested, points[list(pcs.parameters)]], axis=1)
    # a cell of the CSV file has all numbers of a list, such as thresholds, with blanks between
    list_texts = {
        name: [" ".join(map(repr, values)) for values in points[name]]
        for name in pcs.parameters
        if isinstance(points[name].iloc[0], tuple)
    }
    if out is not None:
        table = points.assign(**list_texts).to_csv(index=False, lineterminator="\n")
        write_whole(out, table.encode(), parents=False)
    rows = points.to_dict("records")
    report = {"objectives": names, "evaluations": budget, "front": rows}
    lines = _front_lines(points, pcs.parameters)
    typer.echo(to_json(report).decode().rstrip() if as_json else lines)


def parse_ranges(pairs: list[str]) -> dict[str, Any]:
    """Ranges by name from texts ``K=LOW:HIGH``, several joined by commas for a list.

    >>> parse_ranges(["promote_knob=1:8", "thresholds=100:1e3,2e3:1e5"])
    {'promote_knob': '1:8', 'thresholds': ['100:1e3', '2e3:1e5']}
    """
    ranges: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not name or not text:
            raise ParamError(f"--search {pair}: expected K=LOW:HIGH, such as promote_knob=1:8")
        if name in ranges:
            raise ParamError(f"--search {pair}: {name} has a range already; give one")
        ranges[name] = text.split(",") if "," in text else text
    return ranges


def _split(policy: str, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into parameters of the policy and options of the trace format."""
    names = parameter_names(policies[policy])
    fixed = {name: value for name, value in settings.items() if name in names}
    return fixed, {name: value for name, value in settings.items() if name not in names}


def _open_jobs(
    name: str,
    trace_format: str | None,
    speedups: str | None,
    seed: int,
    reader_options: dict[str, Any],
) -> pd.DataFrame:
    """Open a file, a public trace or a generator; ``reader_options`` are for the reader."""
    is_public = public.is_known(name) and not os.path.isfile(name)
    if not is_generator(name) and not is_public:
        options = {} if speedups is None else {"speedups": speedups}
        return load(name, trace_format, **(reader_options | options))
    if trace_format is not None:
        raise ParamError(f"--format {trace_format}: there is no file {name!r}")
    if not reader_options:
        return open_trace(name, seed)[0]
    if is_public:
        return load(name, **reader_options)
    own_options = [name for name in ("map", "unit", "drop_bad_rows") if name in reader_options]
    setting = next(iter(reader_options))
    option = f"--{own_options[0].replace('_', '-')}" if own_options else f"--set {setting}"
    raise ParamError(f"{option}: {name!r} is neither a file nor a public trace")


def _objective(text: str) -> Objective:
    """Objective of the text METRIC=MEASURE[:LIMIT]."""
    metric, equals, measure_and_limit = text.partition("=")
    measure_text, colon, limit_text = measure_and_limit.partition(":")
    try:
        measure = measure_text if measure_text == "avg" else float(measure_text)
        limit = float(limit_text) if colon else None
    except ValueError:
        raise ParamError(f"--prefer {text}: {_FORM}, such as pred_err=99:20") from None
    if not equals:
        raise ParamError(f"--prefer {text}: {_FORM}, such as pred_err=99:20")
    return Objective(metric, measure, limit)


def _progress(table: pd.DataFrame, names: list[str]) -> None:
    """Print the number of evaluations and the best value of each objective."""
    front = table[table["front"]]
    least = ", ".join(f"{name} {front[name].min():,.6g}" for name in names)
    print(f"{len(table)} evaluated, {len(front)} on the front; least {least}", flush=True)


def _exactly(number: float) -> str:
    """Shortest text from which a simulation reads the same number."""
    short = f"{number:.6g}"
    return short if float(short) == number else str(number)


def _front_lines(front: pd.DataFrame, parameters: Sequence[str]) -> str:
    """Front as text: a line per point, with its settings for ``repro simulate``."""
    lines = []
    for row in front.to_dict("records"):
        metrics = {str(name): value for name, value in row.items() if name not in parameters}
        values = [f"{name} {value:,.6g}" for name, value in metrics.items()]
        settings = []
        for name in parameters:
            text = ",".join(map(_exactly, np.atleast_1d(row[name]).tolist()))
            # a configuration with one class has no threshold
            if text:
                settings.append(f"--set {name}={text}")
        lines.append("  ".join([*values, " ".join(settings)]))
    return "\n".join(lines)
