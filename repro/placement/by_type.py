"""One placer per GPU type, on the nodes of the type."""

from collections.abc import Sequence

import numpy as np

from repro.base.errors import PolicyError
from repro.base.outside import outside_classes
from repro.model.cluster.spec import Cluster
from repro.placement.base import Allocation, Placement, Placer, answer, are_idle, bound, wrong_nodes


class TypePlacer(Placer):
    """A placer on the nodes of one GPU type. Allocations have the node numbers of the cluster."""

    def __init__(
        self, placement: Placement, cluster: Cluster, gpu_type: str, rng: np.random.Generator
    ) -> None:
        self._nodes = [i for i, node in enumerate(cluster.nodes) if node.gpu_type == gpu_type]
        nodes_of_type = tuple(cluster.nodes[i] for i in self._nodes)
        type_cluster = Cluster(nodes_of_type, f"{cluster}:{gpu_type}")
        super().__init__(type_cluster)
        #: placer of the rule, with node numbers within the type
        self.inner = bound(placement, type_cluster, rng)
        self.inner.node_numbers = self._nodes
        self._gpu_type = gpu_type
        self._capacities = [node.gpus for node in nodes_of_type]
        self._checks_nodes = bool(outside_classes(type(self.inner)))
        self.reads_model = self.inner.reads_model

    def name_jobs(self, ids: Sequence[object]) -> None:
        """Name jobs by their ids in messages."""
        super().name_jobs(ids)
        self.inner.name_jobs(ids)

    def fits(self, gpus: int) -> bool:
        """Whether the rule can place a gang of this size on the nodes of the type now."""
        return answer(self.inner, "fits", gpus)

    def possible(self, gpus: int) -> bool:
        """Whether the rule can place a gang of this size on the empty nodes of the type."""
        return answer(self.inner, "possible", gpus)

    def _wished(self, job: int, tasks: tuple[int, ...]) -> Allocation:
        index_of = {node: index for index, node in enumerate(self._nodes)}
        if not set(tasks) <= set(index_of):
            raise PolicyError(
                f"{self._name(job)} asks for GPUs of type {self._gpu_type!r} on nodes {tasks}, but "
                f"not all of these nodes have that type; name some of its {len(index_of)} nodes, "
                f"such as {self._nodes[:3]}"
            )
        allocation = self.inner.claim(job, tuple(index_of[node] for node in tasks))
        return self._in_cluster(job, len(tasks), allocation)

    def _in_cluster(self, job: int, gpus: int, allocation: Allocation) -> Allocation:
        """Allocation in the cluster's node numbers, of nodes that the type has."""
        if not self.inner.tracks_nodes:
            return ()
        # the engine checks the GPUs that are idle, but it sees only the cluster's node numbers
        if self._checks_nodes and not are_idle(allocation, gpus, self._capacities):
            last_node = len(self._nodes) - 1
            where = f", numbered 0 to {last_node} within type {self._gpu_type!r}"
            raise wrong_nodes(self.inner, self._name(job), gpus, allocation, where)
        return tuple((self._nodes[node], count) for node, count in allocation)

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        return self._in_cluster(job, gpus, self.inner.take(job, gpus, model))

    def _release(self, job: int, allocation: Allocation) -> None:
        self.inner.give_back(job)


def rule_of(placer: Placer) -> Placer:
    """Placer of the placement rule itself, for messages."""
    return placer.inner if isinstance(placer, TypePlacer) else placer


def by_type(
    placement: Placement, cluster: Cluster, rng: np.random.Generator
) -> dict[str | None, Placer]:
    """One placer per GPU type of the cluster; empty for a cluster without types."""
    return {
        gpu_type: TypePlacer(placement, cluster, gpu_type, rng) for gpu_type in cluster.gpu_types
    }
