"""Consolidated first fit on an empty cluster, for decisions that place all gangs anew."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from repro.model.cluster.spec import Cluster

Item = TypeVar("Item")


class FirstFit:
    """First fit of gangs, one after another, by the rule of `yarn` on an empty cluster.

    Between two calls of `clear`, the number of idle GPUs of a node never rises. The first node that
    fits a gang size therefore never moves back, and one pointer per size replaces the search. If
    the sizes ``gangs`` guarantee a fit whenever enough GPUs are idle, only idle GPUs are counted.
    """

    def __init__(self, cluster: Cluster, gangs: Iterable[int] | None = None) -> None:
        self.free = self.num_gpus = cluster.num_gpus
        sizes = {node.gpus for node in cluster.nodes}
        #: whether all nodes have one size, a power of two
        self._even = len(sizes) == 1 and all(map(_is_power_of_two, sizes))
        #: largest gang (GPUs) that `surely_fits` accepts; with several switches, the largest node
        self._largest_gang = cluster.num_gpus if len(cluster.racks.members) == 1 else max(sizes)
        self._switches = [
            _Switch([cluster.nodes[node].gpus for node in members])
            for members in cluster.racks.members
        ]
        self._counts_only = gangs is not None and self.surely_fits(gangs, 0)

    def surely_fits(self, gangs: Iterable[int], total: int) -> bool:
        """Whether gangs of ``total`` GPUs surely fit the empty cluster, by their sizes alone.

        True requires nodes of one size, gangs of at most `_largest_gang`, and sizes of gangs and
        nodes that are powers of two.
        """
        if total > self.num_gpus:
            return False
        return self._even and all(
            _is_power_of_two(gang) and gang <= self._largest_gang for gang in gangs
        )

    def clear(self) -> None:
        """Empty every node."""
        self.free = self.num_gpus
        for switch in self._switches:
            switch.clear()

    def scan(self, ranked: Iterable[Item], gpus: Callable[[Item], int]) -> Iterator[Item]:
        """Items whose gangs fit the empty cluster, allocated in the order of ``ranked``.

        ``gpus`` maps an item to the GPUs of its gang. A gang that does not fit is skipped.
        """
        self.clear()
        too_large = set[int]()
        for item in ranked:
            width = gpus(item)
            if width in too_large:
                continue
            if self.take(width):
                yield item
                if not self.free:
                    return
            else:
                # A size that does not fit now does not fit later in the same scan.
                too_large.add(width)

    def take(self, gpus: int) -> bool:
        """Allocate a gang if it fits; False if it does not."""
        if gpus > self.free:
            return False
        if self._counts_only:
            self.free -= gpus
            return True
        for switch in self._switches:
            if switch.take(gpus):
                self.free -= gpus
                return True
        return False


def unplaceable(cluster: Cluster) -> Callable[[int], str]:
    """Make a function from the GPUs of a gang to the reason why it never fits the cluster.

    The reason is empty if the gang fits.
    """
    first_fit = FirstFit(cluster)

    def reason(gpus: int) -> str:
        first_fit.clear()
        if first_fit.take(gpus):
            return ""
        return (
            f"asks for {gpus} GPUs, and the nodes under one switch of {cluster} do not take them "
            f"together by first fit, which holds under any placement; use a larger cluster or drop "
            f"the job"
        )

    return reason


def _is_power_of_two(number: int) -> bool:
    """Whether a positive number is a power of two."""
    return number & (number - 1) == 0


class _Switch:
    """Idle GPUs of the nodes of one switch."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._largest = max(sizes)
        self.clear()

    def clear(self) -> None:
        self._idle = self._sizes.copy()
        #: gang size -> first node that may fit it
        self._first: dict[int, int] = {}

    def take(self, gpus: int) -> bool:
        if gpus <= self._largest:
            return self._take_on_one_node(gpus)
        if self._largest == 0:
            # other work holds all GPUs of the switch
            return False
        full_nodes, remainder = divmod(gpus, self._largest)
        search = range(self._first.get(self._largest, 0), len(self._idle))
        idle_nodes = (node for node in search if self._idle[node] == self._largest)
        nodes = list(islice(idle_nodes, full_nodes))
        if len(nodes) < full_nodes:
            return False
        for node in nodes:
            self._idle[node] = 0
        first_for_remainder = self._first.get(remainder, 0)
        if remainder and not self._take_on_one_node(remainder):
            for node in nodes:
                self._idle[node] = self._largest
            # The search passed these nodes, which are idle again.
            self._first[remainder] = first_for_remainder
            return False
        return True

    def _take_on_one_node(self, gpus: int) -> bool:
        idle = self._idle
        node = self._first.get(gpus, 0)
        while node < len(idle) and idle[node] < gpus:
            node += 1
        self._first[gpus] = node
        if node == len(idle):
            return False
        idle[node] -= gpus
        return True
