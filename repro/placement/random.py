"""``random``: every gang gets GPUs drawn from all idle ones, so it is usually spread."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, register


class RandomPlacer(Placer):
    """Random placement at work; see `Random`."""

    def __init__(self, cluster: Cluster, rng: np.random.Generator) -> None:
        super().__init__(cluster)
        self._rng = rng
        # One entry per idle GPU; a drawn one is overwritten by the last, so a draw is O(1).
        self._slots = [index for index, node in enumerate(cluster.nodes) for _ in range(node.gpus)]

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        slots = self._slots
        drawn: Counter[int] = Counter()
        for chance in self._rng.random(gpus).tolist():
            position = int(chance * len(slots))
            drawn[slots[position]] += 1
            slots[position] = slots[-1]
            slots.pop()
        return tuple(sorted(drawn.items()))

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._slots.extend([node] * gpus)


@register("random")
@dataclass(frozen=True)
class Random(Placement):
    """Draw a gang's GPUs uniformly, without replacement, from all idle GPUs.

    Tiresias (NSDI'19), section 2.2 and Figures 3 and 12: the placement compared against.
    """

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> RandomPlacer:
        """Return a placer with every GPU of ``cluster`` idle that draws from ``rng``."""
        return RandomPlacer(cluster, rng)
