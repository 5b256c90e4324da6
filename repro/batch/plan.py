"""Plans a batch: checks all figures before the first kernel starts, and skips current results."""

import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.base import paths
from repro.base.errors import ParamError, ReproError, refuse_unknown
from repro.batch.task import FAILED, SKIPPED, Outcome, Task
from repro.figures import data, variation
from repro.figures.extra import read_extra, with_extra
from repro.figures.fingerprint import fingerprint, is_current, shared_state
from repro.figures.notebook import FIGURE_ID, check_seed_parameter, default_seed, parameter_defaults
from repro.figures.params import FigureEntry, FigureSpec
from repro.figures.saved import ERROR, read_result, remove_unfinished, to_json, verdict_counts
from repro.files.whole import write_whole
from repro.model.cluster.spec import Cluster, is_file_name
from repro.trace.formats import FORMATS

#: Parameters with an option of their own.
_OWN_OPTION = {"profile": "--profile", "out": "--out", FIGURE_ID: "the argument ID"}
_SCRATCH = "repro-batch-"


def plan(
    entries: Sequence[FigureEntry],
    *,
    profile: str,
    out: Path,
    user_parameters: Mapping[str, Any],
    force: bool,
    scratch: Path,
    png: bool = False,
    raise_unreadable: bool = False,
) -> tuple[list[Task], list[Outcome]]:
    """Check figures; return the tasks in the order of their start, and outcomes of other figures.

    Tasks with most CPU time come first, but the papers take turns. The other figures are current or
    cannot be read. With ``png`` a figure without a PNG is not current. Figures that cannot be read
    get an ``error.json``. With ``raise_unreadable`` the first figure that cannot be read raises.
    """
    tasks: list[tuple[float, Task]] = []
    skipped: list[Outcome] = []
    unreadable: list[Outcome] = []
    shared = shared_state()
    for entry in entries:
        try:
            spec = entry.load()
            parameters_of_notebook = parameter_defaults(entry)
        except ReproError as error:
            if raise_unreadable:
                raise
            unreadable.append(Outcome(entry.id, FAILED, error=str(error)))
            continue
        _check_parameters(entry.id, parameters_of_notebook, user_parameters)
        _check_inputs(spec, profile, user_parameters)
        expected = fingerprint(entry, profile, user_parameters, shared)
        own_seed = default_seed(parameters_of_notebook)
        changed = variation.differences(spec, profile, user_parameters, own_seed)
        parameters = {**user_parameters, "profile": profile, "out": str(out)}
        if FIGURE_ID in parameters_of_notebook:
            parameters[FIGURE_ID] = entry.id
        task = Task(entry, parameters, expected, scratch, changed, png)
        folder = task.folder
        remove_unfinished(folder)
        result, damage = read_result(folder)
        broken = bool(damage) or (folder / ERROR).exists()
        lacks_png = png and not (folder / f"{entry.stem}.png").is_file()
        if not (force or broken or lacks_png) and is_current(folder, entry.stem, expected):
            summary = "; ".join(verdict_counts(result.get("claims", [])))
            difference = variation.text(changed)
            skipped.append(Outcome(entry.id, SKIPPED, summary=summary, variation=difference))
            continue
        tasks.append((_expected_cpu_s(result, entry.id), task))
    for failed in unreadable:
        write_whole(out / failed.id / ERROR, to_json({"id": failed.id, "error": failed.error}))
    most_cpu_first = [task for _, task in sorted(tasks, key=lambda item: -item[0])]
    return _papers_in_turn(most_cpu_first), [*skipped, *unreadable]


def _papers_in_turn(tasks: Sequence[Task]) -> list[Task]:
    """Put tasks in an order in which neighbours are of different papers, as far as possible.

    Figures of one paper need the same compiled loops. Two of them that start at the same time on an
    empty cache would compile each loop twice.
    """
    left = list(tasks)
    ordered: list[Task] = []
    paper = ""
    while left:
        task = next((task for task in left if task.entry.paper != paper), left[0])
        left.remove(task)
        ordered.append(task)
        paper = task.entry.paper
    return ordered


def _expected_cpu_s(result: Mapping[str, Any], figure_id: str) -> float:
    """CPU time (s) of the last run, or of the committed run, whose profile may be another."""
    if not result:
        result, _ = read_result(paths.figures_dir() / figure_id)
    return float(result.get("cpu_s") or result.get("wall_s") or 0.0)


def _check_parameters(
    figure_id: str, accepted: Collection[str], parameters: Mapping[str, Any]
) -> None:
    """Refuse a wrong seed and parameters that a notebook lacks; papermill would only log them."""
    for name in parameters:
        if name in _OWN_OPTION:
            raise ParamError(f"-p {name}: use {_OWN_OPTION[name]} instead")
    settable = [name for name in accepted if name not in _OWN_OPTION]
    refuse_unknown(f"{figure_id} has no parameter", parameters, settable)
    if "seed" in parameters:
        check_seed_parameter(parameters["seed"])


def _check_inputs(spec: FigureSpec, profile: str, parameters: Mapping[str, Any]) -> None:
    """Refuse inputs of another form, policies that the figure cannot show, and an unused format."""
    # raises for names that are no policy
    extra = read_extra(parameters.get("extra"))
    overrides = {name: value for name, value in parameters.items() if name in spec.inputs}
    inputs = spec.merged(profile, overrides)
    with_extra(inputs, extra)
    _check_clusters(overrides)
    trace_format = parameters.get("format")
    if trace_format is not None:
        refuse_unknown("-p format cannot be", [str(trace_format)], list(FORMATS))
        if not any(map(data.is_own, _trace_names(inputs))):
            raise ParamError(
                f"-p format {trace_format}: no trace of this run is a file of yours; give one "
                "with -p trace, or leave format out"
            )


def _check_clusters(overrides: Mapping[str, Any]) -> None:
    """Refuse cluster specs that cannot be read. Files are read by the notebook."""
    for name, value in overrides.items():
        if value is None or not name.endswith(("cluster", "clusters")):
            continue
        specs = value.values() if isinstance(value, Mapping) else value
        for spec in [specs] if isinstance(specs, str) else specs:
            if not is_file_name(str(spec)):
                try:
                    Cluster.parse(spec)
                except ParamError as error:
                    raise ParamError(f"-p {name}: {error}") from None


def _trace_names(inputs: Mapping[str, Any]) -> list[str]:
    """Names of the traces that a figure opens, from its inputs ``trace`` and ``traces``."""
    traces = inputs.get("traces") or []
    names = [inputs.get("trace"), *(traces.values() if isinstance(traces, Mapping) else traces)]
    return [name for name in names if isinstance(name, str)]


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder for a batch or a worker; remove the folders of killed processes.

    Hosts and containers may share the place of temporary files. The name of a folder says which of
    them made it, because a process number has a meaning only there.
    """
    import psutil

    base = Path(tempfile.gettempdir())
    machine = hashlib.sha256("\n".join(_machine()).encode()).hexdigest()[:12]
    prefix = f"{_SCRATCH}{machine}-"
    for leftover in base.glob(f"{prefix}*"):
        pid = leftover.name.removeprefix(prefix).split("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _machine() -> tuple[str, ...]:
    """Name of the host, and on Linux its present boot and the namespace of process numbers."""
    marks = [platform.node()]
    with contextlib.suppress(OSError):
        marks.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        marks.append(os.readlink("/proc/self/ns/pid"))
    return tuple(marks)


def kill_children() -> None:
    """Kill all descendants of this process: kernels and dask workers."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
