"""``yarn``: consolidated placement on the fewest nodes of one switch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, register
from repro.placement.idle_nodes import NodeSet, allocate_by_level


def fits_consolidated(size: int, counts: Sequence[int], gpus: int) -> bool:
    """Whether a gang has a consolidated placement on the nodes of one switch.

    ``size`` is the number of GPUs of the largest node, ``counts`` the number of nodes by idle GPUs.
    """
    if gpus <= size:
        return any(counts[gpus:])
    if size == 0:
        # other work holds all GPUs of the switch
        return False
    full_nodes, remainder = divmod(gpus, size)
    spare_nodes = counts[size] - full_nodes
    return spare_nodes >= 0 and (not remainder or spare_nodes > 0 or any(counts[remainder:size]))


def place_consolidated(group: NodeSet, gpus: int) -> Allocation | None:
    """Allocate a consolidated placement on the nodes of one switch, or return None."""
    size = group.size
    idle = group.idle
    if gpus <= size:
        node = group.first_fit(gpus)
        if node is None:
            return None
        group.set_idle(node, idle[node] - gpus)
        return ((node, gpus),)
    if not fits_consolidated(size, group.counts, gpus):
        return None
    full_nodes, remainder = divmod(gpus, size)
    allocated: list[tuple[int, int]] = []
    group.drain(full_nodes * size, size, allocated)
    # The drained nodes have no idle GPUs, so the remainder goes to another node.
    node = group.first_fit(remainder) if remainder else None
    if node is not None:
        group.set_idle(node, idle[node] - remainder)
        allocated.append((node, remainder))
    return tuple(sorted(allocated))


class YarnPlacer(Placer):
    """State of consolidated placement on one cluster; see `Yarn`."""

    def __init__(self, cluster: Cluster, fallback: bool = True) -> None:
        super().__init__(cluster)
        self.idle = [node.gpus for node in cluster.nodes]
        self.groups: list[NodeSet] = []
        self._group_of: dict[int, NodeSet] = {}
        for members in cluster.racks.members:
            self.groups.append(NodeSet(members, self.idle))
            self._group_of.update(dict.fromkeys(members, self.groups[-1]))
        self._fallback = fallback
        self._empty_switches = [(group.size, tuple(group.counts)) for group in self.groups]

    def fits(self, gpus: int) -> bool:
        """Whether some switch has a consolidated placement for the gang now."""
        return gpus <= self.free and any(
            fits_consolidated(group.size, group.counts, gpus) for group in self.groups
        )

    def possible(self, gpus: int) -> bool:
        """Whether some empty switch has a consolidated placement for the gang."""
        return any(fits_consolidated(size, counts, gpus) for size, counts in self._empty_switches)

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        for group in self.groups:
            if (allocation := place_consolidated(group, gpus)) is not None:
                return allocation
        if not self._fallback:
            return None
        widest = max(group.size for group in self.groups)
        return allocate_by_level(self.groups, gpus, range(widest, 0, -1))

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._group_of[node].set_idle(node, self.idle[node] + gpus)


@register("yarn")
@dataclass(frozen=True)
class Yarn(Placement):
    """Consolidate a gang on the fewest nodes of one switch.

    The largest node of a switch has g GPUs. A gang of W <= g GPUs goes to the first node with W
    idle GPUs. A larger gang takes the first floor(W/g) idle nodes of size g; its remainder goes to
    the first other node with enough idle GPUs. Nodes are tried in ascending order of index. The
    first switch on which the rule succeeds is used. `Placer.fits` and `Placer.possible` test this
    rule alone.

    Where the rule fails although enough GPUs are idle, `Placer.take` uses the ``fallback``. Its
    value ``least-fragmented`` uses as few nodes as possible over all switches (most idle GPUs
    first, ties by switch and index). None refuses with a PolicyError. Preemptive policies need the
    fallback, because they choose jobs by the number of idle GPUs alone and place them afterwards.

    Tiresias (NSDI'19), sections 3.3 and 5.1; scheme ``yarn`` of its simulator.
    """

    fallback: Literal["least-fragmented"] | None = "least-fragmented"

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> YarnPlacer:
        """Make a placer with every GPU of ``cluster`` idle."""
        return YarnPlacer(cluster, self.fallback is not None)
