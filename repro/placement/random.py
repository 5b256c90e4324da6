"""``random``: a gang gets GPUs sampled from all idle GPUs, so it is usually spread."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, register


class RandomPlacer(Placer):
    """State of random placement on one cluster; see `Random`."""

    def __init__(self, cluster: Cluster, rng: np.random.Generator) -> None:
        super().__init__(cluster)
        self._rng = rng
        # One entry (its node) per idle GPU. The last entry replaces a sampled one: O(1) per sample.
        self._idle = [index for index, node in enumerate(cluster.nodes) for _ in range(node.gpus)]

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        idle = self._idle
        sampled: Counter[int] = Counter()
        for chance in self._rng.random(gpus).tolist():
            position = int(chance * len(idle))
            sampled[idle[position]] += 1
            idle[position] = idle[-1]
            idle.pop()
        return tuple(sorted(sampled.items()))

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._idle.extend([node] * gpus)


@register("random")
@dataclass(frozen=True)
class Random(Placement):
    """Sample a gang's GPUs uniformly, without replacement, from all idle GPUs.

    Tiresias (NSDI'19), section 2.2 and Figures 3 and 12, where it is the baseline.
    """

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> RandomPlacer:
        """Make a placer with every GPU of ``cluster`` idle that samples from ``rng``."""
        return RandomPlacer(cluster, rng)
