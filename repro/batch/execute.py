"""Runs notebooks in parallel, each in its own kernel, on this machine or on dask workers."""

import contextlib
import dataclasses
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import joblib

from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.base.interpreted import ENV_SECONDS
from repro.batch.kernel import execute, execute_on_worker
from repro.batch.task import FAILED, Outcome, StartTimes, Task, Watch

_REPORT_EVERY_S = 10.0
#: A batch of this many notebooks or more needs nearly all loops compiled.
_MANY_NOTEBOOKS = 20
#: Time for which such a batch interprets each loop before it is compiled.
_BRIEF_S = 0.3


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None,
    backend: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Iterator[Outcome]:
    """Execute ``jobs`` notebooks at a time; yield each outcome as its notebook ends.

    With ``jobs`` None there is one notebook per CPU, on the backend ``dask`` one per thread of the
    workers. A notebook whose dask worker dies begins again on another worker. ``watch`` gets the
    running figures five times a second. Without ``watch``, lines of progress are printed.
    """
    started_at: StartTimes = {}
    running: dict[Future[Outcome], Task] = {}
    waiting = iter(tasks)
    progress = progress_lines(tasks)
    with _pool(jobs, backend, scheduler) as (pool, execute_task, slots):
        # Notebooks divide the CPUs among their simulation processes. More processes would not pay:
        # a start takes longer than most simulations, and each process compiles for itself.
        cpus = max(1, joblib.cpu_count() // max(1, min(slots, len(tasks))))
        python_s = _seconds_of_interpretation(len(tasks))
        while True:
            # On dask a notebook gives its thread back to the worker (`execute_on_worker`), so that
            # simulations can run there. Dask takes such a worker for idle. Without the limit
            # ``slots`` it would begin all notebooks at once.
            for task in itertools.islice(waiting, slots - len(running)):
                started_at[task] = time.monotonic()
                limited_task = dataclasses.replace(task, cpus=cpus, python_s=python_s)
                running[pool.submit(execute_task, limited_task)] = task
            if not running:
                return
            if watch is not None:
                watch(dict(started_at))
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            if watch is None and not done:
                for line in next(progress):
                    print(line, flush=True)
            for future in done:
                task = running.pop(future)
                del started_at[task]
                try:
                    outcome = future.result()
                # An error of dask, or of a worker without this package, fails this figure alone.
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}".splitlines()[0]
                    outcome = Outcome(task.id, FAILED, error=f"no worker could run it: {reason}")
                yield outcome


def _seconds_of_interpretation(num_notebooks: int) -> float | None:
    """Seconds for which a batch interprets each loop; None for the default or the user's value."""
    is_set_by_user = ENV_SECONDS in os.environ
    return _BRIEF_S if num_notebooks >= _MANY_NOTEBOOKS and not is_set_by_user else None


def progress_lines(tasks: Sequence[Task], every_s: float = _REPORT_EVERY_S) -> Iterator[list[str]]:
    """Yield lines on the progress of notebooks, at most one per notebook in ``every_s`` seconds."""
    reported = {task.id: (time.monotonic(), "") for task in tasks}
    while True:
        lines = []
        for task in tasks:
            reported_s, reported_done = reported[task.id]
            if time.monotonic() - reported_s < every_s:
                continue
            done = task.simulations_done()
            if done not in ("", reported_done):
                reported[task.id] = (time.monotonic(), done)
                lines.append(f"{task.id} {done} simulations")
        yield lines


@contextlib.contextmanager
def _pool(
    jobs: int | None, backend: str, scheduler: str | None
) -> Iterator[tuple[Executor, Callable[[Task], Outcome], int]]:
    """Yield an executor, its function for a notebook, and the number of notebooks at a time.

    An interrupted batch ends at once: threads and workers end with this process.
    """
    if backend == "local":
        # Each notebook has a kernel process of its own, so threads are enough here.
        slots = jobs or os.cpu_count() or 1
        yield ThreadPoolExecutor(slots), execute, slots
        return
    with needed_for("--backend dask"):
        import distributed
    if scheduler is None:
        client = distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    else:
        client = _connected(distributed, scheduler)
    slots = jobs or sum(client.ncores().values())
    yield client.get_executor(pure=False), execute_on_worker, slots
    # All notebooks have ended, so a warning about a worker stopped by force would mislead.
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    client.close()


def _connected(distributed: Any, scheduler: str) -> Any:
    """Client of a scheduler that has workers."""
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
