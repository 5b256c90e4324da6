"""Workers that stay for the next measurement, as far as they fit into the memory of the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from repro.measure.job_types import JobType
from repro.measure.parts import STAGES
from repro.measure.session import Session
from repro.measure.worker import CONTEXT, Worker

#: Fraction of the memory of the GPU that workers may hold.
_FRACTION = 0.6
#: Memory of a CUDA context (MiB), which the allocator does not count.
_CONTEXT_MB = 600.0
#: Workers on a device without a known size of memory.
_MOST_WITHOUT_MEMORY = 2


class Crew:
    """Launched workers by job type; a context manager that ends all their processes.

    Workers share one lock for each resource.

    Parameters
    ----------
    session : Session
        Configurations and memory of the device.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._locks = {stage: CONTEXT.Lock() for stage in STAGES}
        #: (job type, number among workers of this type) -> worker; the last one was used last
        self._workers: dict[tuple[str, int], Worker] = {}
        self._memory_mb: dict[tuple[str, int], float] = {}

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.dismiss()

    def ready_workers(self, jobs: Sequence[JobType]) -> list[Worker]:
        """Ready workers of these jobs; two of the same job type are two workers."""
        seen: Counter[str] = Counter()
        keys: list[tuple[str, int]] = []
        for job in jobs:
            keys.append((job.name, seen[job.name]))
            seen[job.name] += 1
        for key, job in zip(keys, jobs, strict=True):
            if key in self._workers:
                self._workers[key] = self._workers.pop(key)
                continue
            self._make_room(keys)
            worker = Worker(self._session.configuration(job), locks=self._locks)
            self._workers[key] = worker
            worker.start()
            worker.wait_until_ready()
            self._memory_mb[key] = worker.ask("facts")["reserved_mb"] + _CONTEXT_MB
        return [self._workers[key] for key in keys]

    def dismiss(self) -> None:
        """End all workers."""
        for key in list(self._workers):
            self._end(key)

    def _make_room(self, needed: Sequence[tuple[str, int]]) -> None:
        """End the least recently used workers until a new one has room."""
        for key in [key for key in self._workers if key not in needed]:
            if self._has_room():
                return
            self._end(key)

    def _has_room(self) -> bool:
        """Whether the device has memory for one more worker as large as the largest."""
        total_mb = self._session.machine.memory_mb
        if total_mb is None:
            return len(self._workers) < _MOST_WITHOUT_MEMORY
        held = list(self._memory_mb.values())
        return sum(held) + max(held, default=0.0) <= _FRACTION * total_mb

    def _end(self, key: tuple[str, int]) -> None:
        """End a worker."""
        self._workers.pop(key).stop()
        self._memory_mb.pop(key, None)
