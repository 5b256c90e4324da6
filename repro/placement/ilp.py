"""``ilp``: workers and parameter servers placed by the integer program of Tiresias, appendix D."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.cluster.spec import Cluster
from repro.errors import ParamError
from repro.placement._ilp import MAX_NODES, MAX_WORKERS, IlpPlacement, node_traffic, solve
from repro.placement._models import largest_tensor_share, model_size_mb
from repro.placement.base import Allocation, Placement, register
from repro.placement.yarn import YarnPlacer

__all__ = ["Ilp", "IlpPlacement", "IlpPlacer", "node_traffic", "server_sizes", "solve"]


def server_sizes(model_mb: float, servers: int, largest_share: float = 0.0) -> list[float]:
    """Split a model over parameter servers: one holds the largest tensor, the rest is even.

    Parameters
    ----------
    model_mb : float
        Model size, MB.
    servers : int
        Number of parameter servers.
    largest_share : float
        Share of the model that is one tensor, 0 to 1.

    Returns
    -------
    list of float
        MB per server, the one with the largest tensor first.

    Examples
    --------
    >>> server_sizes(100.0, 4, 0.7)
    [70.0, 10.0, 10.0, 10.0]
    >>> server_sizes(100.0, 4, 0.1)
    [25.0, 25.0, 25.0, 25.0]
    """
    if servers == 1 or largest_share * servers <= 1:
        return [model_mb / servers] * servers
    largest = model_mb * largest_share
    return [largest] + [(model_mb - largest) / (servers - 1)] * (servers - 1)


class IlpPlacer(YarnPlacer):
    """ILP placement at work; see `Ilp`.

    Parameters
    ----------
    cluster : Cluster
        The nodes to place on.
    sizes : mapping
        Model to size, MB.
    shares : mapping
        Model to the share of its largest tensor.
    other_mb : float
        Size of a model that ``sizes`` does not list, MB.

    Attributes
    ----------
    traffic : list of dict
        Per node, the traffic of each job there, MB per iteration.
    """

    def __init__(
        self,
        cluster: Cluster,
        sizes: Mapping[str, float],
        shares: Mapping[str, float],
        other_mb: float,
    ) -> None:
        super().__init__(cluster, fallback=True)
        self._sizes, self._shares, self._other_mb = sizes, shares, other_mb
        self.traffic: list[dict[int, float]] = [{} for _ in cluster.nodes]

    def fits(self, gpus: int) -> bool:
        """Tell whether enough GPUs are idle; the program may spread a gang as it likes."""
        return gpus <= self.free

    def possible(self, gpus: int) -> bool:
        """Tell whether the cluster has that many GPUs."""
        return gpus <= self.num_gpus

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        if gpus == 1:
            return super()._place(job, gpus, model)
        size = self._sizes.get(model or "", self._other_mb)
        parts = server_sizes(size, gpus, self._shares.get(model or "", 0.0))
        if gpus > MAX_WORKERS:
            allocation = super()._place(job, gpus, model)
            nodes = [node for node, _ in allocation or ()]
            workers = [count for _, count in allocation or ()]
            servers = [rank for rank, count in enumerate(workers) for _ in range(count)]
        else:
            load = {i: math.fsum(self.traffic[i].values()) for i, idle in enumerate(self.idle) if idle}
            nodes = sorted(load, key=lambda i: (-self.idle[i], load[i], i))[:MAX_NODES]
            nodes.sort()
            idle = [self.idle[node] for node in nodes]
            found = solve(size, gpus, parts, idle, [load[node] for node in nodes])
            workers, servers = list(found.workers), list(found.servers)
            allocation = tuple(
                (node, count) for node, count in zip(nodes, workers, strict=True) if count
            )
            for node, count in allocation:
                self._group_of[node].set_idle(node, self.idle[node] - count)
        added = node_traffic(workers, servers, parts, [0.0] * len(nodes))
        for node, amount in zip(nodes, added, strict=True):
            if amount:
                self.traffic[node][job] = amount
        self._touched[job] = nodes
        return allocation
