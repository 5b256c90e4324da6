"""Consolidated first fit on an empty cluster, for rules that place all gangs anew each time."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from repro.model.cluster.spec import Cluster

Item = TypeVar("Item")


class FirstFit:
    """Answers, gang after gang, whether `yarn` has a consolidated place left.

    Idle GPUs only shrink between two calls of `clear`, so the first node with room for a gang size
    only moves forward: one pointer per size replaces the search, and a size refused once stays
    refused. Where all ``gangs`` that may be asked for fit if their GPUs do, these are counted.
    """

    def __init__(self, cluster: Cluster, gangs: Iterable[int] | None = None) -> None:
        self.free = self.num_gpus = cluster.num_gpus
        sizes = {node.gpus for node in cluster.nodes}
        self._even = len(sizes) == 1 and all(map(_is_power_of_two, sizes))
        #: a gang wider than a node stays within one switch
        self._widest = cluster.num_gpus if len(cluster.switches) == 1 else max(sizes)
        self._switches = [
            _Switch([cluster.nodes[node].gpus for node in members])
            for members in cluster.switches.values()
        ]
        self._counts = gangs is not None and self.surely_fits(gangs, 0)

    def surely_fits(self, gangs: Iterable[int], total: int) -> bool:
        """Tell whether powers of two, on empty nodes of one such size, fit without being tried."""
        if total > self.num_gpus:
            return False
        return self._even and all(_is_power_of_two(g) and g <= self._widest for g in gangs)

    def clear(self) -> None:
        """Empty every node."""
        self.free = self.num_gpus
        for switch in self._switches:
            switch.clear()

    def scan(self, ranked: Iterable[Item], gpus: Callable[[Item], int]) -> Iterator[Item]:
        """Items whose gangs get a place on the empty cluster, in the order of ``ranked``.

        ``gpus`` tells the GPUs of an item's gang. A gang without a place is skipped.
        """
        self.clear()
        refused = set[int]()
        for item in ranked:
            width = gpus(item)
            if width in refused:
                continue
            if self.take(width):
                yield item
                if not self.free:
                    return
            else:
                # idle GPUs only shrink during a scan
                refused.add(width)

    def take(self, gpus: int) -> bool:
        """Take the place of a gang if there is one, and tell whether there was."""
        if gpus > self.free:
            return False
        if self._counts:
            self.free -= gpus
            return True
        for switch in self._switches:
            if switch.take(gpus):
                self.free -= gpus
                return True
        return False


def _is_power_of_two(number: int) -> bool:
    """Tell whether a positive number is a power of two."""
    return number & (number - 1) == 0


class _Switch:
    """The nodes of one switch."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._largest = max(sizes)
        self.clear()

    def clear(self) -> None:
        self._idle = self._sizes.copy()
        #: gang size -> first node that may have room for it
        self._first: dict[int, int] = {}

    def take(self, gpus: int) -> bool:
        if gpus <= self._largest:
            return self._take_part(gpus)
        whole, rest = divmod(gpus, self._largest)
        search = range(self._first.get(self._largest, 0), len(self._idle))
        nodes = list(islice((n for n in search if self._idle[n] == self._largest), whole))
        if len(nodes) < whole:
            return False
        for node in nodes:
            self._idle[node] = 0
        before = self._first.get(rest, 0)
        if rest and not self._take_part(rest):
            for node in nodes:
                self._idle[node] = self._largest
            self._first[rest] = before
            return False
        return True

    def _take_part(self, gpus: int) -> bool:
        idle = self._idle
        node = self._first.get(gpus, 0)
        while node < len(idle) and idle[node] < gpus:
            node += 1
        self._first[gpus] = node
        if node == len(idle):
            return False
        idle[node] -= gpus
        return True
