"""``repro run``: figures in parallel, progress on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from repro.base import paths
from repro.base.errors import ParamError, refuse_unknown
from repro.batch import check, plan
from repro.batch.report import write_report
from repro.batch.task import FAILED, Begun, Outcome, Task, Watch
from repro.cli.lines import say, visible
from repro.figures import params
from repro.figures.saved import ERROR, read_error
from repro.files.strict_yaml import parse_value


def run(
    context: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Figure ids or unique prefixes.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every figure.")] = False,
    paper: Annotated[str | None, typer.Option(metavar="P", help="Every figure of a paper.")] = None,
    profile: Annotated[str, typer.Option(help="quick, or paper for the paper's size.")] = "quick",
    jobs: Annotated[
        int | None, typer.Option("-j", metavar="N", help="Notebooks at a time (default: CPUs).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of results (default: build/figures).")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option("-p", metavar="NAME VALUE", help="Parameter of the notebooks; repeatable."),
    ] = None,
    backend: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of a dask scheduler.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Run also what is current.")] = False,
) -> None:
    """Regenerate figures and tables; write the gallery page; exit 1 if a notebook failed."""
    if not ids and not everything and paper is None:
        raise ParamError("nothing to run; name figures (`repro list`), or give --paper P or --all")
    if ids and everything:
        raise ParamError("give either figure ids or --all")
    refuse_unknown("--profile cannot be", [profile], params.PROFILES)
    refuse_unknown("--backend cannot be", [backend], ("local", "dask"))
    if scheduler is not None and backend != "dask":
        raise ParamError("--scheduler needs --backend dask")
    if jobs is not None and jobs < 1:
        raise ParamError(f"-j {jobs}: give a number of notebooks of 1 or more")
    everywhere = params.discover()
    entries = params.select(ids or [], everywhere, paper=paper)
    folder = paths.build_dir() if out is None else out.expanduser().resolve()
    split = (pair.partition("=") for pair in pairs or [])
    given = {name.strip(): parse_value(value) for name, _, value in split}
    # A folder that cannot be made only means that nothing is remembered.
    with suppress(OSError):
        paths.private(paths.cache_dir())
    with plan.scratch_folder() as scratch:
        tasks, outcomes = plan.plan(
            entries,
            profile=profile,
            out=folder,
            given=given,
            force=force,
            scratch=scratch,
            named=bool(ids),
        )
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        workers = jobs or (None if scheduler else min(cpus or 1, max(1, len(tasks))))
        told = Told(tasks, len(entries), debug=context.obj["debug"])
        for line in told.before(outcomes):
            say(line)
        # A shell that starts a job in the background makes it ignore Ctrl-C.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        try:
            for done in _executed(tasks, told, jobs=workers, backend=backend, scheduler=scheduler):
                outcomes.append(done)
        except KeyboardInterrupt:
            _stop(len(outcomes), len(entries), scratch)
    page = write_report(folder, check.stored(everywhere, folder))
    typer.echo(f"verdicts: {check.tally_line(check.stored(entries, folder))}")
    typer.echo(f"gallery:  {page}")
    if any(outcome.status == FAILED for outcome in outcomes):
        raise typer.Exit(1)


def _executed(tasks: Sequence[Task], told: Told, **how: Any) -> Iterator[Outcome]:
    """Run notebooks, and show how far they are."""
    if not tasks:
        return
    # takes longer to import than it takes to see that all figures are current
    from repro.batch.execute import run

    with _shown(told) as (watch, show):
        for done in run(tasks, watch=watch, **how):
            show(done)
            yield done


def _stop(done: int, total: int, scratch: Path) -> None:
    """Leave at once: no thread, kernel or worker is waited for."""
    plan.kill_children()
    shutil.rmtree(scratch, ignore_errors=True)
    line = f"repro: interrupted, {done} of {total} figures done; the same command goes on from here"
    typer.echo(line, err=True)
    sys.stdout.flush()
    os._exit(130)


class Told:
    """What has been said of a batch of ``total`` figures, of which ``tasks`` are to run."""

    def __init__(self, tasks: Sequence[Task], total: int, *, debug: bool) -> None:
        self._tasks = {task.id: task for task in tasks}
        self.total = total
        self._debug = debug
        self.count = total - len(tasks)
        self._said: set[str] = set()

    def before(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Return how many figures are current, and those that cannot be run."""
        current = sum(not outcome.error for outcome in outcomes)
        lines = [f"{current} of {self.total} figures are current"] if current else []
        return lines + [
            f"{outcome.id}: failed: {outcome.error}" for outcome in outcomes if outcome.error
        ]

    def of(self, outcome: Outcome) -> list[str]:
        """Return the lines of a figure, and of the warnings that no figure has given yet."""
        self.count += 1
        text = check.verdicts([{"verdict": one} for one in outcome.verdicts]) or "no claims"
        if outcome.error:
            where = "" if outcome.cell is None else f" in cell [{outcome.cell}]"
            text = f"failed{where}: {outcome.error}"
        place = f"[{self.count:>{len(str(self.total))}}/{self.total}]"
        first = f"{place} {outcome.id}: {text} ({outcome.wall_s:.1f} s)"
        fresh = [warning for warning in outcome.warnings if warning not in self._said]
        self._said.update(fresh)
        more = self._of_failure(self._tasks[outcome.id]) if outcome.error else []
        return [first, *more, *(f"  warning: {warning}" for warning in fresh)]

    def _of_failure(self, task: Task) -> list[str]:
        """Return where to look, or the traceback itself."""
        here = Path.cwd()
        places = [path for path in (task.folder / ERROR, task.entry.executed) if path.is_file()]
        found = " and ".join(
            str(path.relative_to(here) if path.is_relative_to(here) else path) for path in places
        )
        if not self._debug:
            return [f"  see {found}; --debug shows the traceback here"]
        trace = read_error(task.folder)[0].get("traceback", "")
        return [f"  see {found}", *(f"  {line}".rstrip() for line in trace.splitlines())]


@contextmanager
def _shown(told: Told) -> Iterator[tuple[Watch | None, Callable[[Outcome], None]]]:
    """Give what shows the figures that run, if anything does, and what prints those that ended."""
    if told.count == told.total or not sys.stdout.isatty():

        def plain(outcome: Outcome) -> None:
            say("\n".join(told.of(outcome)))
            sys.stdout.flush()

        yield None, plain
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True) as progress:
        whole = progress.add_task(
            "figures", total=told.total, completed=told.count, count=f"{told.count}/{told.total}"
        )
        rows: dict[Task, TaskID] = {}

        def watch(running: Begun) -> None:
            for task in [task for task in rows if task not in running]:
                progress.remove_task(rows.pop(task))
            for task in running:
                if task not in rows:
                    rows[task] = progress.add_task(task.id, total=None, count="")
                points = task.simulations_done()
                done, _, total = points.partition("/")
                progress.update(
                    rows[task],
                    completed=int(done or 0),
                    total=int(total) if total else None,
                    count=f"{points} simulations" if points else "",
                )

        def bar(outcome: Outcome) -> None:
            for line in told.of(outcome):
                progress.console.print(visible(line), markup=False, highlight=False)
            progress.update(whole, completed=told.count, count=f"{told.count}/{told.total}")

        yield watch, bar
