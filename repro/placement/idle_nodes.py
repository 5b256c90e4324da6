"""Nodes in buckets by their idle GPUs, so that no search visits all nodes."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush


class NodeSet:
    """A set of nodes in buckets by the number of their idle GPUs.

    Each bucket is a heap of node indices. A node that moves to another bucket leaves an old entry
    behind, which is removed once it reaches the top. No node is twice in one bucket. A query
    therefore costs O(GPUs per node) plus amortised O(log nodes).
    """

    __slots__ = ("_buckets", "_entered", "counts", "idle", "size")

    def __init__(self, members: Sequence[int], idle: list[int]) -> None:
        #: Idle GPUs of every node of the cluster; shared with other sets.
        self.idle = idle
        #: GPUs of the largest node.
        self.size = max((idle[node] for node in members), default=0)
        #: Number of nodes by idle GPUs.
        self.counts = [0] * (self.size + 1)
        self._buckets: list[list[int]] = [[] for _ in range(self.size + 1)]
        for node in members:
            self.counts[idle[node]] += 1
            self._buckets[idle[node]].append(node)
        #: For each bucket, the nodes with an entry in it, old entries included.
        self._entered = [set(bucket) for bucket in self._buckets]

    def set_idle(self, node: int, gpus: int) -> None:
        """Set the number of idle GPUs of a node."""
        self.counts[self.idle[node]] -= 1
        self.counts[gpus] += 1
        self.idle[node] = gpus
        entered = self._entered[gpus]
        if gpus and node not in entered:
            entered.add(node)
            heappush(self._buckets[gpus], node)

    def first_with(self, gpus: int) -> int | None:
        """Lowest node with exactly ``gpus`` > 0 idle GPUs, or None."""
        if not self.counts[gpus]:
            return None
        bucket = self._buckets[gpus]
        idle = self.idle
        while idle[bucket[0]] != gpus:
            self._entered[gpus].discard(heappop(bucket))
        return bucket[0]

    def first_fit(self, gpus: int) -> int | None:
        """Lowest node with at least ``gpus`` idle GPUs, or None."""
        best: int | None = None
        for level in range(gpus, self.size + 1):
            if self.counts[level]:
                node = self.first_with(level)
                if node is not None and (best is None or node < best):
                    best = node
        return best

    def tightest(self, gpus: int) -> int | None:
        """Node with the fewest idle GPUs that suffice, else the node with the most idle GPUs."""
        enough = range(gpus, self.size + 1)
        too_few = range(min(gpus, self.size + 1) - 1, 0, -1)
        for level in (*enough, *too_few):
            if (node := self.first_with(level)) is not None:
                return node
        return None

    def drain(self, gpus: int, level: int, allocated: list[tuple[int, int]]) -> int:
        """Take up to ``gpus`` GPUs of nodes with exactly ``level`` idle GPUs; return the remainder.

        Entries (node, GPUs) go to ``allocated``. Nodes are used in order of index.
        """
        while gpus and (node := self.first_with(level)) is not None:
            count = min(gpus, level)
            self.set_idle(node, level - count)
            allocated.append((node, count))
            gpus -= count
        return gpus


def allocate_by_level(
    groups: Sequence[NodeSet], gpus: int, levels: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Allocate GPUs level by level. A level is a number of idle GPUs that nodes have."""
    allocated: list[tuple[int, int]] = []
    for level in levels:
        for group in groups:
            if gpus and level <= group.size and group.counts[level]:
                gpus = group.drain(gpus, level, allocated)
        if not gpus:
            break
    return tuple(sorted(allocated))
