"""``liquid``: Liquid's best-fit score, container by container, for any policy."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from repro.model.cluster.spec import Cluster
from repro.model.settings import Between
from repro.perf.parameter_server import default_num_ps
from repro.placement.base import Allocation, Placement, Placer, register
from repro.placement.network import Gang, NodeResources, Scoring


class LiquidPlacer(Placer):
    """State of Liquid's best fit on one cluster; see `Liquid`."""

    def __init__(self, cluster: Cluster, rule: "Liquid") -> None:
        super().__init__(cluster)
        self._cluster = cluster
        self._site = NodeResources(cluster)
        self._scoring = Scoring(rule.lambda_, rule.score)
        self._drop = rule.drop

    def _place(self, job: int, gpus: int, model: str | None) -> Allocation:
        servers = default_num_ps(gpus)
        # Needs of 0 fit any node. Only Liquid's own policies use the needs in the trace.
        gang = Gang(servers, gpus - servers, gpu_mem_mb=0.0, bandwidth_mb_s=0.0)
        tasks = self._site.best_fit(gang, self._scoring, self._drop)
        if tasks is None:
            tasks = self._in_one_domain(gang) or self._fill_domains(gpus)
        self._site.allocate(tasks, gang)
        nodes, counts = np.unique(tasks, return_counts=True)
        return tuple(zip(nodes.tolist(), counts.tolist(), strict=True))

    def _in_one_domain(self, gang: Gang) -> tuple[int, ...] | None:
        """Best fit in the first domain with enough idle GPUs; None if no domain has them.

        Best fit chooses a domain with the first container, and other domains may have more idle
        GPUs.
        """
        site = self._site
        idle_of_domain = np.bincount(site.domain, site.idle)
        for domain in np.flatnonzero(idle_of_domain >= gang.size).tolist():
            idle = np.where(site.domain == domain, site.idle, 0)
            one_domain = NodeResources(self._cluster, idle.tolist())
            return one_domain.best_fit(gang, self._scoring, self._drop) or one_domain.best_fit(
                gang, self._scoring
            )
        return None

    def _fill_domains(self, gpus: int) -> tuple[int, ...]:
        """Node of each task: first the domains with most idle GPUs, and in a domain by index."""
        site = self._site
        idle = np.bincount(site.domain, site.idle)
        order = np.lexsort((np.arange(len(site.idle)), -idle[site.domain]))
        return tuple(np.repeat(order, site.idle[order])[:gpus].tolist())

    def _release(self, job: int, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._site.idle[node] += gpus


@register("liquid")
@dataclass(frozen=True)
class Liquid(Placement):
    """Each container goes where the score of the plan grows least (Algorithm 1).

    The same best fit as the policy ``liquid`` (`NodeResources.best_fit`), for the gangs that any
    policy starts. A gang has one parameter server, and none with a single GPU; each container holds
    one GPU. Where best fit ends in a domain that is too small, the first domain with enough idle
    GPUs is used; where there is none, the gang fills the domains with most idle GPUs. A gang that
    is to use each node once (``always``) but lacks nodes is placed as with ``full``.

    Liquid, TPDS 2022, sections 5.1 and 5.2.
    """

    #: weight of the communication cost against the load of the nodes; called ``lambda``
    lambda_: Annotated[float, Between(0, 1)] = 0.5
    #: the printed score, or that of the artifact
    score: Literal["paper", "artifact"] = "paper"
    #: when a node leaves the candidates: once it is full, or once it is chosen
    drop: Literal["full", "always"] = "full"

    def bind(self, cluster: Cluster, rng: np.random.Generator) -> LiquidPlacer:
        """Make a placer with every GPU of ``cluster`` idle."""
        return LiquidPlacer(cluster, self)
