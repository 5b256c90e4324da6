"""Notebooks in parallel, each in a kernel of its own, here or on dask workers."""

import contextlib
import dataclasses
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import joblib

from repro.base.errors import ParamError
from repro.batch.kernel import execute, execute_on_worker
from repro.batch.task import FAILED, Begun, Outcome, Task, Watch

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

    With the backend ``dask``, None as ``jobs`` is one per thread of the workers, and a notebook
    whose worker dies begins again on another. Five times a second ``watch`` is given what runs;
    without it, lines of points are printed.
    """
    begun: Begun = {}
    running: dict[Future[Outcome], Task] = {}
    waiting = iter(tasks)
    news = points_news(tasks)
    with _pool(jobs, backend, scheduler) as (pool, work, places):
        # Starting a process for simulations takes longer than most of them, and every one compiles
        # for itself: notebooks side by side share the CPUs.
        cpus = max(1, joblib.cpu_count() // max(1, min(places, len(tasks))))
        while True:
            # A notebook leaves its dask worker's thread to simulations, so dask itself would begin
            # them all at once.
            for task in itertools.islice(waiting, places - len(running)):
                begun[task] = time.monotonic()
                running[pool.submit(work, dataclasses.replace(task, cpus=cpus))] = task
            if not running:
                return
            if watch is not None:
                watch(dict(begun))
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for line in next(news) if watch is None and not done else ():
                print(line, flush=True)
            for future in done:
                task = running.pop(future)
                del begun[task]
                try:
                    outcome = future.result()
                # Whatever dask or a worker without this package raises fails this figure alone.
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}".splitlines()[0]
                    outcome = Outcome(task.id, FAILED, error=f"no worker could run it: {reason}")
                yield outcome


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


@contextlib.contextmanager
def _pool(
    jobs: int | None, backend: str, scheduler: str | None
) -> Iterator[tuple[Executor, Callable[[Task], Outcome], int]]:
    """Give what runs notebooks, the function that runs one, and how many run at a time.

    Whoever interrupts a batch waits for nothing: threads and workers end with this process.
    """
    if backend == "local":
        # Each notebook has a kernel process of its own, so threads are enough here.
        places = jobs or os.cpu_count() or 1
        yield ThreadPoolExecutor(places), execute, places
        return
    try:
        import distributed
    except ImportError:
        raise ParamError(
            "--backend dask needs dask; in the folder of the checkout: "
            f'{sys.executable} -m pip install -e ".[dask]"'
        ) from None
    if scheduler is None:
        client = distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    else:
        client = _connected(distributed, scheduler)
    places = jobs or sum(client.ncores().values())
    yield client.get_executor(pure=False), execute_on_worker, places
    # Nothing is left to wait for, so that a worker stopped by force is no news.
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    client.close()


def _connected(distributed: Any, scheduler: str) -> Any:
    """Return the client of a scheduler that has workers."""
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ParamError(
            f"--scheduler {scheduler}: no dask scheduler answers ({type(error).__name__}); "
            "give its address, such as tcp://host:8786"
        ) from None
    try:
        client.wait_for_workers(1, timeout="10s")
    except TimeoutError:
        client.close()
        raise ParamError(
            f"--scheduler {scheduler}: it has no workers; start some with `dask worker {scheduler}`"
        ) from None
    return client
