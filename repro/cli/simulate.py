"""``repro simulate``: any trace, any cluster, any policy."""

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

import repro
from repro.base.compiled import compile_watch
from repro.base.counts import refuse_below
from repro.base.errors import InputWarning, ParamError
from repro.cli import complete
from repro.cli.extra_files import ExtraFileOption, register_files
from repro.cli.lines import compiling_line, complain
from repro.cli.run_options import (
    ClusterOption,
    FailuresOption,
    FormatOption,
    Opened,
    OverheadOption,
    PlacementOption,
    PredictionErrorOption,
    ProfilesOption,
    ReferenceOption,
    SlowdownOption,
    ThroughputsOption,
    TraceOption,
    check_options_used,
    check_out,
    curves_for,
    format_of,
    open_jobs,
    present,
    refuse_empty,
    with_profiles,
)
from repro.cli.settings import (
    DropOption,
    MapOption,
    UnitOption,
    column_options,
    parse_placement,
    parse_settings,
    split_format_options,
    split_round_settings,
)
from repro.engine.ignored import ignored_lines
from repro.engine.inputs import replaced_public_data
from repro.figures.saved import to_json
from repro.files.checks import shown
from repro.files.spreadsheet import safe_cells
from repro.files.whole import write_whole
from repro.model.cluster.spec import Cluster
from repro.model.performance import Performance
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.perf.on_types import OnTypes
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs, throughputs_of

#: Columns of the file of jobs.
COLUMNS = ("job_id", "submit_time", "start_time", "end_time", "jct", "num_gpus", "predicted_jct")
_BOUNDS = ("predicted_jct_low", "predicted_jct_high")
_DETAILS = ("queueing", "preemptions", "promotions")

SetOption = typer.Option(
    "--set",
    metavar="K=V",
    help="Parameter of the policy, its rounds or the trace format; a list has commas; repeatable.",
    autocompletion=complete.settings,
)


