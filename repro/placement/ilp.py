"""``ilp``: workers and parameter servers placed by the integer program of Tiresias, appendix D."""

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
    """Split a model over parameter servers: one holds the largest tensor, the rest is even."""
    if servers == 1 or largest_share * servers <= 1:
        return [model_mb / servers] * servers
    largest = model_mb * largest_share
    return [largest] + [(model_mb - largest) / (servers - 1)] * (servers - 1)


class IlpPlacer(YarnPlacer):
    """ILP placement at work; see `Ilp`."""

    reads_model = True

    def __init__(self, cluster: Cluster, rule: Ilp) -> None:
        super().__init__(cluster)
        self._sizes = by_model(rule.model_mb, "size_mb")
        self._shares = by_model(rule.skew, "largest_ratio")
        self._other_mb = rule.other_mb
        self._touched: dict[int, list[int]] = {}
        self.traffic: list[dict[int, float]] = [{} for _ in cluster.nodes]

    # the program may spread a gang as it likes, so only idle GPUs count
    fits = Placer.fits
    possible = Placer.possible

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation | None:
        if gpus == 1:
            return super()._place(job, gpus, model)
        size = look_up(self._sizes, model, self._other_mb)
        parts = server_sizes(size, gpus, look_up(self._shares, model, 0.0))
        if gpus <= MAX_WORKERS:
            load = {
                node: math.fsum(self.traffic[node].values())
                for node, n in enumerate(self.idle)
                if n
            }
            best = sorted(load, key=lambda node: (-self.idle[node], load[node], node))
            nodes = sorted(best[:MAX_NODES])
            idle = [self.idle[node] for node in nodes]
            carried = [load[node] for node in nodes]
            found = solve(size, gpus, parts, idle, carried)
            workers = found.workers
            servers = found.servers
            allocation = tuple(pair for pair in zip(nodes, workers, strict=True) if pair[1])
            for node, count in allocation:
                self._group_of[node].set_idle(node, self.idle[node] - count)
        else:
            # With the fallback there always is a place; each worker gets one server beside it.
            allocation = super()._place(job, gpus, model) or ()
            nodes = [node for node, _ in allocation]
            workers = tuple(n for _, n in allocation)
            servers = tuple(rank for rank, count in enumerate(workers) for _ in range(count))
        added = node_traffic(workers, servers, parts, [0.0] * len(nodes))
        for node, amount in zip(nodes, added, strict=True):
            self.traffic[node][job] = amount
        self._touched[job] = nodes
        return allocation

    def _release(self, job: int, allocation: Allocation) -> None:
        super()._release(job, allocation)
        for node in self._touched.pop(job, ()):
            del self.traffic[node][job]


@register("ilp")
@dataclass(frozen=True)
class Ilp(Placement):
    """Place each gang so that the busiest node has the least parameter-server traffic.

    A gang of 2 to 8 GPUs is placed by `solve` on up to 8 candidate nodes: those with the most
    idle GPUs (ties: least traffic, then index). Beyond 8 GPUs the program is too slow (the
    paper's own conclusion) and the gang is placed as by ``yarn`` with its fallback, one server
    beside each worker; a single GPU has no servers and goes to the first node that fits.

    Tiresias (NSDI'19), section 3.3 and appendix D.
    """

    #: model to its size (MB), and to the share of its largest tensor; None: the Tiresias table's
    model_mb: Mapping[str, float] | None = None
    skew: Mapping[str, float] | None = None
    #: size assumed for a model that is not listed (MB)
    other_mb: Annotated[float, Above(0, "MB")] = 100.0

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> IlpPlacer:
        """Return a placer with every GPU of ``cluster`` idle and no traffic."""
        return IlpPlacer(cluster, self)
