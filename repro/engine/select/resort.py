"""Selection by a full sort at every event.

It serves keys that do not change linearly with time, and ties that keep the previous order. The
list, its sort and its scan are compiled (`repro.engine.select.kept_list`).

Public simulators sort one list in place, so that ties keep the order of the previous event. A
demoted job goes to the end of the list. Running jobs may move ahead of waiting jobs. Only the same
operations on the same list break ties in the same way.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from repro.engine.policy_answers import check_keys
from repro.engine.select import kept_list
from repro.engine.select.kept_list import KeptList
from repro.model.cluster.spec import Cluster
from repro.model.jobs import JobTable
from repro.model.keys import bad_key
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
    running_first : bool
        After each event with a change, running jobs move ahead of waiting jobs. The next stable
        sort keeps them ahead only at equal keys.
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
        running_first: bool = False,
        history_ties: bool = False,
        always_sorts: bool = False,
        drifts: Callable[[int], bool] | None = None,
    ) -> None:
        self.table = table
        self.ordering = ordering
        self.capacity = cluster.num_gpus
        self.running_first = running_first
        self.history_ties = history_ties
        self.always_sorts = always_sorts
        self.drifts = drifts
        #: the list, and memory views of two of its columns; made with the first key
        self._list: KeptList
        self._keys: Any
        self._holds: Any
        #: length of a key of the policy, which is one number or a tuple; 0: not known yet
        self._key_length = 0
        #: entries of the list, void entries included
        self._length = 0
        #: numbers of unfinished jobs, and of jobs that hold GPUs
        self._count = 0
        self._holders = 0
        #: (jobs,): jobs that hold GPUs and whose key changes with time
        self._drifting = np.zeros(table.count, np.bool_)
        #: total demand of the unfinished jobs (GPUs)
        self._demand = 0
        #: whether a job was moved to the end of the list since the last event
        self._moved = False

    @property
    def waits(self) -> bool:
        """Whether a job waits."""
        return self._count > self._holders

    @property
    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, in the order of the list."""
        if not self._holders:
            return []
        self._length = kept_list.drop_void(self._list, self._length)
        listed = self._list.entries[: self._length]
        holders: list[int] = listed[self._list.holds[listed]].tolist()
        return holders

    def arrive(self, job: int, now: float) -> None:
        """Append a new job."""
        self._read(job, now)
        self._append(job)
        self._count += 1
        self._demand += self.table.gpus[job]

    def finish(self, job: int) -> None:
        """Remove a finished job."""
        self._list.position[job] = -1
        self._holders -= self._holds[job]
        self._holds[job] = False
        self._drifting[job] = False
        self._count -= 1
        self._demand -= self.table.gpus[job]

    def move(self, job: int, now: float) -> None:
        """Move a demoted or promoted job to the end of the list."""
        self._append(job)
        self._moved = True
        self._update(job, now)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Sort and scan the list; return the jobs that stop and the jobs that start."""
        sorts = self.always_sorts or self._demand > self.capacity
        if not self._count or not (sorts or self.waits or self._moved):
            return [], []
        if sorts:
            self._read_drifting(now)
        stops, starts = self._choose(sorts)
        self._moved = False
        self._holders += len(starts) - len(stops)
        ordering = self.ordering
        for job in stops:
            ordering.stop(job, now)
            self._update(job, now)
        for job in starts:
            ordering.start(job, now)
            self._update(job, now)
        return stops, starts

    def _choose(self, sorts: bool) -> tuple[list[int], list[int]]:
        """Choose the stops and starts in list order; jobs that do not fit are skipped."""
        self._length, num_stops, num_starts = kept_list.select(
            self._list,
            self._length,
            self.capacity,
            self._holders,
            sorts,
            self.running_first,
            self._moved,
        )
        return self._list.stops[:num_stops].tolist(), self._list.starts[:num_starts].tolist()

    def _append(self, job: int) -> None:
        """Add a job at the end of the list; its earlier entry becomes void."""
        if self._length == len(self._list.entries):
            self._length = kept_list.drop_void(self._list, self._length)
        self._list.entries[self._length] = job
        self._list.position[job] = self._length
        self._length += 1

    def _read(self, job: int, now: float) -> None:
        """Store the key that a job has now."""
        key = self.ordering.key(job, now)
        numbers = key if isinstance(key, tuple) else (key,)
        if not self._key_length:
            self._make_list(len(numbers))
        try:
            for column, value in enumerate(numbers):
                self._keys[job, column] = value
                if value != value:
                    raise bad_key(self.ordering.policy.name, self.table.ids[job], key)
        except (TypeError, ValueError, IndexError):
            numbers = ()
        if not numbers or len(numbers) != self._key_length:
            raise bad_key(self.ordering.policy.name, self.table.ids[job], key)

    def _make_list(self, key_length: int) -> None:
        """Make the list for keys of a length. Without ``history_ties`` row numbers break ties."""
        self._key_length = key_length
        gpus = np.array(self.table.gpus, dtype=np.int64)
        self._list = kept_list.empty(gpus, key_length + (not self.history_ties))
        if not self.history_ties:
            self._list.key[:, key_length] = np.arange(len(gpus))
        columns: tuple[Any, Any] = self._list.key, self._list.holds
        self._keys = memoryview(columns[0])
        self._holds = memoryview(columns[1])

    def _read_drifting(self, now: float) -> None:
        """Read the keys that change with time, all at once if the ordering can."""
        listed = self._list.entries[: self._length]
        jobs = listed[self._drifting[listed]]
        if not len(jobs):
            return
        keys = self.ordering.keys(jobs, now)
        if keys is None:
            for job in jobs.tolist():
                self._read(job, now)
            return
        check_keys(self.ordering, keys, len(jobs), self._key_length)
        numbers = keys.reshape(len(jobs), self._key_length)
        is_nan = np.isnan(numbers)
        if is_nan.any():
            bad = int(np.argmax(is_nan.any(axis=1)))
            row = numbers[bad].tolist()
            key = row[0] if self._key_length == 1 else tuple(row)
            raise bad_key(self.ordering.policy.name, self.table.ids[jobs[bad]], key)
        self._list.key[jobs, : self._key_length] = numbers

    def _update(self, job: int, now: float) -> None:
        """Read the key of a job that started, stopped or moved. Note whether it now drifts."""
        self._read(job, now)
        self._drifting[job] = self._holds[job] and (self.drifts is None or self.drifts(job))
