"""Many notebooks: what is still current is skipped, the rest runs in parallel and can be killed."""

from __future__ import annotations

import ast
import contextlib
import os
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import paths
from repro.batch.files import ERROR, RESULT, read_json, sweep
from repro.batch.fingerprint import cells, fingerprint, is_current
from repro.batch.task import SKIPPED, Outcome, Task
from repro.errors import ParamError
from repro.params import Entry

#: Parameters with an option of their own.
_OWN_OPTION = {"profile": "--profile", "out": "--out"}
_SCRATCH = "repro-batch-"
_TELL_EVERY_S = 10.0


def plan(
    entries: Sequence[Entry],
    *,
    profile: str,
    out: Path,
    given: Mapping[str, Any],
    force: bool,
    scratch: Path,
) -> tuple[list[Task], list[Outcome]]:
    """Check everything that can be checked before a kernel starts, and sort out what is current.

    Parameters
    ----------
    entries : sequence of Entry
        Figures to run.
    profile : str
        ``quick`` or ``paper``.
    out : Path
        Folder of results.
    given : mapping
        Parameters from the command line.
    force : bool
        Run also what is current.
    scratch : Path
        Folder for sockets and notebooks under execution.

    Returns
    -------
    tuple of list of Task and list of Outcome
        What is to run, the longest first, and what is skipped.

    Raises
    ------
    ParamError, ClaimError
        For a bad parameter file, notebook or parameter.
    """
    root = paths.project_root()
    tasks: list[tuple[float, Task]] = []
    skipped: list[Outcome] = []
    for entry in entries:
        entry.load()
        check_parameters(entry, given)
        parameters = {**given, "profile": profile, "out": str(out)}
        folder = out / entry.paper / entry.stem
        wanted = fingerprint(entry, profile, given)
        sweep(folder)
        result = read_json(folder / RESULT) or {}
        broken = (folder / ERROR).exists()
        if not force and not broken and is_current(folder, entry.stem, wanted):
            verdicts = tuple(claim["verdict"] for claim in result.get("claims", []))
            skipped.append(Outcome(entry.id, SKIPPED, verdicts=verdicts))
            continue
        task = Task(
            id=entry.id,
            notebook=str(entry.notebook),
            folder=str(folder),
            copy=str(executed_copy(root, entry)),
            root=str(root),
            parameters=parameters,
            fingerprint=wanted,
            scratch=str(scratch),
        )
        tasks.append((-float(result.get("wall_s") or 0.0), task))
    return [task for _, task in sorted(tasks, key=lambda item: item[0])], skipped


def executed_copy(root: Path, entry: Entry) -> Path:
    """Return where the executed notebook of a figure is kept."""
    return root / "build" / "notebooks" / entry.paper / f"{entry.stem}.ipynb"


def check_parameters(entry: Entry, given: Mapping[str, Any]) -> None:
    """Refuse parameters the notebook does not have; papermill would only log them.

    Raises
    ------
    ParamError
        Naming the parameters the notebook accepts.
    """
    tagged = [source for kind, source, tags in cells(entry.notebook) if "parameters" in tags]
    if not tagged:
        raise ParamError(f"{entry.notebook}: no cell is tagged `parameters`; tag the first one")
    try:
        body = ast.parse(tagged[0]).body
    except SyntaxError as error:
        raise ParamError(
            f"{entry.notebook}: the parameters cell is not Python (line {error.lineno})"
        ) from None
    accepted = [
        target.id
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
        if isinstance(target, ast.Name)
    ]
    for name in given:
        if name in _OWN_OPTION:
            raise ParamError(f"-p {name}: use {_OWN_OPTION[name]} instead")
        if name not in accepted:
            free = [one for one in accepted if one not in _OWN_OPTION]
            raise ParamError(
                f"{entry.id} has no parameter {name!r} (accepted: {', '.join(free) or 'none'})"
            )


def run(
    tasks: Sequence[Task],
    *,
    jobs: int,
    backend: str = "local",
    scheduler: str | None = None,
) -> Iterator[Outcome]:
    """Execute notebooks in parallel, yielding each outcome as it comes.

    Parameters
    ----------
    tasks : sequence of Task
        From :func:`plan`.
    jobs : int
        Notebooks at a time.
    backend : {"local", "dask"}
        Where kernels run.
    scheduler : str, optional
        Address of a dask scheduler; a cluster on this machine when left out.

    Raises
    ------
    ParamError
        If dask is asked for and not installed, or does not answer.
    """
    if not tasks:
        return
    settings = _dask(jobs, scheduler) if backend == "dask" else contextlib.nullcontext()
    finished: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
    news = points_news(tasks)

    def work() -> None:
        try:
            with settings:
                for outcome in _parallel(tasks, jobs, backend):
                    finished.put(outcome)
            finished.put(None)
        except BaseException as error:
            finished.put(error)

    # The work has a thread of its own, so that this one can be interrupted at any moment.
    threading.Thread(target=work, daemon=True).start()
    while True:
        try:
            item = finished.get(timeout=0.2)
        except queue.Empty:
            for line in next(news):
                print(line, flush=True)
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item


def points_news(tasks: Sequence[Task], every_s: float = _TELL_EVERY_S) -> Iterator[list[str]]:
    """Yield again and again how many simulations each notebook has done, if it got on since."""
    told = {task.id: (time.monotonic(), "") for task in tasks}
    while True:
        lines = []
        for task in tasks:
            at, before = told[task.id]
            with contextlib.suppress(OSError):
                if time.monotonic() - at >= every_s and (now := task.points.read_text()) != before:
                    told[task.id] = (time.monotonic(), now)
                    lines.append(f"{task.id} {now} points")
        yield lines


def _parallel(tasks: Sequence[Task], jobs: int, backend: str) -> Iterator[Outcome]:
    import joblib

    from repro.batch.kernel import execute

    # Each notebook has a kernel process of its own, so threads are enough here: they start at
    # once, and nothing but kernels is left to stop when the batch is killed.
    local = {"backend": "threading"} if backend == "local" else {}
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", **local)
    yield from parallel(joblib.delayed(execute)(task) for task in tasks)


def _dask(jobs: int, scheduler: str | None) -> contextlib.AbstractContextManager[Any]:
    try:
        import distributed
    except ImportError:
        raise ParamError("--backend dask needs dask: pip install repro[dask]") from None
    import joblib

    @contextlib.contextmanager
    def connected() -> Iterator[None]:
        try:
            where = (
                {"address": scheduler, "timeout": "10s"}
                if scheduler
                else {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
            )
            client = distributed.Client(**where)
        except (OSError, ValueError) as error:
            raise ParamError(
                f"--scheduler {scheduler}: no dask scheduler answers ({type(error).__name__}); "
                "give its address, such as tcp://host:8786"
            ) from None
        with client, joblib.parallel_config(backend="dask"):
            yield

    return connected()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make the folder of a batch for sockets and notebooks under execution; remove it after.

    Folders of batches that were killed are removed too.
    """
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_SCRATCH}*"):
        if not _alive(old.name.removeprefix(_SCRATCH).split("-")[0]):
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OSError):
        return True
    return True


def kill_children() -> None:
    """Kill every process this one has started, and theirs: kernels and dask workers."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
