"""Full re-sort at every event: for keys that jump, or whose ties have history.

Public simulators keep one list that they sort in place, so that ties keep the order of the
previous event; a demoted job goes to the tail, running jobs may move ahead of waiting ones.
Replaying the same list operations is the only way to break ties as they do.
"""

from __future__ import annotations

from repro.policies.base import Ordering
from repro.sim.jobs import JobTable


class Resort:
    """One list of unfinished jobs, sorted stably and scanned at every event.

    Parameters
    ----------
    table : JobTable
        Job state, read only.
    ordering : Ordering
        Keys, re-queueing and partition rule.
    capacity : int
        GPUs of the cluster.
    """

    def __init__(self, table: JobTable, ordering: Ordering, capacity: int) -> None:
        self.table, self.ordering, self.capacity = table, ordering, capacity
        self._order: list[int] = []
        self._held: set[int] = set()

    @property
    def waits(self) -> bool:
        """Whether any job waits."""
        return len(self._order) > len(self._held)

    def arrive(self, job: int, now: float) -> None:
        """Append a new job."""
        self._order.append(job)

    def finish(self, job: int) -> None:
        """Take a finished job out."""
        self._order.remove(job)
        self._held.discard(job)

    def move(self, job: int, now: float) -> None:
        """Move a re-queued job to the tail."""
        self._order.remove(job)
        self._order.append(job)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Sort, scan, and return who loses and who gets GPUs, in list order."""
        ordering, gpus, held = self.ordering, self.table.gpus, self._held
        keys = {job: ordering.key(job, now) for job in self._order}
        self._order.sort(key=keys.__getitem__)
        free = self.capacity
        stops: list[int] = []
        starts: list[int] = []
        for job in self._order:
            width = gpus[job]
            if width <= free:
                free -= width
                if job not in held:
                    starts.append(job)
            elif job in held:
                stops.append(job)
        for job in stops:
            held.discard(job)
            ordering.stop(job, now)
        for job in starts:
            held.add(job)
            ordering.start(job, now)
        if ordering.partition:
            group = ordering.group
            self._order.sort(key=lambda job: (group(job), job not in held))
        return stops, starts