def simulate_trace(
    trace: TraceOption,
    cluster: ClusterOption,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Policy (`repro policies` lists all, `repro policies NAME` explains one).",
            autocompletion=complete.policies,
        ),
    ],
    extra: ExtraFileOption = None,
    format: FormatOption = None,
    throughputs: ThroughputsOption = None,
    reference_gpu: ReferenceOption = None,
    profiles: ProfilesOption = None,
    placement_sensitive: Annotated[
        bool,
        typer.Option(
            help="Gangs that span nodes have the throughputs measured for such gangs; yarn then "
            "replaces the default placement count."
        ),
    ] = False,
    slowdown: SlowdownOption = None,
    settings: Annotated[list[str] | None, SetOption] = None,
    placement: PlacementOption = None,
    interval: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds between decisions (default: at every event)."),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Rule set: paper, or that of a public simulator: tiresias, muri, gavel or pcs.",
            autocompletion=complete.rule_sets,
        ),
    ] = "paper",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random numbers.")] = 0,
    predict: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of jobs whose JCT is predicted (default: all under rules pcs or with "
            "--predict-interval, else none).",
        ),
    ] = None,
    predict_interval: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Also predict an interval that holds the JCT with probability P, such as 0.9.",
        ),
    ] = None,
    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Speed-up curves, for policies that divide GPUs (pcs-speedups: PCS's).",
            autocompletion=complete.speedup_tables,
        ),
    ] = None,
    types: Annotated[
        str,
        typer.Option(
            metavar="fastest|wished",
            help="GPU type of a job if the policy names none: by speed and load, or as the column "
            "gpu_type says.",
            autocompletion=complete.type_choices,
        ),
    ] = "fastest",
    require_speeds: Annotated[
        bool,
        typer.Option(
            "--require-speeds",
            help="Refuse a cluster with GPU types if speeds by type are missing.",
        ),
    ] = False,
    prediction_error: PredictionErrorOption = None,
    overhead: OverheadOption = None,
    failures: FailuresOption = None,
    columns: MapOption = None,
    unit: UnitOption = None,
    drop_bad_rows: DropOption = False,
    stand_in: Annotated[
        bool,
        typer.Option(help="Allow the rules of a public simulator on stand-ins for public data."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="JOBS.csv", help="CSV file to write, a row per job.")
    ] = None,
) -> None:
    """Simulate a trace on a cluster under a policy and print the headline numbers."""
    _check_single(policy)
    refuse_below("--seed", seed, 0)
    refuse_below("--predict", predict, 0)
    inputs = {
        "the trace": trace,
        "the file of nodes": cluster,
        "the throughput table": throughputs,
        "the measured folder": profiles,
        "the file of speed-ups": speedups,
        **{f"the file {path} of --extra": path for path in extra or []},
    }
    check_out(out, inputs)
    if slowdown is not None and placement_sensitive:
        raise ParamError("--slowdown and --placement-sensitive both slow spread gangs; give one")
    refuse_empty(
        {
            "slowdown": slowdown,
            "placement": placement,
            "throughputs": throughputs,
            "profiles": profiles,
            "speedups": speedups,
        }
    )
    # --policy may name a policy of a file
    register_files(extra or [])
    machines = Cluster.parse(cluster)
    parsed_settings = parse_settings(settings or [])
    # A setting may be an option of the format. To find the format, the file may have to be read.
    trace_format = format_of(trace, format) if format is not None or parsed_settings else None
    parameters, reader_options = split_format_options(policy, trace_format, parsed_settings)
    policy_parameters, rounds = split_round_settings(policy, parameters)
    chosen = make(policy, rules, **policy_parameters)
    speed_options = present(throughputs=throughputs, reference_gpu=reference_gpu, speedups=speedups)
    curves = None if speedups is None else curves_for(chosen, speedups)
    reader_options |= column_options(columns, unit)
    reader_options |= {"drop_bad_rows": True} if drop_bad_rows else {}
    # if the policy divides GPUs, a job may ask for more than the cluster has
    gpus = None if chosen.elastic else machines.num_gpus
    opened = open_jobs(trace, format, gpus, seed, speed_options, reader_options)
    opened = with_profiles(opened, profiles, seed)
    if prediction_error is not None:
        predicted = repro.predict_durations(opened.frame, prediction_error, seed)
        opened = Opened(predicted, opened.used_options, seeded=True)
    if curves is not None:
        # the policy uses the curves, so the check for unused speed options leaves them out
        del speed_options["speedups"]
    table = _performance(opened, machines, speed_options, placement_sensitive, rules)
    perf: Performance | None = table
    if curves is not None:
        perf = _curves_on_types(curves, table or throughputs_of(opened.frame), machines)
    if not stand_in:
        _check_stand_ins(replaced_public_data(opened.frame, perf, chosen), rules)
    needs_nodes = placement_sensitive and chosen.placement == "count"
    result = _simulated(
        opened.frame,
        machines,
        chosen,
        placement=parse_placement(placement) or ("yarn" if needs_nodes else None),
        rules=rules,
        perf=perf,
        slowdown=slowdown,
        interval=interval,
        rounds=rounds,
        seed=seed,
        predict=predict,
        predict_interval=predict_interval,
        overhead=overhead,
        failures=failures,
        types=types,
        require_speeds=require_speeds,
    )
    if out is not None:
        write_whole(out, jobs_csv(result.jobs).encode(), parents=False)
    _print_summary(result.summary(), as_json, opened.seeded, has_types=bool(machines.gpu_types))


def _check_single(policy: str) -> None:
    """Refuse a list of policies; the message has the command that compares them."""
    names = [name.strip() for name in policy.split(",") if name.strip()]
    if len(names) > 1:
        raise ParamError(
            f"--policy {shown(policy)}: a run has one policy; compare several with "
            f"repro compare --policies {shown(','.join(names))}"
        )


def _simulated(frame: pd.DataFrame, machines: Cluster, policy: Policy, **options: Any) -> Result:
    """Simulate; on a terminal, print a line while loops are compiled."""
    with compile_watch(compiling_line()), warnings.catch_warnings():
        # the notes of the result have the same lines
        warnings.simplefilter("ignore", InputWarning)
        return repro.simulate(frame, machines, policy, **options)


def _check_stand_ins(replaced: list[str], rules: str) -> None:
    """Refuse the rules of an artifact on stand-ins for the artifact's data."""
    if replaced and rules != "paper":
        names = ", ".join(replaced)
        # an entry is the kind of data and the name of a public file
        fetch = " ".join(name.split()[-1] for name in replaced)
        raise ParamError(
            f"--rules {rules} reproduces the artifact's numbers, but a stand-in takes the place of "
            f"{names}: fetch it (repro trace fetch {fetch}), or pass --stand-in"
        )


