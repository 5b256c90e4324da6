"""Incremental greedy selection: the result of a full priority scan for the cost of what changed.

The scan every ordering policy means is: walk all jobs from the best key down and give each its
whole gang if that many GPUs are left, otherwise skip it. Redoing it at every event costs the number
of active jobs. Here only decisions that differ from the previous ones are found:

- a waiting job is taken iff its gang fits into the idle GPUs plus those held by running jobs of
  lower priority; among waiting jobs of one width only the best can be the next taken;
- if GPUs are then missing, the best running job that no longer fits is the first given up.

Both rules concern the topmost change only; everything above it is final. Each step looks at no more
running jobs than the widest gang has GPUs, however many jobs wait.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush, merge
from typing import Any

from sortedcontainers import SortedList

from repro.core.jobs import JobTable
from repro.core.policy import Ordering
from repro.placement.base import Placer

Key = Any
Entry = tuple[Key, int]


class Backlog:
    """Waiting jobs by width, running jobs by key, kept in step with the engine.

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
        self.table, self.ordering, self.placer, self.take = table, ordering, placer, take
        self.preemptive = ordering.policy.preemptive
        self.blocking = ordering.policy.blocking
        self.idle = capacity
        #: width -> heap of (key, job) with stale entries; `_key` tells which entry is the live one
        self._waiting: dict[int, list[Entry]] = {}
        self._key: dict[int, Key] = {}
        self._count = 0
        #: slope -> running jobs by key at time zero
        self._lanes: dict[float, SortedList[Entry]] = {}
        self._place: dict[int, tuple[float, Key]] = {}
        #: running jobs of a policy that never preempts
        self._kept: dict[int, None] = {}
        #: (instant, job): running jobs that progress only from then on
        self._loading: list[tuple[float, int]] = []

    @property
    def waits(self) -> bool:
        """Whether any job waits."""
        return self._count > 0

    @property
    def running(self) -> Iterable[int]:
        """The jobs that hold GPUs, in no order."""
        return self._place if self.preemptive else self._kept

    def arrive(self, job: int, now: float) -> None:
        """Add a job to those that wait."""
        key = self._key[job] = self.ordering.key(job, now)
        self._count += 1
        heappush(self._waiting.setdefault(self.table.gpus[job], []), (key, job))

    def finish(self, job: int) -> None:
        """Take a finished job out."""
        if self.preemptive:
            self._unlane(job)
        else:
            del self._kept[job]
        self.idle += self.table.gpus[job]

    def move(self, job: int, now: float) -> None:
        """Read the key of a re-queued job again."""
        if job in self._place:
            self._unlane(job)
            self._lane(job, now)
            if self.table.since[job] > now:
                heappush(self._loading, (self.table.since[job], job))
        elif job in self._key:
            self._count -= 1
            self.arrive(job, now)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Return the jobs that lose and those that get their GPUs, in order of decision."""
        stops: list[int] = []
        starts: list[int] = []
        if not self._count:
            return stops, starts
        if not self.preemptive:
            self._fill(now, starts)
            return stops, starts
        while self._loading and self._loading[0][0] <= now:
            self.move(heappop(self._loading)[1], now)
        # A decided job is final: keeping it out of later steps also makes ties that only rounding
        # tells apart harmless.
        decided: set[int] = set()
        while True:
            heads = [head for head in self._heads() if head[1] not in decided]
            job, is_start = self._topmost_change(heads, decided, now)
            if job is None:
                return stops, starts
            decided.add(job)
            if is_start:
                self._dequeue(job)
                self.idle -= self.table.gpus[job]
                self.ordering.start(job, now)
                self._lane(job, now)
                starts.append(job)
            else:
                self._unlane(job)
                self.idle += self.table.gpus[job]
                self.ordering.stop(job, now)
                self.arrive(job, now)
                stops.append(job)

    def _topmost_change(
        self, heads: list[Entry], decided: set[int], now: float
    ) -> tuple[int | None, bool]:
        """Return the highest-priority (job, starts) that a full scan would decide anew."""
        gpus, idle = self.table.gpus, self.idle
        if idle >= 0:
            if not heads:
                return None, False
            worst = self._bottom(now)
            if worst is None or worst < heads[0]:
                for _, job in heads:
                    if gpus[job] <= idle:
                        return job, True
                return None, False
        reach = max((gpus[job] for _, job in heads), default=0) - idle
        #: running jobs, and the GPUs held by those of still lower priority
        below: list[tuple[Entry, int]] = []
        total = 0
        victim: Entry | None = None
        for entry in self._upwards(now):
            if entry[1] in decided:
                continue
            if total < -idle:
                victim = entry
            if total >= reach or (idle >= 0 and entry < heads[0]):
                break
            below.append((entry, total))
            total += gpus[entry[1]]
        for head in heads:
            if victim is not None and victim < head:
                break
            beneath = total
            for entry, under in below:
                if entry < head:
                    beneath = under
                    break
            if gpus[head[1]] <= idle + beneath:
                return head[1], True
        return (None, False) if victim is None else (victim[1], False)

    def _fill(self, now: float, starts: list[int]) -> None:
        """Start what fits, best first; nothing running is touched."""
        gpus, fits = self.table.gpus, self.placer.fits
        heads = self._heads()
        while heads and self.idle > 0:
            job = heads[0][1]
            width = gpus[job]
            if fits(width):
                self._dequeue(job)
                self.idle -= width
                self.ordering.start(job, now)
                self.take(job)
                self._kept[job] = None
                starts.append(job)
                heads = sorted(heads[1:] + self._live(width)[:1])
            elif self.blocking:
                return
            else:
                heads = heads[1:]

    # waiting jobs ------------------------------------------------------------------------------

    def _dequeue(self, job: int) -> None:
        """Take the head of its queue out."""
        heappop(self._waiting[self.table.gpus[job]])
        del self._key[job]
        self._count -= 1

    def _live(self, width: int) -> list[Entry]:
        """Return the heap of one width with its head cleaned of stale entries."""
        heap, keys = self._waiting[width], self._key
        while heap:
            key, job = heap[0]
            if keys.get(job) == key and job in keys:
                break
            heappop(heap)
        return heap

    def _heads(self) -> list[Entry]:
        """Return the best waiting job of each width, best first."""
        heads = [heap[0] for heap in map(self._live, self._waiting) if heap]
        heads.sort()
        return heads

    # running jobs ------------------------------------------------------------------------------

    def _lane(self, job: int, now: float) -> None:
        slope = self.ordering.slope(job)
        key = self.ordering.key(job, now)
        if slope:
            key -= slope * now
        self._place[job] = (slope, key)
        lane = self._lanes.get(slope)
        if lane is None:
            lane = self._lanes[slope] = SortedList()
        lane.add((key, job))

    def _unlane(self, job: int) -> None:
        slope, key = self._place.pop(job)
        self._lanes[slope].remove((key, job))

    def _bottom(self, now: float) -> Entry | None:
        """Return the running job of lowest priority."""
        worst: Entry | None = None
        for slope, lane in self._lanes.items():
            if lane:
                key, job = lane[-1]
                entry = (key + slope * now, job) if slope else (key, job)
                if worst is None or entry > worst:
                    worst = entry
        return worst

    def _upwards(self, now: float) -> Iterator[Entry]:
        """Iterate over running jobs from the lowest priority up."""
        lanes = [_upwards(lane, slope, now) for slope, lane in self._lanes.items() if lane]
        return lanes[0] if len(lanes) == 1 else merge(*lanes, reverse=True)


def _upwards(lane: SortedList[Entry], slope: float, now: float) -> Iterator[Entry]:
    """Iterate over running jobs of one slope from the lowest priority up."""
    if not slope:
        return iter(reversed(lane))
    drift = slope * now
    return ((key + drift, job) for key, job in reversed(lane))
