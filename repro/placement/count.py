"""``count``: only the total number of idle GPUs matters; nodes are not looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.cluster.spec import Cluster
from repro.errors import PolicyError
from repro.placement.base import Allocation, Placement, Placer, register


class CountPlacer(Placer):
    """Counts idle GPUs; allocations name no nodes. Every call takes constant time."""

    tracks_nodes = False

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._sizes: dict[int, int] = {}

    def take(self, job: int, gpus: int, model: str | None = None) -> Allocation:
        """Give a job its GPUs; see `Placer.take`. Returns an empty tuple."""
        if gpus > self.free or gpus < 1 or job in self._sizes:
            raise self._refusal(job, gpus)
        self._sizes[job] = gpus
        self.free -= gpus
        return ()

    def give_back(self, job: int) -> None:
        """Return all GPUs of a job; see `Placer.give_back`."""
        try:
            self.free += self._sizes.pop(job)
        except KeyError:
            raise PolicyError(f"job {job} holds no GPUs to give back") from None

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        return ()

    def _release(self, job: int, allocation: Allocation) -> None:
        pass

    def _refusal(self, job: int, gpus: int) -> PolicyError:
        if job in self._sizes:
            return PolicyError(f"job {job} already holds GPUs; give them back before taking more")
        return super()._refusal(job, gpus)


@register("count")
@dataclass(frozen=True)
class Count(Placement):
    """A gang runs whenever enough GPUs are idle anywhere.

    References
    ----------
    Scheme ``count`` of the Tiresias simulator.
    """

    name: ClassVar[str] = "count"

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> CountPlacer:
        """Return a placer with every GPU of ``cluster`` idle."""
        return CountPlacer(cluster)
