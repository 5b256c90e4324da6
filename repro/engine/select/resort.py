"""Full re-sort at every event: for keys that jump, or whose ties have history.

Public simulators keep one list that they sort in place, so that ties keep the order of the
previous event; a demoted job goes to the tail, running jobs may move ahead of waiting ones.
Replaying the same list operations is the only way to break ties as they do.
"""

from collections.abc import Callable, Iterable
from typing import Any

from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.policy import Ordering


class Resort:
    """One list of unfinished jobs, sorted stably and scanned at every event.

    ``partition``: after each event, running jobs move ahead of waiting ones of equal key.
    ``history_ties``: equal keys keep the order of the previous event. ``always_sorts``: even when
    no job waits, because later ties depend on it. ``drifts`` tells whether the key of a running job
    changes with time; None: of all.
    """

    def __init__(
        self,
        table: JobTable,
        ordering: Ordering,
        cluster: Cluster,
        *,
        partition: bool = False,
        history_ties: bool = False,
        always_sorts: bool = False,
        drifts: Callable[[int], bool] | None = None,
    ) -> None:
        self.table = table
        self.ordering = ordering
        self.capacity = cluster.num_gpus
        self.partition = partition
        self.history_ties = history_ties
        self.always_sorts = always_sorts
        self.drifts = drifts
        self._order: list[int] = []
        self._held: set[int] = set()
        self._drifting: set[int] = set()
        self._keys: dict[int, Any] = {}
        self._demand = 0
        self._moved = False

    @property
    def waits(self) -> bool:
        """Whether any job waits."""
        return len(self._order) > len(self._held)

    @property
    def running(self) -> Iterable[int]:
        """The jobs that hold GPUs, in the order of the list."""
        return [job for job in self._order if job in self._held]

    def arrive(self, job: int, now: float) -> None:
        """Append a new job."""
        self._order.append(job)
        self._read(job, now)
        self._demand += self.table.gpus[job]

    def finish(self, job: int) -> None:
        """Take a finished job out."""
        self._order.remove(job)
        self._held.discard(job)
        self._drifting.discard(job)
        del self._keys[job]
        self._demand -= self.table.gpus[job]

    def move(self, job: int, now: float) -> None:
        """Move a re-queued job to the tail."""
        self._order.remove(job)
        self._order.append(job)
        self._moved = True
        self._settle(job, now)

    def _read(self, job: int, now: float) -> None:
        """Read a key; unless ties have history they end with submission, then order in the file."""
        key = self.ordering.key(job, now)
        self._keys[job] = key if self.history_ties else (key, job)

    def _settle(self, job: int, now: float) -> None:
        """Read the key of a job whose state changed, and whether it will drift from now on."""
        self._read(job, now)
        if job in self._held and (self.drifts is None or self.drifts(job)):
            self._drifting.add(job)
        else:
            self._drifting.discard(job)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Sort, scan, and return who loses and who gets GPUs, in list order."""
        ordering = self.ordering
        held = self._held
        stops: list[int] = []
        if self._demand <= self.capacity and not self.always_sorts:
            starts = [job for job in self._order if job not in held] if self.waits else []
        else:
            for job in self._drifting:
                self._read(job, now)
            self._order.sort(key=self._keys.__getitem__)
            starts, stops = self._scan()
        for job in stops:
            held.discard(job)
            ordering.stop(job, now)
            self._settle(job, now)
        for job in starts:
            held.add(job)
            ordering.start(job, now)
            self._settle(job, now)
        if self.partition and (starts or stops or self._moved):
            self._moved = False
            # the next stable sort puts the classes in order again
            self._order = [job for job in self._order if job in held] + [
                job for job in self._order if job not in held
            ]
        return stops, starts

    def _scan(self) -> tuple[list[int], list[int]]:
        """Give every job in order its gang, or skip it; return (starts, stops)."""
        gpus = self.table.gpus
        held = self._held
        free = self.capacity
        starts: list[int] = []
        stops: list[int] = []
        kept = 0
        for job in self._order:
            width = gpus[job]
            if width <= free:
                free -= width
                if job in held:
                    kept += 1
                else:
                    starts.append(job)
            elif job in held:
                stops.append(job)
            elif not free and kept + len(stops) == len(held):
                break
        return starts, stops
