"""``wished``: each task goes to the node that its policy names, else to the first idle GPUs."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, register


class WishedPlacer(Placer):
    """Idle GPUs of each node. The policy may name the nodes of a gang; see `Wished`."""

    takes_wishes = True

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.idle = [node.gpus for node in cluster.nodes]

    def _wished(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        named = sorted(Counter(tasks).items())
        for node, gpus in named:
            if not 0 <= node < len(self.idle):
                raise PolicyError(
                    f"{self._name(job)} names node {node}, which does not exist; name nodes from "
                    f"0 to {len(self.idle) - 1}"
                )
            idle = self.idle[node]
            if gpus > idle:
                raise PolicyError(
                    f"{self._name(job)} names {gpus} GPUs of node {self.node_numbers[node]}, which "
                    f"has {idle} idle; name only idle GPUs"
                )
        if job in self._allocated:
            raise self._refusal(job, len(tasks))
        for node, gpus in named:
            self.idle[node] -= gpus
        return tuple(named)

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        allocation = []
        for node, idle in enumerate(self.idle):
            count = min(gpus, idle)
            if count:
                allocation.append((node, count))
                self.idle[node] -= count
                gpus -= count
        return tuple(allocation)

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self.idle[node] += gpus


@register("wished")
@dataclass(frozen=True)
class Wished(Placement):
    """Tasks go to the nodes in `repro.model.decision.Run.tasks`; other gangs fill nodes in order.

    For policies that decide on jobs and placement together (Liquid).
    """

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> WishedPlacer:
        """Make a placer with every GPU of ``cluster`` idle."""
        return WishedPlacer(cluster)
