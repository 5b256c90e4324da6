"""Placement within one GPU type: the same rule once per type, on the nodes of that type."""

import numpy as np

from repro.base.errors import PolicyError
from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer


class TypePlacer(Placer):
    """A placer that sees the nodes of one GPU type and answers in the cluster's node numbers."""

    def __init__(
        self, placement: Placement, cluster: Cluster, gpu_type: str, rng: np.random.Generator
    ) -> None:
        self._numbers = [i for i, n in enumerate(cluster.nodes) if n.gpu_type == gpu_type]
        part = Cluster(tuple(cluster.nodes[i] for i in self._numbers), f"{cluster}:{gpu_type}")
        super().__init__(part)
        self._inner = placement.bind(part, rng)
        self._gpu_type = gpu_type
        self.reads_model = self._inner.reads_model

    def _wished(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        here = {number: i for i, number in enumerate(self._numbers)}
        if not set(tasks) <= set(here):
            raise PolicyError(
                f"job {job} wishes for nodes {tasks} and for GPUs of type {self._gpu_type!r}, "
                f"which are on other nodes ({len(here)} of them, first {self._numbers[:3]})"
            )
        return self._numbered(self._inner.claim(job, tuple(here[node] for node in tasks)))

    def _numbered(self, allocation: Allocation) -> Allocation:
        return tuple((self._numbers[node], gpus) for node, gpus in allocation)

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        return self._numbered(self._inner.take(job, gpus, model))

    def _release(self, job: int, allocation: Allocation) -> None:
        self._inner.give_back(job)


def by_type(
    placement: Placement, cluster: Cluster, rng: np.random.Generator
) -> dict[str | None, Placer]:
    """Return one placer per GPU type of the cluster, none for a cluster without types."""
    return {kind: TypePlacer(placement, cluster, kind, rng) for kind in cluster.gpu_types}
