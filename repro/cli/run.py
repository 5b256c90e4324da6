"""``repro run``: figures in parallel, progress on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import joblib
import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from repro.base import paths
from repro.base.counts import refuse_below
from repro.base.errors import ParamError, refuse_unknown
from repro.base.extras import require
from repro.base.signals import raising_keyboard_interrupt
from repro.batch import check, plan
from repro.batch.report import write_report
from repro.batch.task import FAILED, Outcome, StartTimes, Task, Watch
from repro.cli import complete
from repro.cli.lines import say, visible
from repro.cli.missing_data import EXIT_MISSING_DATA, RequireData, say_missing
from repro.figures import params, variation
from repro.figures.notebook import default_seed, parameter_defaults
from repro.figures.saved import ERROR, read_error
from repro.files.strict_yaml import parse_value


def run_figures(
    context: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Figure ids (`repro list`) or unique prefixes.",
            autocompletion=complete.figures,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every figure.")] = False,
    paper: Annotated[
        str | None,
        typer.Option(metavar="P", help="Every figure of a paper.", autocompletion=complete.papers),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="quick (small, minutes for all figures) or paper (the paper's size).",
            autocompletion=complete.profiles,
        ),
    ] = "quick",
    jobs: Annotated[
        int | None, typer.Option("-j", metavar="N", help="Notebooks at a time (default: CPUs).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of results (default: build/figures).")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            metavar="NAME VALUE",
            help="Parameter of the notebooks, such as cluster 4x8; the run is then a variation and "
            "is not judged; repeatable.",
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where notebooks run: local (processes) or dask (workers).",
            autocompletion=complete.backends,
        ),
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, such as tcp://HOST:8786.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also run figures that are current.")
    ] = False,
    png: Annotated[
        bool, typer.Option("--png", help="Also write each picture as PNG, beside its SVG.")
    ] = False,
    require_data: RequireData = False,
) -> None:
    """Regenerate figures and tables; write the gallery page; exit 1 if a notebook failed."""
    require("figures", "repro run")
    if backend == "dask":
        require("dask", "--backend dask")
    if not ids and not everything and paper is None:
        raise ParamError("nothing to run; name figures (`repro list`), or give --paper P or --all")
    if ids and everything:
        raise ParamError("give either figure ids or --all")
    if everything and paper is not None:
        raise ParamError("give either --paper or --all")
    refuse_unknown("--profile cannot be", [profile], params.PROFILES)
    refuse_unknown("--backend cannot be", [backend], ("local", "dask"))
    if scheduler is not None and backend != "dask":
        raise ParamError("--scheduler needs --backend dask")
    refuse_below("-j", jobs, 1, "a number of notebooks")
    all_entries = params.discover()
    entries = params.select(ids or [], all_entries, paper=paper)
    folder = paths.build_dir() if out is None else paths.expanded(out).resolve()
    for path in (folder, *folder.parents):
        if os.path.exists(path) and not os.path.isdir(path):
            raise ParamError(f"--out {out}: {path} is a file; give a folder")
    parameters = _parameters(pairs or [])
    # Without a cache folder the run goes on, only nothing is cached.
    with suppress(OSError):
        paths.make_private_folder(paths.cache_dir())
    with plan.scratch_folder() as scratch:
        tasks, outcomes = plan.plan(
            entries,
            profile=profile,
            out=folder,
            user_parameters=parameters,
            force=force,
            scratch=scratch,
            png=png,
            raise_unreadable=bool(ids),
        )
        workers = jobs
        # without -j a dask scheduler uses all its workers
        if not workers and not scheduler:
            workers = min(joblib.cpu_count(), max(1, len(tasks)))
        messages = RunMessages(tasks, len(entries), debug=context.obj["debug"])
        for line in messages.opening_lines(outcomes):
            say(line)
        run_options = {"jobs": workers, "backend": backend, "scheduler": scheduler}
        with raising_keyboard_interrupt():
            try:
                for outcome in _run_tasks(tasks, messages, **run_options):
                    outcomes.append(outcome)
            except KeyboardInterrupt:
                _exit_at_once(len(outcomes), len(entries), scratch)
    for line in _variation_lines(entries, outcomes, profile, folder, parameters):
        say(line)
    varied = {task.id for task in tasks if task.changed}
    varied |= {outcome.id for outcome in outcomes if outcome.variation}
    judged = [entry for entry in entries if entry.id not in varied]
    if judged:
        page = write_report(folder, check.stored(all_entries, folder))
        typer.echo(f"verdicts: {check.tally_line(check.stored(judged, folder))}")
        typer.echo(f"gallery:  {page}")
    lacks_data = say_missing(check.stored(judged, folder))
    if any(outcome.status == FAILED for outcome in outcomes):
        raise typer.Exit(1)
    if require_data and lacks_data:
        raise typer.Exit(EXIT_MISSING_DATA)


def _parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Parameters of the notebooks, ``NAME=VALUE`` each; refuse an empty value and a second one."""
    parameters: dict[str, Any] = {}
    for pair in pairs:
        # `join_pairs` has made NAME=VALUE of NAME VALUE
        name, _, value = pair.partition("=")
        name = name.strip()
        if name in parameters:
            raise ParamError(f"-p {name}: is given twice; a run takes one value")
        if not value.strip():
            raise ParamError(f"-p {name}: is empty; give a value or leave it out")
        # a hexadecimal number in YAML, but here a cluster of 0 nodes
        is_hexadecimal = value.strip().startswith("0x")
        parsed = value.strip() if is_hexadecimal else parse_value(value)
        parameters[name] = _with_texts_as_keys(parsed)
    return parameters


