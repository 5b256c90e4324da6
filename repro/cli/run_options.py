"""Options that several commands share: trace, cluster, speeds, costs, and reading the jobs."""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from repro.base.errors import ParamError
from repro.cli import complete
from repro.figures.data import open_trace
from repro.files import public
from repro.files.whole import refuse_binary_name
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy
from repro.perf.speedup import SpeedUp, load_speedups
from repro.perf.throughput_files import measured_files
from repro.trace import synth
from repro.trace.dressing import dress
from repro.trace.load import detect, load

#: Trace format -> options of ``repro simulate`` that its reader also takes.
_FORMAT_OPTIONS = {"gavel": ("throughputs", "reference_gpu"), "pcs": ("speedups",)}

TraceOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|NAME",
        help="A file, a generator or a public trace (`repro trace list`).",
        autocompletion=complete.jobs,
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="Nodes x GPUs, such as 8x8; with GPU types 8x4:v100 or 36xv100; or a file of nodes.",
        autocompletion=complete.clusters,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="Format of the file (`repro trace formats`); by default its contents decide.",
        autocompletion=complete.formats,
    ),
]
ThroughputsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|DIR|NAME",
        help="Throughputs (steps/s) by model and GPU type, such as gavel-throughputs, or a "
        "measured folder.",
        autocompletion=complete.throughput_tables,
    ),
]
ProfilesOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|h100",
        help="Measured folder with the models, iteration and stage times of the jobs; h100: that "
        "of the checkout.",
        autocompletion=complete.measured_folders,
    ),
]
ReferenceOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="GPU type that durations refer to.")
]
SlowdownOption = Annotated[
    str | None,
    typer.Option(
        metavar="X",
        help="A gang on more nodes or racks than it needs takes X times as long; node=X,rack=Y: "
        "by level; tiresias: by model, as Tiresias measured.",
        autocompletion=complete.slowdowns,
    ),
]
PlacementOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[:K=V,…]",
        help="Placement, such as yarn or skew:pack_limit=0.3 (default: that of the policy).",
        autocompletion=complete.placements,
    ),
]
OverheadOption = Annotated[
    str | None,
    typer.Option(
        metavar="none|tiresias|h100|DIR|S",
        help="Cost of preemptions: none, as measured by Tiresias, on an H100 or in a measured "
        "folder, or S seconds per resumption.",
        autocompletion=complete.overheads,
    ),
]
FailuresOption = Annotated[
    str | None,
    typer.Option(
        metavar="mtbf=S,…",
        help="Nodes fail: mean time between failures of a node mtbf=S; also repair=S (default "
        "600) and checkpoint=S (default 3600).",
    ),
]

PredictionErrorOption = Annotated[
    float | None,
    typer.Option(
        metavar="SIGMA",
        help="Policies read predicted durations with a log-normal prediction error: duration x "
        "exp(SIGMA z), z from the standard normal distribution.",
    ),
]


class Opened(NamedTuple):
    """A trace, the options that its reader used, and whether its values depend on the seed."""

    frame: pd.DataFrame
    used_options: frozenset[str]
    seeded: bool


def open_jobs(
    name: str,
    trace_format: str | None,
    gpus: int | None,
    seed: int,
    speed_options: dict[str, str],
    reader_options: dict[str, Any],
) -> Opened:
    """Read or generate a trace.

    A job of a file that demands more than ``gpus`` is refused; with None no demand is refused.
    ``speed_options`` are --throughputs, --reference-gpu and --speedups. Each is passed only to a
    reader or generator that takes it.
    """
    if not is_generator(name):
        read_format = format_of(name, trace_format) if speed_options else None
        format_options = _FORMAT_OPTIONS.get(read_format or "", ())
        options = {key: value for key, value in speed_options.items() if key in format_options}
        all_options: dict[str, Any] = options | reader_options
        frame = load(name, trace_format, cluster_gpus=gpus, **all_options)
        return Opened(frame, frozenset(options), False)
    if trace_format is not None:
        raise ParamError(f"--format {trace_format}: {name!r} is a generator, not a file")
    if reader_options:
        option = next(iter(reader_options)).replace("_", "-")
        raise ParamError(f"--{option}: {name!r} is a generator, not a file with columns and rows")
    accepted = inspect.signature(synth.generators[name]).parameters
    options = {key: value for key, value in speed_options.items() if key in accepted}
    return Opened(open_trace(name, seed, **options)[0], frozenset(options), True)


