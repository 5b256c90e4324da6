"""Many notebooks: what is still current is skipped, the rest runs in parallel and can be killed."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import paths
from repro.batch.task import FAILED, SKIPPED, Outcome, Task
from repro.errors import ParamError, ReproError
from repro.figures.fingerprint import fingerprint, is_current
from repro.figures.notebook import accepted
from repro.figures.params import Entry
from repro.figures.result_files import ERROR, sweep, to_json
from repro.figures.saved import read_result
from repro.files.whole import write_whole

#: Parameters with an option of their own.
_OWN_OPTION = {"profile": "--profile", "out": "--out"}
#: The figures that run, and since when.
Begun = dict[Task, float]
Watch = Callable[[Begun], None]
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
    named: bool = False,
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
    named : bool
        Whether these very figures were asked for: then a broken one is an error.

    Returns
    -------
    tuple of list of Task and list of Outcome
        What is to run, the longest first; then what is current, and what has failed already
        because its parameter file or notebook cannot be read.

    Raises
    ------
    ParamError, ClaimError
        For a parameter that a notebook does not have, and for a broken figure if ``named``.
    """
    root = paths.project_root()
    tasks: list[tuple[float, Task]] = []
    skipped: list[Outcome] = []
    unread: list[Outcome] = []
    for entry in entries:
        folder = out / entry.paper / entry.stem
        try:
            entry.load()
            known = accepted(entry.notebook)
        except ReproError as error:
            if named:
                raise
            unread.append(Outcome(entry.id, FAILED, error=str(error)))
            continue
        _check_parameters(entry.id, known, given)
        parameters = {**given, "profile": profile, "out": str(out)}
        wanted = fingerprint(entry, profile, given)
        sweep(folder)
        result, damage = read_result(folder)
        broken = bool(damage) or (folder / ERROR).exists()
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
    for failed in unread:
        write_whole(out / failed.id / ERROR, to_json({"id": failed.id, "error": failed.error}))
    return [task for _, task in sorted(tasks, key=lambda item: item[0])], [*skipped, *unread]


def executed_copy(root: Path, entry: Entry) -> Path:
    """Return where the executed notebook of a figure is kept."""
    return root / "build" / "notebooks" / entry.paper / f"{entry.stem}.ipynb"


def _check_parameters(figure_id: str, known: Collection[str], given: Mapping[str, Any]) -> None:
    """Refuse parameters the notebook does not have; papermill would only log them."""
    for name in given:
        if name in _OWN_OPTION:
            raise ParamError(f"-p {name}: use {_OWN_OPTION[name]} instead")
        if name not in known:
            free = [one for one in known if one not in _OWN_OPTION]
            raise ParamError(
                f"{figure_id} has no parameter {name!r} (accepted: {', '.join(free) or 'none'})"
            )


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None,
    backend: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Outcome]:
    """Execute notebooks in parallel, yielding each outcome as it comes.

    Parameters
    ----------
    tasks : sequence of Task
        From :func:`plan`.
    jobs : int or None
        Notebooks at a time; None for one per thread of the dask workers.
    backend : {"local", "dask"}
        Where kernels run.
    scheduler : str, optional
        Address of a dask scheduler; a cluster on this machine when left out.
    watch : callable, optional
        Given five times a second what runs and since when (in seconds of `time.monotonic`);
        lines of points are printed when left out.

    Raises
    ------
    ParamError
        If dask is asked for and not installed, does not answer or has no workers.
    """
    if not tasks:
        return
    begun: Begun = {}
    finished: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
    news = points_news(tasks)
    if backend == "dask":
        outcomes = _on_dask(tasks, jobs, scheduler, begun)
    else:
        outcomes = _here(tasks, jobs, begun)

    def work() -> None:
        try:
            for outcome in outcomes:
                finished.put(outcome)
            finished.put(None)
        except BaseException as error:
            finished.put(error)

    # The work has a thread of its own, so that this one can be interrupted at any moment.
    threading.Thread(target=work, daemon=True).start()
    while True:
        if watch is not None:
            watch(dict(begun))
        try:
            item = finished.get(timeout=0.2)
        except queue.Empty:
            for line in next(news) if watch is None else ():
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
            if time.monotonic() - at >= every_s and (now := task.points_done()) not in ("", before):
                told[task.id] = (time.monotonic(), now)
                lines.append(f"{task.id} {now} points")
        yield lines


def _here(tasks: Sequence[Task], jobs: int | None, begun: Begun) -> Iterator[Outcome]:
    import joblib

    from repro.batch.kernel import execute

    def begin(task: Task) -> tuple[Task, Outcome]:
        begun[task] = time.monotonic()
        return task, execute(task)

    # Each notebook has a kernel process of its own, so threads are enough here: they start at
    # once, and nothing but kernels is left to stop when the batch is killed.
    parallel = joblib.Parallel(
        n_jobs=jobs or -1, backend="threading", return_as="generator_unordered"
    )
    for task, outcome in parallel(joblib.delayed(begin)(task) for task in tasks):
        del begun[task]
        yield outcome


def _on_dask(
    tasks: Sequence[Task], jobs: int | None, scheduler: str | None, begun: Begun
) -> Iterator[Outcome]:
    """Yield outcomes of dask workers; a notebook whose worker dies begins again on another."""
    try:
        import distributed
    except ImportError:
        raise ParamError(
            "--backend dask needs dask; in the folder of the checkout: "
            f'{sys.executable} -m pip install -e ".[dask]"'
        ) from None
    from repro.batch.kernel import execute_on_worker

    with _client(jobs, scheduler) as client:
        held: dict[str, Task] = {}
        running = distributed.as_completed()

        def begin(waiting: Iterable[Task]) -> None:
            for task in waiting:
                begun[task] = time.monotonic()
                future = client.submit(execute_on_worker, task, pure=False)
                held[future.key] = task
                running.add(future)

        waiting = iter(tasks)
        # A notebook leaves its worker's thread to simulations, so dask itself would begin them
        # all at once.
        begin(itertools.islice(waiting, jobs or sum(client.ncores().values())))
        for future in running:
            task = held.pop(future.key)
            del begun[task]
            try:
                outcome = future.result()
            # Whatever dask or a worker without this package raises fails this figure alone.
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                outcome = Outcome(task.id, FAILED, error=f"no worker could run it: {reason}")
            begin(itertools.islice(waiting, 1))
            yield outcome


@contextlib.contextmanager
def _client(jobs: int | None, scheduler: str | None) -> Iterator[Any]:
    import distributed

    if scheduler is None:
        with distributed.Client(
            n_workers=jobs, threads_per_worker=1, dashboard_address=None
        ) as client:
            yield client
            # Nothing is left to wait for, so that a worker stopped by force is no news.
            logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
        return
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ParamError(
            f"--scheduler {scheduler}: no dask scheduler answers ({type(error).__name__}); "
            "give its address, such as tcp://host:8786"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout="10s")
        except TimeoutError:
            raise ParamError(
                f"--scheduler {scheduler}: it has no workers; start some with `dask worker "
                f"{scheduler}`"
            ) from None
        yield client


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