def _with_texts_as_keys(value: Any) -> Any:
    """Value as papermill passes it to a notebook, where keys are texts."""
    if isinstance(value, Mapping):
        return {str(key): _with_texts_as_keys(item) for key, item in value.items()}
    return [_with_texts_as_keys(item) for item in value] if isinstance(value, list) else value


def _variation_lines(
    entries: Sequence[params.FigureEntry],
    outcomes: Sequence[Outcome],
    profile: str,
    out: Path,
    parameters: Mapping[str, Any],
) -> list[str]:
    """Folder of each variation that has a result, a line each."""
    with_result = {outcome.id for outcome in outcomes if outcome.variation}
    lines = []
    for entry in entries:
        if entry.id in with_result:
            own_seed = default_seed(parameter_defaults(entry))
            changed = variation.differences(entry.load(), profile, parameters, own_seed)
            folder = variation.folder(out, entry.id, changed, profile)
            lines.append(f"variation, not judged: {folder}")
    return lines


def _run_tasks(tasks: Sequence[Task], messages: RunMessages, **options: Any) -> Iterator[Outcome]:
    """Run notebooks and show their progress; yield outcomes as they end."""
    if not tasks:
        return
    # slow to import, and not needed if all figures are current
    from repro.batch.execute import run

    with _progress(messages) as (watch, show, announce):
        for outcome in run(tasks, watch=watch, announce=announce, **options):
            show(outcome)
            yield outcome


def _exit_at_once(done: int, total: int, scratch: Path) -> None:
    """Exit without waiting for threads, kernels or workers."""
    plan.kill_children()
    shutil.rmtree(scratch, ignore_errors=True)
    line = f"repro: interrupted, {done} of {total} figures done; the same command goes on from here"
    typer.echo(line, err=True)
    sys.stdout.flush()
    os._exit(130)


class RunMessages:
    """Messages about a batch of ``total`` figures, of which ``tasks`` are to run."""

    def __init__(self, tasks: Sequence[Task], total: int, *, debug: bool) -> None:
        self._tasks = {task.id: task for task in tasks}
        self.total = total
        self._debug = debug
        #: number of figures that have ended or are current
        self.done = total - len(tasks)
        self._printed_warnings: set[str] = set()

    def opening_lines(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Lines with the number of current figures, and the figures that cannot run."""
        current = sum(not outcome.error for outcome in outcomes)
        lines = [f"{current} of {self.total} figures are current"] if current else []
        return lines + [
            f"{outcome.id}: failed: {outcome.error}" for outcome in outcomes if outcome.error
        ]

    def outcome_lines(self, outcome: Outcome) -> list[str]:
        """Lines of a figure that ended, with its warnings that have not been printed yet."""
        self.done += 1
        text = outcome.summary or "no claims"
        if outcome.variation:
            text = f"variation, {outcome.variation}"
        if outcome.error:
            where = "" if outcome.cell is None else f" in cell [{outcome.cell}]"
            text = f"failed{where}: {outcome.error}"
        counter = f"[{self.done:>{len(str(self.total))}}/{self.total}]"
        first = f"{counter} {outcome.id}: {text} ({outcome.wall_s:.1f} s)"
        new_warnings = [
            warning for warning in outcome.warnings if warning not in self._printed_warnings
        ]
        self._printed_warnings.update(new_warnings)
        advice = self._failure_lines(self._tasks[outcome.id]) if outcome.error else []
        return [first, *advice, *(f"  warning: {warning}" for warning in new_warnings)]

    def _failure_lines(self, task: Task) -> list[str]:
        """Lines with the files to look at, and with --debug the traceback."""
        here = Path.cwd()
        candidates = (task.folder / ERROR, task.executed_notebook)
        existing = [path for path in candidates if path.is_file()]
        files = " and ".join(
            str(path.relative_to(here) if path.is_relative_to(here) else path) for path in existing
        )
        if not self._debug:
            return [f"  see {files}; --debug shows the traceback here"]
        trace = read_error(task.folder)[0].get("traceback", "")
        return [f"  see {files}", *(f"  {line}".rstrip() for line in trace.splitlines())]


@contextmanager
def _progress(
    messages: RunMessages,
) -> Iterator[tuple[Watch | None, Callable[[Outcome], None], Callable[[str], None]]]:
    """Yield the progress display of running figures (or None), and two printers.

    They print ended figures and single lines.
    """
    if messages.done == messages.total or not sys.stdout.isatty():

        def plain(outcome: Outcome) -> None:
            say("\n".join(messages.outcome_lines(outcome)))
            sys.stdout.flush()

        def plain_line(line: str) -> None:
            say(line)
            sys.stdout.flush()

        yield None, plain, plain_line
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True) as progress:
        total_row = progress.add_task(
            "figures",
            total=messages.total,
            completed=messages.done,
            count=f"{messages.done}/{messages.total}",
        )
        rows: dict[Task, TaskID] = {}

        def watch(running: StartTimes) -> None:
            for task in [task for task in rows if task not in running]:
                progress.remove_task(rows.pop(task))
            for task in running:
                if task not in rows:
                    rows[task] = progress.add_task(task.id, total=None, count="")
                progress_text = task.simulations_done()
                done, _, total = progress_text.partition("/")
                progress.update(
                    rows[task],
                    completed=int(done or 0),
                    total=int(total) if total else None,
                    count=f"{progress_text} simulations" if progress_text else "",
                )

        def print_line(line: str) -> None:
            progress.console.print(visible(line), markup=False, highlight=False)

        def print_outcome(outcome: Outcome) -> None:
            for line in messages.outcome_lines(outcome):
                print_line(line)
            count = f"{messages.done}/{messages.total}"
            progress.update(total_row, completed=messages.done, count=count)

        yield watch, print_outcome, print_line
