"""Idle GPUs per node, bucketed so that no search walks over all nodes."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush


class NodeSet:
    """A group of nodes, bucketed by how many of their GPUs are idle.

    Each bucket is a heap of node indices. Entries are not removed when a node moves on but
    skipped when they reach the top, and a node is never twice in one bucket, so a bucket holds
    at most all nodes and every question costs O(GPUs per node) plus amortised O(log nodes).
    """

    __slots__ = ("_buckets", "_filed", "counts", "idle", "size")

    def __init__(self, members: Sequence[int], idle: list[int]) -> None:
        self.idle = idle
        self.size = max((idle[node] for node in members), default=0)
        self.counts = [0] * (self.size + 1)
        self._buckets: list[list[int]] = [[] for _ in range(self.size + 1)]
        for node in members:
            self.counts[idle[node]] += 1
            self._buckets[idle[node]].append(node)
        self._filed = [set(bucket) for bucket in self._buckets]

    def set_idle(self, node: int, gpus: int) -> None:
        """Record that ``gpus`` GPUs of ``node`` are idle from now on."""
        self.counts[self.idle[node]] -= 1
        self.counts[gpus] += 1
        self.idle[node] = gpus
        filed = self._filed[gpus]
        if gpus and node not in filed:
            filed.add(node)
            heappush(self._buckets[gpus], node)

    def first_with(self, gpus: int) -> int | None:
        """Return the lowest node with exactly ``gpus`` > 0 idle GPUs, or None."""
        if not self.counts[gpus]:
            return None
        bucket = self._buckets[gpus]
        idle = self.idle
        while idle[bucket[0]] != gpus:
            self._filed[gpus].discard(heappop(bucket))
        return bucket[0]

    def first_fit(self, gpus: int) -> int | None:
        """Return the lowest node with at least ``gpus`` idle GPUs, or None."""
        best: int | None = None
        for level in range(gpus, self.size + 1):
            if self.counts[level]:
                node = self.first_with(level)
                if node is not None and (best is None or node < best):
                    best = node
        return best

    def tightest(self, gpus: int) -> int | None:
        """Return the node with the smallest gap that holds ``gpus`` GPUs, else the largest gap."""
        for level in (*range(gpus, self.size + 1), *range(min(gpus, self.size + 1) - 1, 0, -1)):
            if (node := self.first_with(level)) is not None:
                return node
        return None

    def drain(self, gpus: int, level: int, taken: list[tuple[int, int]]) -> int:
        """Take up to ``gpus`` GPUs from the nodes with exactly ``level`` idle ones, in order."""
        while gpus and (node := self.first_with(level)) is not None:
            share = min(gpus, level)
            self.set_idle(node, level - share)
            taken.append((node, share))
            gpus -= share
        return gpus


def take_by_level(
    groups: Sequence[NodeSet], gpus: int, levels: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Take GPUs level by level: all nodes with ``levels[0]`` idle GPUs first, and so on."""
    taken: list[tuple[int, int]] = []
    for level in levels:
        for group in groups:
            if gpus and level <= group.size and group.counts[level]:
                gpus = group.drain(gpus, level, taken)
        if not gpus:
            break
    return tuple(sorted(taken))
