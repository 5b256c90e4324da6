"""Selection by nodes: at every event the empty cluster is refilled by first fit, best key first."""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace, merge
from typing import Any

from sortedcontainers import SortedList

from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.policy import Ordering
from repro.placement.first_fit import FirstFit

Entry = tuple[Any, int]


class Refill:
    """Waiting jobs by width, refilled together with the running ones at every event.

    A width that found no place finds none later in the same scan, so a scan looks at the jobs it
    takes and at one more per width, however many wait. Waiting keys stand still; running ones are
    read anew.
    """

    def __init__(self, table: JobTable, ordering: Ordering, cluster: Cluster) -> None:
        self.table = table
        self.ordering = ordering
        self.nodes = FirstFit(cluster)
        self._waiting: dict[int, SortedList[Entry]] = {}
        self._key: dict[int, Any] = {}
        self._held: dict[int, None] = {}

    @property
    def waits(self) -> bool:
        """Whether any job waits."""
        return bool(self._key)

    @property
    def running(self) -> Iterable[int]:
        """The jobs that hold GPUs, best first."""
        return self._held

    def arrive(self, job: int, now: float) -> None:
        """Add a job to those that wait."""
        key = self._key[job] = self.ordering.key(job, now)
        width = self.table.gpus[job]
        if width not in self._waiting:
            self._waiting[width] = SortedList()
        self._waiting[width].add((key, job))

    def finish(self, job: int) -> None:
        """Take a finished job out."""
        del self._held[job]

    def move(self, job: int, now: float) -> None:
        """Read the key of a re-queued job again."""
        if job in self._key:
            self._dequeue(job)
            self.arrive(job, now)

    def _dequeue(self, job: int) -> None:
        self._waiting[self.table.gpus[job]].remove((self._key.pop(job), job))

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Refill the cluster, and return who loses and who gets GPUs, best key first."""
        chosen = self._scan(now)
        starts = [job for job in chosen if job not in self._held]
        stops = [job for job in self._held if job not in chosen]
        for job in stops:
            self.ordering.stop(job, now)
            self.arrive(job, now)
        for job in starts:
            self.ordering.start(job, now)
            self._dequeue(job)
        self._held = chosen
        return stops, starts

    def _scan(self, now: float) -> dict[int, None]:
        key = self.ordering.key
        gpus = self.table.gpus
        nodes = self.nodes
        running: dict[int, list[Entry]] = {}
        for job in self._held:
            running.setdefault(gpus[job], []).append((key(job, now), job))
        queues: list[Iterator[Entry]] = [
            merge(sorted(running.get(width, ())), self._waiting.get(width, ()))
            for width in running.keys() | self._waiting.keys()
        ]
        order = [
            (entry, number)
            for number, queue in enumerate(queues)
            if (entry := next(queue, None)) is not None
        ]
        heapify(order)
        nodes.clear()
        chosen: dict[int, None] = {}
        while order and nodes.free:
            (_, job), number = order[0]
            if not nodes.take(gpus[job]):
                heappop(order)
                continue
            chosen[job] = None
            following = next(queues[number], None)
            if following is None:
                heappop(order)
            else:
                heapreplace(order, (following, number))
        return chosen
