"""Selection by a full sort at every event.

It serves keys that do not change linearly with time, and ties that keep the previous order.

Public simulators sort one list in place, so that ties keep the order of the previous event. A
demoted job goes to the end of the list. Running jobs may move ahead of waiting jobs. Only the same
operations on the same list break ties in the same way.
"""

from collections.abc import Callable, Iterable
from typing import Any

from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.policy import Ordering


class Resort:
    """Selection from one list of unfinished jobs, sorted stably and scanned at every event.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    ordering : Ordering
        Keys of the jobs.
    cluster : Cluster
        Cluster of the simulation.
    partition : bool
        After each event, running jobs move ahead of waiting jobs of equal key.
    history_ties : bool
        Jobs of equal key keep the order of the previous event. Otherwise the earlier submission
        comes first, then the earlier row of the trace.
    always_sorts : bool
        Sort even if all unfinished jobs fit the cluster, because later ties depend on the order.
    drifts : callable, optional
        Whether the key of a job changes with time while it runs; None: all keys do.
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
        #: unfinished jobs, in the order of the last sort
        self._order: list[int] = []
        #: jobs that hold GPUs, and among them the jobs whose key changes with time
        self._holders: set[int] = set()
        self._drifting: set[int] = set()
        self._keys: dict[int, Any] = {}
        #: total demand of the unfinished jobs (GPUs)
        self._demand = 0
        #: whether a job was moved to the end of the list since the last event
        self._moved = False

    @property
    def waits(self) -> bool:
        """Whether a job waits."""
        return len(self._order) > len(self._holders)

    @property
    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, in the order of the list."""
        return [job for job in self._order if job in self._holders]

    def arrive(self, job: int, now: float) -> None:
        """Append a new job."""
        self._order.append(job)
        self._read(job, now)
        self._demand += self.table.gpus[job]

    def finish(self, job: int) -> None:
        """Remove a finished job."""
        self._order.remove(job)
        self._holders.discard(job)
        self._drifting.discard(job)
        del self._keys[job]
        self._demand -= self.table.gpus[job]

    def move(self, job: int, now: float) -> None:
        """Move a demoted or promoted job to the end of the list."""
        self._order.remove(job)
        self._order.append(job)
        self._moved = True
        self._update(job, now)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Sort and scan the list; return the jobs that stop and the jobs that start."""
        ordering = self.ordering
        holders = self._holders
        stops: list[int] = []
        if self._demand <= self.capacity and not self.always_sorts:
            starts = [job for job in self._order if job not in holders] if self.waits else []
        else:
            for job in self._drifting:
                self._read(job, now)
            self._order.sort(key=self._keys.__getitem__)
            stops, starts = self._scan()
        for job in stops:
            holders.discard(job)
            ordering.stop(job, now)
            self._update(job, now)
        for job in starts:
            holders.add(job)
            ordering.start(job, now)
            self._update(job, now)
        if self.partition and (starts or stops or self._moved):
            self._moved = False
            running = [job for job in self._order if job in holders]
            waiting = [job for job in self._order if job not in holders]
            # the next stable sort restores the order of unequal keys
            self._order = running + waiting
        return stops, starts

    def _scan(self) -> tuple[list[int], list[int]]:
        """List the stops and starts of a scan in list order; jobs that do not fit are skipped."""
        gpus = self.table.gpus
        holders = self._holders
        free = self.capacity
        starts: list[int] = []
        stops: list[int] = []
        kept = 0
        for job in self._order:
            demand = gpus[job]
            if demand <= free:
                free -= demand
                if job in holders:
                    kept += 1
                else:
                    starts.append(job)
            elif job in holders:
                stops.append(job)
            # no GPU is idle and all jobs that hold GPUs have been scanned
            elif not free and kept + len(stops) == len(holders):
                break
        return stops, starts

    def _read(self, job: int, now: float) -> None:
        """Read the key of a job. Without ``history_ties`` the row number breaks ties."""
        key = self.ordering.key(job, now)
        self._keys[job] = key if self.history_ties else (key, job)

    def _update(self, job: int, now: float) -> None:
        """Read the key of a job that started, stopped or moved, and whether the key now changes."""
        self._read(job, now)
        if job in self._holders and (self.drifts is None or self.drifts(job)):
            self._drifting.add(job)
        else:
            self._drifting.discard(job)
