"""Notebooks in parallel, each in a kernel of its own, here or on dask workers."""

import contextlib
import itertools
import logging
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import joblib

from repro.batch.kernel import execute, execute_on_worker
from repro.batch.task import FAILED, Begun, Outcome, Task, Watch
from repro.errors import ParamError

_TELL_EVERY_S = 10.0


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None,
    backend: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Outcome]:
    """Execute so many notebooks at a time, yielding each outcome as it comes.

    With the backend ``dask``, None as ``jobs`` is one per thread of the workers. Five times a
    second ``watch`` is given what runs; without it, lines of points are printed.
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
    """Yield outcomes of kernels that this process starts."""

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
    """Connect to a scheduler that has workers, or to a cluster made for the while."""
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
