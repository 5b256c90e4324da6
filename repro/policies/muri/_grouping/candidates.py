"""Candidates: the jobs of highest priority that fill the cluster in groups of k.

Muri, SIGCOMM 2022, Algorithm 1, section 4.2. A bucket holds the jobs of one GPU count. In order of
priority, a job reserves GPUs on an empty cluster for itself and for the next jobs of its bucket, up
to k jobs in all.

Ties: the smaller row comes first. With ``wide_first``, the wider job comes first, and jobs that
arrived just now come last.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sortedcontainers import SortedList

from repro.base.typing import Floats, Ints
from repro.model.cluster.spec import Cluster
from repro.placement.first_fit import FirstFit

#: Priority (smaller first), rank among equal priorities, row of the job.
Entry = tuple[float, int, int]


class Candidates:
    """Waiting jobs in buckets by GPU count, and the choice of candidates.

    The priority of a waiting job is constant. ``wide_first`` orders equal priorities as the
    public simulator does: the wider job first, then by the order of its list.
    """

    def __init__(
        self, widths: Sequence[int], cluster: Cluster, max_group: int, wide_first: bool
    ) -> None:
        self._empty_cluster = FirstFit(cluster, set(widths))
        self._num_gpus = cluster.num_gpus
        #: GPUs of every job, shape (jobs,)
        self.widths = np.array(widths, dtype=np.int64)
        self._width_of = widths
        self._max_group = max_group
        self._wide_first = wide_first
        #: width -> waiting jobs in order of priority
        self._buckets: dict[int, SortedList[Entry]] = {}
        #: waiting job -> its entry
        self.waiting: dict[int, Entry] = {}
        #: rank of each job among equal priorities, smaller first
        self._rank = np.arange(len(widths))
        #: priority of each job at its last start, or at its last `rerank` since then; NaN before
        #: its first start
        self._last_priority = np.full(len(widths), np.nan)
        #: all ranks are at least ``_lowest_rank`` and below ``_next_rank``
        self._lowest_rank = 0
        self._next_rank = 1 << 40

    def add(self, jobs: Iterable[int], priorities: Iterable[float]) -> None:
        """Add waiting jobs to their buckets."""
        for job, priority in zip(jobs, priorities, strict=True):
            entry = (priority, int(self._rank[job]), job)
            self.waiting[job] = entry
            self._buckets.setdefault(self._width_of[job], SortedList()).add(entry)

    def remove(self, jobs: Iterable[int]) -> None:
        """Remove started jobs from their buckets."""
        for job in jobs:
            entry = self.waiting.pop(job)
            self._buckets[self._width_of[job]].remove(entry)
            self._last_priority[job] = entry[0]

    def rerank(self, rows: Ints, priorities: Floats) -> dict[int, list[Entry]]:
        """Update the ranks of running jobs ``rows``; list their entries by width, best first."""
        buckets: dict[int, list[Entry]] = {
            width: [] for width in dict.fromkeys(self.widths[rows].tolist())
        }
        old_priorities = priorities
        if self._wide_first:
            old_priorities = self._last_priority[rows]
            old_priorities = np.where(np.isnan(old_priorities), priorities, old_priorities)
        order = np.lexsort((self._rank[rows], old_priorities, priorities))
        rows = rows[order]
        priorities = priorities[order]
        ranks = self._updated_ranks(rows, priorities - old_priorities[order])
        self._last_priority[rows] = priorities
        entries = zip(priorities.tolist(), ranks.tolist(), rows.tolist(), strict=True)
        for width, entry in zip(self.widths[rows].tolist(), entries, strict=True):
            buckets[width].append(entry)
        return buckets

    def _updated_ranks(self, rows: Ints, change: Floats) -> Ints:
        """Update ranks for this change of priorities; list the ranks of ``rows``, best first."""
        # The public simulator sorts its list in place, and equal values keep their order. A job
        # whose value rose to that of others was ahead of them, and stays there. A job whose value
        # fell to that of others comes behind them.
        position = np.arange(len(rows))
        self._lowest_rank -= len(rows)
        moved = np.where(change > 0, self._lowest_rank, self._next_rank) + position
        self._next_rank += len(rows)
        ranks = np.where(change == 0, self._rank[rows], moved)
        self._rank[rows] = ranks
        return ranks

    def choose(
        self, running: Mapping[int, list[Entry]], fresh: Container[int]
    ) -> dict[int, list[Entry]]:
        """Candidates among running and waiting jobs, by width, best first.

        ``fresh`` has the rows of the jobs that arrived just now.
        """
        size = self._max_group
        buckets = {}
        for width in running.keys() | self._buckets.keys():
            # The cluster has no GPUs for more candidates of a bucket.
            max_candidates = size * (self._num_gpus // width)
            waiting = itertools.islice(self._buckets.get(width, ()), max_candidates)
            if bucket := sorted([*running.get(width, ()), *waiting]):
                buckets[width] = bucket
        width_of = self._width_of
        # Every size-th job of a bucket reserves GPUs for itself and for the next jobs.
        reserving = (bucket[::size] for bucket in buckets.values())
        ranked = heapq.merge(*reserving, key=self._sort_key(fresh))
        placed = self._empty_cluster.scan(ranked, lambda entry: width_of[entry[2]])
        reservations = Counter([width_of[job] for _, _, job in placed])
        return {width: buckets[width][: size * count] for width, count in reservations.items()}

    def _sort_key(self, fresh: Container[int]) -> Callable[[Entry], Any] | None:
        """Sort key of entries of all widths; None: the entry itself."""
        if not self._wide_first:
            return None
        width_of = self._width_of

        def key(entry: Entry) -> tuple[float, bool, int, int]:
            priority, rank, job = entry
            if job in fresh:
                return priority, True, 0, rank
            return priority, False, -width_of[job], rank

        return key
