"""From a policy that only ranks jobs to starts and stops, event by event."""

import math
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Ints
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.policy import Order, Ordering, Selection, Steady, speaks_for
from repro.model.view import View
from repro.placement.base import Placer

#: Methods that a class with numbers of its own for the keys (`Order.steady`) answers for.
_KEYS = ("key", "slope", "ordering", "quantum_s")


class RankedDriver:
    """Drives an `Order` through its selection; the engine asks the same of a `DecidedDriver`."""

    rounds: None = None

    def __init__(
        self,
        table: JobTable,
        policy: Order,
        view: View,
        placer: Placer,
        take: Callable[[int], None],
    ) -> None:
        self.table = table
        self.ordering = policy.ordering(view)
        self.quantum = policy.quantum_s()
        special = self.ordering.selection
        #: the numbers all keys follow, where compiled loops can simulate the whole run by them
        self.steady: Steady | None = None
        if special is None and policy.preemptive and speaks_for(policy, "steady", _KEYS):
            self.steady = policy.steady(view)
        self.selection: Selection = (
            special(table, self.ordering, view.cluster)
            if special is not None
            else Backlog(table, self.ordering, placer, take, view.cluster.num_gpus)
        )

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""
        return self.selection.waits

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""
        self.ordering.arrive(job, now)
        self.selection.arrive(job, now)

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""
        self.selection.finish(job)
        self.ordering.finish(job, now)

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Return the jobs that lose GPUs and the runs that get them, after re-queueing."""
        for job in self.ordering.moves(now):
            self.selection.move(job, now)
        stops, starts = self.selection.select(now)
        gpus = self.table.gpus
        return stops, [Run((job,), gpus[job]) for job in starts]

    def rate_changed(self, job: int, now: float) -> None:
        """React to a job that runs at another rate than nominal, or whose remaining work jumped."""
        # the other selections read all keys anew anyway
        if isinstance(self.selection, Backlog):
            self.selection.move(job, now)

    def running(self) -> Iterable[int]:
        """Return the jobs that hold GPUs, best first where the whole list was walked."""
        return self.selection.running

    def wake(self, now: float) -> float:
        """Return the next demotion, promotion or end of a quantum."""
        wake = self.ordering.wake(now)
        if self.quantum < math.inf and self.selection.waits:
            wake = min(wake, (math.floor(now / self.quantum + 1e-9) + 1) * self.quantum)
        return wake


class Backlog:
    """Waiting jobs by width, running jobs by the drift of their key, in compiled heaps (`queues`).

    ``take`` places a job that has just been found to fit, so that the next one sees it placed.
    """

    def __init__(
        self,
        table: JobTable,
        ordering: Ordering,
        placer: Placer,
        take: Callable[[int], None],
        capacity: int,
    ) -> None:
        from repro.engine.select import queues

        self.table = table
        self.ordering = ordering
        self.placer = placer
        self.take = take
        self.preemptive = ordering.policy.preemptive
        self.blocking = ordering.policy.blocking
        self.idle = capacity
        self._queues = queues
        self._gpus = np.array(table.gpus, dtype=np.int64)
        widths, width = np.unique(self._gpus, return_inverse=True)
        self._width: list[int] = width.tolist()
        self._widths = len(widths)
        #: the heaps and their columns, made when the first key tells how many parts keys have
        self._q: queues.Queues
        self._keys: Any
        self._slopes: Any
        self._parts = 0
        #: drift of the key -> heap of the running jobs that have it
        self._lanes: dict[float, int] = {}
        self._waiting: set[int] = set()
        self._running: dict[int, None] = {}
        #: jobs whose heap changes, and to which
        self._moved: list[int] = []
        self._heaps: list[int] = []
        #: the best waiting job of each width, best first, when heaps last changed
        self._front: list[int] = []
        #: (instant, job): running jobs that progress only from then on
        self._loading: list[tuple[float, int]] = []

    @property
    def waits(self) -> bool:
        """Whether any job waits."""
        return bool(self._waiting)

    @property
    def running(self) -> Iterable[int]:
        """The jobs that hold GPUs, in no order."""
        return self._running

    def arrive(self, job: int, now: float) -> None:
        """Add a job to those that wait."""
        self._waiting.add(job)
        self._file(job, now, 0.0, self._width[job])

    def finish(self, job: int) -> None:
        """Take a finished job out."""
        del self._running[job]
        self.idle += self.table.gpus[job]
        if self.preemptive:
            self._moved.append(job)
            self._heaps.append(-1)

    def move(self, job: int, now: float) -> None:
        """Read the key of a re-queued job again."""
        if job in self._waiting:
            self.arrive(job, now)
        elif job in self._running and self.preemptive:
            del self._running[job]
            self._lane(job, now)
            if self.table.since[job] > now:
                heappush(self._loading, (self.table.since[job], job))

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Return the jobs that lose and those that get their GPUs, in order of decision."""
        stops: list[int] = []
        starts: list[int] = []
        if not self._waiting:
            return stops, starts
        if not self.preemptive:
            self._fill(now, starts)
            return stops, starts
        while self._loading and self._loading[0][0] <= now:
            self.move(heappop(self._loading)[1], now)
        jobs, heaps = self._changes()
        self.idle, chosen = self._queues.changed(self._q, jobs, heaps, self.idle, now)
        for job in chosen.tolist():
            if job >= 0:
                self._waiting.remove(job)
                self.ordering.start(job, now)
                self._lane(job, now)
                starts.append(job)
            else:
                job = -1 - job
                del self._running[job]
                self.ordering.stop(job, now)
                self.arrive(job, now)
                stops.append(job)
        return stops, starts

    def _fill(self, now: float, starts: list[int]) -> None:
        """Start what fits, best first; nothing running is touched."""
        gpus = self.table.gpus
        refused = set[int]()
        found = True
        while found and self.idle > 0:
            found = False
            if self._moved:
                self._front = self._queues.front(self._q, *self._changes()).tolist()
            for job in self._front:
                width = gpus[job]
                if width in refused:
                    continue
                if self.placer.fits(width):
                    self._waiting.remove(job)
                    self._moved.append(job)
                    self._heaps.append(-1)
                    self.idle -= width
                    self.ordering.start(job, now)
                    self.take(job)
                    self._running[job] = None
                    starts.append(job)
                    found = True
                    break
                if self.blocking:
                    return
                refused.add(width)

    def _changes(self) -> tuple[Ints, Ints]:
        """Return the jobs whose heap changes and the heaps, and forget them."""
        changes = np.array(self._moved, np.int64), np.array(self._heaps, np.int64)
        self._moved.clear()
        self._heaps.clear()
        return changes

    def _lane(self, job: int, now: float) -> None:
        """Put a job among those that run."""
        slope = self.ordering.slope(job)
        lane = self._lanes.get(slope)
        if lane is None:
            lane = self._lanes[slope] = self._widths + len(self._lanes)
            if lane == len(self._q.top):
                self._q = self._q._replace(top=np.append(self._q.top, np.full(lane, -1)))
        self._running[job] = None
        self._file(job, now, slope, lane)

    def _file(self, job: int, now: float, slope: float, heap: int) -> None:
        """Read the key of a job that goes to a heap."""
        key = self.ordering.key(job, now)
        parts = key if isinstance(key, tuple) else (key,)
        if not self._parts:
            self._parts = len(parts)
            self._q = self._queues.empty(self._gpus, self._parts, self._widths, 64)
            columns: tuple[Any, Any] = self._q.key, self._q.slope
            self._keys = memoryview(columns[0])
            self._slopes = memoryview(columns[1])
        try:
            if slope:
                parts = (*parts[:-1], parts[-1] - slope * now)
            for part, value in enumerate(parts):
                self._keys[job, part] = value
        except (TypeError, ValueError, IndexError):
            parts = ()
        if not 0 < len(parts) == self._parts:
            raise PolicyError(
                f"policy {self.ordering.policy.name!r}: the key of job {self.table.ids[job]!r} is "
                f"{key!r}; give a number or a tuple, always of as many numbers"
            )
        self._slopes[job] = slope
        self._moved.append(job)
        self._heaps.append(heap)