def curves_for(policy: Policy, path: str) -> SpeedUp:
    """Speed-up curves of a file; only policies that divide GPUs accept them."""
    if not policy.elastic:
        raise ParamError(
            f"--speedups {path}: policy {policy.name!r} gives a job the GPUs it asks for or none; "
            f"leave it out"
        )
    return load_speedups(path)


def is_generator(name: str) -> bool:
    """Whether a trace is generated: it has the name of a generator, and no file has this name."""
    # os.path instead of Path: a name may be too long for the file system
    return name in synth.generators and not os.path.isfile(name)


def with_profiles(opened: Opened, profiles: str | None, seed: int) -> Opened:
    """Trace with the models and times of a measured folder, if ``profiles`` names one."""
    if profiles is None:
        return opened
    has_models = "model" in opened.frame and bool(opened.frame["model"].notna().any())
    frame = dress(opened.frame, seed=seed, profiles=profiles)
    return Opened(frame, opened.used_options, opened.seeded or not has_models)


def check_options_used(
    used_options: frozenset[str], machines: Cluster, speed_options: dict[str, str]
) -> None:
    """Refuse speed options that the reader or generator of the trace did not take.

    ``used_options`` are the options that it took.
    """
    for option, value in speed_options.items():
        if option not in used_options:
            reason = "is used only with --throughputs or by a trace that reads it"
            if not machines.gpu_types:
                reason = (
                    "needs a cluster with GPU types such as 9x4:v100 or a trace that reads it, and "
                    f"{machines} names no GPU types"
                )
            raise ParamError(f"--{option.replace('_', '-')} {value}: {reason}; leave it out")


def format_of(trace: str, named: str | None) -> str | None:
    """Format of a trace: ``named``, that of a public trace, or that of the contents of a file."""
    if named is not None:
        return named
    # os.path instead of Path: a name may be too long for the file system
    if os.path.isfile(trace):
        return detect(trace)
    return public.entry(trace).format if public.is_known(trace) else None


def check_out(out: Path | None, inputs: Mapping[str, str | None]) -> None:
    """Refuse a CSV file in a missing folder, with a binary ending, or that the command reads.

    ``inputs`` are as in `refuse_input_file`.
    """
    if out is None:
        return
    if not out.parent.is_dir():
        raise ParamError(f"--out {out}: no folder {out.parent}; make it first")
    refuse_binary_name(out)
    refuse_input_file(out, inputs)


def refuse_input_file(out: Path, inputs: Mapping[str, str | None]) -> None:
    """Refuse to overwrite a file that the command reads, also under another path.

    ``inputs`` maps words for an input, used in the message, to its file or public name.
    """
    if not os.path.isfile(out):
        return
    for name, source in inputs.items():
        if source is None:
            continue
        files = _files_of(source)
        if any(os.path.samefile(file, out) for file in files):
            read = f"{name} itself" if len(files) == 1 else f"a file of {name}"
            raise ParamError(f"--out {out}: is {read}; name another file")


def _files_of(source: str) -> list[Path]:
    """Files behind a path, a public name or a measured folder; none if it is something else."""
    if os.path.isfile(source):
        return [Path(source)]
    if public.is_known(source):
        return [public.fetch(source)] if public.available(source) else []
    return measured_files(source)


def present(**options: str | None) -> dict[str, str]:
    """Options that have a value."""
    return {option: value for option, value in options.items() if value is not None}


def refuse_empty(values: dict[str, str | None]) -> None:
    """Refuse options with an empty value."""
    if empty := [option for option, value in values.items() if value == ""]:
        raise ParamError(f"--{empty[0]}: is empty; name one or leave it out")
