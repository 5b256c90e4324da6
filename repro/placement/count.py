"""``count``: a gang needs enough idle GPUs, on any nodes."""

from dataclasses import dataclass

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, register


class CountPlacer(Placer):
    """Number of idle GPUs of a cluster. Allocations name no nodes."""

    tracks_nodes = False

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        return ()

    def _release(self, job: int, allocation: Allocation) -> None:
        pass


@register("count")
@dataclass(frozen=True)
class Count(Placement):
    """A gang runs whenever enough GPUs are idle; scheme ``count`` of the Tiresias simulator."""

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> CountPlacer:
        """Make a placer with every GPU of ``cluster`` idle."""
        return CountPlacer(cluster)
