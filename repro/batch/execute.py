"""Runs notebooks in parallel, each in its own kernel, on this machine or on dask workers."""

import contextlib
import dataclasses
import itertools
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import joblib

from repro.base.errors import ParamError, ReproError
from repro.base.extras import needed_for
from repro.base.interpreted import ENV_SECONDS
from repro.batch.kernel import execute
from repro.batch.on_worker import Returned, execute_on_worker, own_files, write_returned
from repro.batch.task import FAILED, Outcome, StartTimes, Task, Watch
from repro.figures import remote
from repro.files.whole import write_whole

_REPORT_EVERY_S = 10.0
#: A batch of this many notebooks or more needs nearly all loops compiled.
_MANY_NOTEBOOKS = 20
#: Time for which such a batch interprets each loop before it is compiled.
_BRIEF_S = 0.3
#: Result of a notebook: its outcome. A notebook that ran on a dask worker also returns its files.
Work = Outcome | Returned
#: Function that starts a notebook.
Submit = Callable[[Task], Future[Work]]
#: Function that gives the lines on lost workers since its last call.
News = Callable[[], list[str]]


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None,
    backend: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
    announce: Callable[[str], None] = print,
) -> Iterator[Outcome]:
    """Execute ``jobs`` notebooks at a time; yield each outcome as its notebook ends.

    With ``jobs`` None there is one notebook per CPU, on the backend ``dask`` one per thread of the
    workers. A notebook whose dask worker dies begins again on another worker. ``watch`` gets the
    running figures five times a second. Without ``watch``, lines of progress are printed.
    ``announce`` prints a line on a lost worker.
    """
    started_at: StartTimes = {}
    running: dict[Future[Work], Task] = {}
    waiting = iter(tasks)
    progress = progress_lines(tasks)
    with _pool(tasks, jobs, backend, scheduler) as (submit, slots, news):
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
                running[submit(limited_task)] = task
            for line in news():
                announce(line)
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
                    result = future.result()
                    outcome = (
                        result if isinstance(result, Outcome) else write_returned(task, result)
                    )
                # A full disk, or a folder that is read-only.
                except ReproError as error:
                    outcome = Outcome(task.id, FAILED, error=str(error))
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
    tasks: Sequence[Task], jobs: int | None, backend: str, scheduler: str | None
) -> Iterator[tuple[Submit, int, News]]:
    """Yield the function that starts a notebook, the number of notebooks at a time, and the news.

    An interrupted batch ends at once: threads and workers end with this process.
    """
    if backend == "local":
        # Each notebook has a kernel process of its own, so threads are enough here.
        slots = jobs or joblib.cpu_count()
        threads = ThreadPoolExecutor(slots)

        def start(task: Task) -> Future[Work]:
            return threads.submit(_executed_here, task)

        yield start, slots, list
        return
    with needed_for("--backend dask"):
        import distributed
    files = own_files(tasks)
    if scheduler is None:
        client = distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    else:
        client = _connected(scheduler)
        _refuse_other_releases(client)
    slots = jobs or sum(client.ncores().values())
    with remote.opened_session(client, files) as session:
        events = _Events(client, session, tasks)
        client.subscribe_topic("all", events.on_cluster)
        client.subscribe_topic(session.name, events.on_notebook)
        pool = client.get_executor(pure=False)

        def submit(task: Task) -> Future[Work]:
            name = session.key("notebook", task.id)
            future: Future[Work] = pool.submit(execute_on_worker, task, session, key=name)
            future.add_done_callback(lambda _: events.release(task))
            return future

        yield submit, slots, events.lines
    # All notebooks have ended, so a warning about a worker stopped by force would mislead.
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    client.close()


def _executed_here(task: Task) -> Work:
    """Run a notebook on this machine."""
    return execute(task)


class _Events:
    """What the scheduler and the notebooks of a session report."""

    def __init__(self, client: Any, session: remote.Session, tasks: Collection[Task]) -> None:
        self._client = client
        self._session = session
        self._progress_files = {task.progress_file.name: task.progress_file for task in tasks}
        self._lines: list[str] = []
        #: outcomes of the simulations of running notebooks, by name of the progress file
        self._held: dict[str, list[Any]] = {}

    def on_cluster(self, event: tuple[float, Any]) -> None:
        """Note a worker that was lost."""
        message = event[1]
        if isinstance(message, dict) and (line := remote.loss_line(self._session, message)):
            self._lines.append(line)

    def on_notebook(self, event: tuple[float, Any]) -> None:
        """Write the progress of a notebook, and hold the outcomes of its simulations.

        If the notebook's worker is lost, the notebook begins again and finds them.
        """
        import distributed

        message = event[1]
        name = message.get("notebook")
        if name not in self._progress_files:
            return
        if "progress" in message:
            with contextlib.suppress(ReproError):
                write_whole(self._progress_files[name], message["progress"].encode(), parents=False)
        keys = message.get("hold", ())
        futures = [distributed.Future(key, client=self._client) for key in keys]
        self._held.setdefault(name, []).extend(futures)

    def release(self, task: Task) -> None:
        """Let the cluster forget the outcomes of a notebook that has ended."""
        self._held.pop(task.progress_file.name, None)

    def lines(self) -> list[str]:
        """Lines on lost workers since the last call."""
        lines = self._lines
        self._lines = []
        return lines


def _refuse_other_releases(client: Any) -> None:
    """Refuse workers with other code or libraries than this client, whose numbers may differ."""
    here = remote.release()
    for address, worker_release in client.run(remote.release, on_error="return").items():
        is_release = isinstance(worker_release, Mapping)
        fault = (
            remote.release_fault(worker_release, here)
            if is_release
            else f"{worker_release}".splitlines()[0]
        )
        if fault:
            client.close()
            raise ParamError(
                f"worker {address}: {fault}; install the same repro and constraints.txt there, "
                "and start it again"
            )


def _connected(scheduler: str) -> Any:
    """Client of a scheduler that has workers."""
    client = remote.connected(scheduler, f"--scheduler {scheduler}")
    try:
        client.wait_for_workers(1, timeout="10s")
    except TimeoutError:
        client.close()
        raise ParamError(
            f"--scheduler {scheduler}: it has no workers; start some with `dask worker {scheduler}`"
        ) from None
    return client
