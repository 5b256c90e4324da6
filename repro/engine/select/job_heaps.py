"""Heaps of the jobs of one simulation, filled from keys in Python and searched in compiled code."""

from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Ints
from repro.engine.select import queues
from repro.model.jobs import JobTable
from repro.model.keys import bad_key, bad_slope

#: Initial number of heaps of running jobs; more are added when needed.
FIRST_RUNNING_HEAPS = 64


class JobHeaps:
    """Waiting jobs in a heap for each demand, running jobs in a heap for each slope of the key.

    Changes are collected in Python. They reach the heaps in one compiled call.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : str
        Name of the policy, for messages.
    """

    def __init__(self, table: JobTable, policy: str) -> None:
        self._table = table
        self._policy = policy
        self._gpus = np.array(table.gpus, dtype=np.int64)
        demands, demand_index = np.unique(self._gpus, return_inverse=True)
        #: heap of each job while it waits
        self._waiting_heap: list[int] = demand_index.tolist()
        self._num_waiting_heaps = len(demands)
        #: slope of the key (per second) -> heap of the running jobs with this slope
        self._running_heap: dict[float, int] = {}
        #: slope -> number of running jobs; slope of each running job
        self._num_running: dict[float, int] = {}
        self._slope_of: dict[int, float] = {}
        #: empty heaps for running jobs, and number of heaps for running jobs used so far
        self._free_heaps: list[int] = []
        self._num_running_heaps = 0
        #: the heaps, their buffers, and memory views of their keys and slopes; made with the first
        #: key
        self._heaps: queues.PairingHeaps
        self._buffers: queues.Buffers
        self._keys: Any
        self._slopes: Any
        #: length of a key; 0: not known yet
        self._key_length = 0
        #: jobs that change their heap, and their next heaps (-1: none)
        self._moved: list[int] = []
        self._next_heaps: list[int] = []

    @property
    def changed(self) -> bool:
        """Whether a change has not reached the heaps yet."""
        return bool(self._moved)

    def add_waiting(self, job: int, key: Any) -> None:
        """Move a job to the heap of waiting jobs of its demand."""
        self._leave(job)
        self._put(job, key, 0.0, 0.0, self._waiting_heap[job])

    def add_running(self, job: int, key: Any, slope: float, now: float) -> None:
        """Move a job to the heap of running jobs whose key changes by ``slope`` per second."""
        self._leave(job)
        heap = self._running_heap.get(slope)
        if heap is None:
            heap = self._running_heap[slope] = self._empty_heap()
        self._num_running[slope] = self._num_running.get(slope, 0) + 1
        self._slope_of[job] = slope
        self._put(job, key, slope, now, heap)

    def remove(self, job: int) -> None:
        """Remove a job from its heap."""
        self._leave(job)
        self._moved.append(job)
        self._next_heaps.append(-1)

    def best_waiting(self) -> list[int]:
        """Best waiting job of each demand, best first."""
        best: list[int] = queues.move_then_best_waiting(self._heaps, *self._changes()).tolist()
        return best

    def select(self, idle: int, now: float) -> tuple[int, list[int]]:
        """Idle GPUs after a selection, and its choices in order.

        A choice c >= 0 starts job c. A choice c < 0 stops job -1 - c.
        """
        jobs, heaps = self._changes()
        idle, count = queues.move_then_select(self._heaps, self._buffers, jobs, heaps, idle, now)
        choices: list[int] = self._buffers.choices[:count].tolist()
        return idle, choices

    def _empty_heap(self) -> int:
        """Empty heap for running jobs."""
        if self._free_heaps:
            return self._free_heaps.pop()
        heap = self._num_waiting_heaps + self._num_running_heaps
        self._num_running_heaps += 1
        # all heaps are in use: double their number
        if heap == len(self._heaps.top):
            top = np.append(self._heaps.top, np.full(heap, -1))
            self._heaps = self._heaps._replace(top=top)
        return heap

    def _leave(self, job: int) -> None:
        """Forget the slope of a job that leaves its heap, and keep an empty heap for reuse."""
        slope = self._slope_of.pop(job, None)
        if slope is None:
            return
        self._num_running[slope] -= 1
        if not self._num_running[slope]:
            # with a slope per job, the heaps would otherwise be as many as the jobs
            del self._num_running[slope]
            self._free_heaps.append(self._running_heap.pop(slope))

    def _changes(self) -> tuple[Ints, Ints]:
        """Jobs that change their heap, and their next heaps. Both lists are cleared."""
        changes = np.array(self._moved, np.int64), np.array(self._next_heaps, np.int64)
        self._moved.clear()
        self._next_heaps.clear()
        return changes

    def _bad_slope(self, job: int, slope: object) -> PolicyError:
        """Error of a slope that is no finite number."""
        return bad_slope(self._policy, self._table.ids[job], slope)

    def _put(self, job: int, key: Any, slope: float, now: float, heap: int) -> None:
        """Store the key that a job has now, and move the job to a heap."""
        numbers = key if isinstance(key, tuple) else (key,)
        if not self._key_length:
            self._key_length = len(numbers)
            self._heaps = queues.empty(
                self._gpus, self._key_length, self._num_waiting_heaps, FIRST_RUNNING_HEAPS
            )
            self._buffers = queues.buffers_for(self._heaps)
            columns: tuple[Any, Any] = self._heaps.key, self._heaps.slope
            self._keys = memoryview(columns[0])
            self._slopes = memoryview(columns[1])
        try:
            # the difference is NaN for inf and NaN, else 0
            if slope - slope:
                raise self._bad_slope(job, slope)
            self._slopes[job] = slope
        except (TypeError, ValueError, OverflowError):
            raise self._bad_slope(job, slope) from None
        try:
            if slope:
                numbers = (*numbers[:-1], numbers[-1] - slope * now)
            for column, value in enumerate(numbers):
                self._keys[job, column] = value
                if value != value:
                    raise bad_key(self._policy, self._table.ids[job], key)
        except (TypeError, ValueError, IndexError):
            numbers = ()
        is_valid = bool(numbers) and len(numbers) == self._key_length
        if not is_valid:
            raise bad_key(self._policy, self._table.ids[job], key)
        self._moved.append(job)
        self._next_heaps.append(heap)