def _print_summary(
    summary: dict[str, Any], as_json: bool, seeded: bool, *, has_types: bool
) -> None:
    """Print the headline numbers, and the inputs that the run did not use."""
    # the generator of the trace, or the errors of predictions, used the seed
    if seeded and "seed" in summary["ignored"].get("options", ()):
        summary["ignored"]["options"].remove("seed")
    ignored = ignored_lines(summary["ignored"], has_types=has_types)
    for line in [*summary["notes"], *ignored]:
        complain(line)
    text = to_json(summary).decode().rstrip() if as_json else "\n".join(_headline_lines(summary))
    typer.echo(text)


def jobs_csv(jobs: pd.DataFrame) -> str:
    """Jobs of a run as CSV with `safe_cells`; whole numbers have no decimal point."""
    columns = [name for name in (*COLUMNS, *_BOUNDS, *_DETAILS) if name in jobs]
    cells = safe_cells(jobs.loc[:, columns])
    for name in columns:
        if cells[name].dtype.kind == "f":
            cells[name] = [_csv_number(value) for value in cells[name].tolist()]
    return str(cells.to_csv(index=False, lineterminator="\n"))


def _curves_on_types(
    curves: SpeedUp, throughputs: ThroughputTable | None, machines: Cluster
) -> SpeedUp | OnTypes:
    """Speed-up curves, multiplied by the speeds of the GPU types where there are some."""
    if throughputs is None or not machines.gpu_types:
        return curves
    return OnTypes(curves, throughputs)


def _performance(
    opened: Opened,
    machines: Cluster,
    speed_options: dict[str, str],
    placement_sensitive: bool,
    rules: str,
) -> ThroughputTable | None:
    """Throughput table that the options ask for; None leaves the choice to `repro.simulate`."""
    frame = opened.frame
    if placement_sensitive:
        _check_sensitive(machines, rules)
    elif "throughputs" not in speed_options or not machines.gpu_types:
        check_options_used(opened.used_options, machines, speed_options)
        return None
    reference = speed_options.get("reference_gpu") or frame.attrs.get("reference_gpu")
    source = speed_options.get("throughputs")
    table = throughputs_of(frame) if source is None else load_throughputs(source, reference)
    if placement_sensitive and table is None:
        raise ParamError(
            "--placement-sensitive: give --throughputs, a table with the throughputs of "
            "consolidated gangs and of gangs that span nodes"
        )
    if placement_sensitive and table is not None:
        largest: dict[str, int] = {}
        for node in machines.nodes:
            name = str(node.gpu_type)
            largest[name] = max(largest.get(name, 0), node.gpus)
        table = dataclasses.replace(table, server_gpus=largest)
    return table


def _check_sensitive(machines: Cluster, rules: str) -> None:
    """Refuse ``--placement-sensitive`` where it cannot have an effect."""
    if not machines.gpu_types:
        raise ParamError(
            f"--placement-sensitive: {machines} names no GPU types; give one such as 9x4:v100"
        )
    if machines.gpus_per_node == 1:
        raise ParamError(
            f"--placement-sensitive: on the nodes of one GPU in {machines}, no gang has more nodes "
            f"than it needs; leave it out, or give larger nodes such as 9x4:v100"
        )
    if len(machines.nodes) == len(machines.gpu_types):
        raise ParamError(
            f"--placement-sensitive: {machines} has one node of each GPU type, so no gang has more "
            f"nodes than it needs; leave it out, or give several nodes such as 9x4:v100"
        )
    if rules == "gavel":
        raise ParamError(
            "--placement-sensitive: rules gavel count the same steps under any placement, as the "
            "public simulator does; use --rules paper"
        )


def _csv_number(value: float) -> str:
    """Write a number as CSV text; empty for NaN."""
    if math.isnan(value):
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def _headline_lines(summary: dict[str, Any]) -> list[str]:
    """Lines of the headline numbers; a metric without a value has no line.

    Format option ``z`` prints a rounding error below zero without a sign.
    """
    hidden = ("ignored", "notes") if summary["stand_in"] else ("ignored", "notes", "stand_in")
    numbers = {name: value for name, value in summary.items() if isinstance(value, float)}
    rows = {name: str(value) for name, value in summary.items() if name not in hidden}
    if "stand_in" in rows:
        rows["stand_in"] = ", ".join(summary["stand_in"])
    for name, value in numbers.items():
        unit = " s" if name.endswith(("jct", "makespan", "queueing", "_s")) else ""
        rows[name] = f"{value:.1%}" if name == "utilisation" else f"{value:z,.3f}{unit}"
        if math.isnan(value):
            del rows[name]
    width = max(map(len, rows))
    return [f"{name:<{width}}  {text}" for name, text in rows.items()]
