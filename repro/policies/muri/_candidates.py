"""Jobs by GPU count in order of priority, and the candidates for grouping among them."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice

from sortedcontainers import SortedList

from repro.cluster.spec import Cluster
from repro.placement.first_fit import FirstFit

#: Value, rank among equal values, row.
Entry = tuple[float, int, int]


class Candidates:
    """Jobs of each GPU count in order of priority; priorities stand still while a job waits.

    Among equal priorities the earlier row comes first; with ``wide_first``, as in the simulator's
    list, wider jobs do, and those that arrived just now come last.
    """

    def __init__(self, cluster: Cluster, max_group: int, wide_first: bool) -> None:
        self._nodes, self._num_gpus = FirstFit(cluster), cluster.num_gpus
        self._max_group, self._wide_first = max_group, wide_first
        self._waiting: dict[int, SortedList[Entry]] = {}
        self._entry: dict[int, Entry] = {}
        #: rank among equal values, and value at the last event, of jobs that ran
        self._rank: dict[int, int] = {}
        self._last: dict[int, float] = {}
        #: ranks given out so far lie between these
        self._ahead, self._behind = 0, 1 << 40

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._entry)

    def add(self, job: int, width: int, value: float) -> None:
        """Put a waiting job in line."""
        entry = self._entry[job] = (value, self._rank.get(job, job), job)
        self._waiting.setdefault(width, SortedList()).add(entry)

    def remove(self, job: int, width: int) -> None:
        """Take a job out of the line."""
        entry = self._entry.pop(job)
        self._waiting[width].remove(entry)
        self._last[job] = entry[0]

    def ranked(self, jobs: Sequence[int], values: Sequence[float]) -> list[Entry]:
        """Return the running jobs of one width with their values now, best first."""
        if not self._wide_first:
            return sorted(zip(values, jobs, jobs, strict=True))
        # a list sorted in place keeps the order of equal values: a job whose value rose to that of
        # others stays ahead of them, one whose value fell to it comes behind
        rank, last = self._rank, self._last
        line = sorted(
            (value, last.get(job, value), rank.get(job, job), job)
            for value, job in zip(values, jobs, strict=True)
        )
        self._ahead -= len(line)
        entries: list[Entry] = []
        for place, (value, before, number, job) in enumerate(line):
            if value > before:
                number = rank[job] = self._ahead + place
            elif value < before:
                number = rank[job] = self._behind + place
            last[job] = value
            entries.append((value, number, job))
        self._behind += len(line)
        return entries

    def choose(self, running: Mapping[int, list[Entry]], fresh: range) -> dict[int, list[Entry]]:
        """Return the jobs that may get GPUs, by width, best first; ``fresh`` arrived just now.

        In order of priority, a job for whose gang the empty cluster has a place left takes it for
        itself and the next ones of its width, ``max_group`` in all.
        """
        nodes, size, lanes = self._nodes, self._max_group, {}
        for width in running.keys() | self._waiting.keys():
            most = size * (self._num_gpus // width)
            line = [*running.get(width, ()), *islice(self._waiting.get(width, ()), most)]
            if line:
                line.sort()
                lanes[width] = line
        heads = [self._head(width, line[0], fresh) for width, line in lanes.items()]
        heapify(heads)
        order = [-head[2] for head in sorted(heads)]
        slots = dict.fromkeys(order, 0)
        nodes.clear()
        while heads and nodes.free:
            width = -heads[0][2]
            if not nodes.take(width):
                heappop(heads)
                continue
            slots[width] += 1
            line, place = lanes[width], size * slots[width]
            if place < len(line):
                heapreplace(heads, self._head(width, line[place], fresh))
            else:
                heappop(heads)
        return {width: lanes[width][: size * slots[width]] for width in order if slots[width]}

    def _head(self, width: int, entry: Entry, fresh: range) -> tuple[float, tuple[int, ...], int]:
        """Return what is compared: value, ties, minus the width."""
        value, rank, job = entry
        if not self._wide_first:
            return value, (rank,), -width
        return value, (1, rank) if job in fresh else (0, -width, rank), -width
