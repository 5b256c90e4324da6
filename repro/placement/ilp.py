"""``ilp``: workers and parameter servers by the integer programme of Tiresias, appendix D."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.model.settings import Above
from repro.placement.base import Allocation, Placement, Placer, register
from repro.placement.skew import by_model, look_up
from repro.placement.yarn import YarnPlacer
from repro.solve.placement_ilp import MAX_NODES, MAX_WORKERS, node_traffic, solve


def server_sizes(model_mb: float, servers: int, largest_share: float = 0.0) -> list[float]:
    """Sizes (MB) of a model's parameter servers: the largest tensor, and equal parts of the rest.

    ``largest_share`` is the size of the largest tensor over that of the model. If the tensor is no
    larger than 1 / ``servers`` of the model, all sizes are equal.
    """
    if servers == 1 or largest_share * servers <= 1:
        return [model_mb / servers] * servers
    largest = model_mb * largest_share
    return [largest] + [(model_mb - largest) / (servers - 1)] * (servers - 1)


class IlpPlacer(YarnPlacer):
    """State of ILP placement on one cluster; see `Ilp`."""

    reads_model = True

    def __init__(self, cluster: Cluster, rule: Ilp) -> None:
        super().__init__(cluster)
        self._sizes = by_model(rule.model_mb, "size_mb")
        self._largest_shares = by_model(rule.skew, "largest_ratio")
        self._other_mb = rule.other_mb
        #: Nodes of each job in `traffic`.
        self._nodes_of: dict[int, list[int]] = {}
        #: Traffic of each node (MB per iteration), by job.
        self.traffic: list[dict[int, float]] = [{} for _ in cluster.nodes]

    # The programme may spread a gang over any nodes, so only the number of idle GPUs counts.
    fits = Placer.fits
    possible = Placer.possible

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        if gpus == 1:
            return super()._place(job, gpus, model)
        size = look_up(self._sizes, model, self._other_mb)
        # One parameter server per worker.
        sizes_mb = server_sizes(size, gpus, look_up(self._largest_shares, model, 0.0))
        if gpus <= MAX_WORKERS:
            nodes, traffic = self._candidates()
            idle = [self.idle[node] for node in nodes]
            optimum = solve(size, gpus, sizes_mb, idle, traffic)
            workers = optimum.workers
            servers = optimum.servers
            allocation = tuple(pair for pair in zip(nodes, workers, strict=True) if pair[1])
            for node, count in allocation:
                self._group_of[node].set_idle(node, self.idle[node] - count)
        else:
            # The fallback always finds GPUs. Each worker has a server on its node.
            allocation = super()._place(job, gpus, model) or ()
            nodes = [node for node, _ in allocation]
            workers = tuple(count for _, count in allocation)
            servers = tuple(index for index, count in enumerate(workers) for _ in range(count))
        added = node_traffic(workers, servers, sizes_mb, [0.0] * len(nodes))
        for node, amount in zip(nodes, added, strict=True):
            self.traffic[node][job] = amount
        self._nodes_of[job] = nodes
        return allocation

    def _candidates(self) -> tuple[list[int], list[float]]:
        """Nodes offered to the programme, ascending, and their traffic (MB per iteration)."""
        traffic = {
            node: math.fsum(self.traffic[node].values())
            for node, idle in enumerate(self.idle)
            if idle
        }
        ranked = sorted(traffic, key=lambda node: (-self.idle[node], traffic[node], node))
        nodes = sorted(ranked[:MAX_NODES])
        return nodes, [traffic[node] for node in nodes]

    def _release(self, job: int, allocation: Allocation) -> None:
        super()._release(job, allocation)
        for node in self._nodes_of.pop(job, ()):
            del self.traffic[node][job]


@register("ilp")
@dataclass(frozen=True)
class Ilp(Placement):
    """Place each gang so that the busiest node has the least parameter-server traffic.

    `solve` places a gang of 2 to 8 GPUs on up to 8 candidate nodes: those with the most idle GPUs
    (ties: least traffic, then index). Beyond 8 GPUs the programme is too slow, as the paper says.
    The gang is then placed as by ``yarn`` with its fallback, and each worker has a server on its
    node. A job of one GPU has no servers and goes to the first node that fits.

    Tiresias (NSDI'19), section 3.3 and appendix D.
    """

    #: model to its size (MB); None: Tiresias, Table 6
    model_mb: Mapping[str, float] | None = None
    #: model to the size of its largest tensor over its own size; None: Tiresias, Table 6
    skew: Mapping[str, float] | None = None
    #: size of a model that is not listed (MB)
    other_mb: Annotated[float, Above(0, "MB")] = 100.0

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> IlpPlacer:
        """Make a placer with every GPU of ``cluster`` idle and no traffic."""
        return IlpPlacer(cluster, self)
