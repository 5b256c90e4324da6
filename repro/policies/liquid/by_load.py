"""Placements that Liquid is compared with: random, even, packed.

Liquid, TPDS 2022, section 7.1. Each container, in order, goes to a node n with enough idle
resources:

    liquid-random: any n
    liquid-even:   argmax idle GPUs of n / GPUs of n
    liquid-pack:   argmin idle GPUs of n / GPUs of n

Ties: the node is sampled among nodes of equal rank, with the generator of the run.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.typing import Flags, Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.placement.network import TIE, Gang, NodeResources
from repro.policies.liquid._containers import Containers, Plan


@dataclass(frozen=True)
class ByLoad(Containers):
    """Containers go one by one to the node of least rank, sampled among equal nodes.

    Reference: Liquid, TPDS 2022, section 7.1 (the placements it is compared with).
    """

    is_random: ClassVar[bool] = True

    @abstractmethod
    def rank(self, site: NodeResources) -> Floats:
        """Rank of each node, (nodes,). The node of least rank is chosen."""

    def candidates(self, site: NodeResources, gang: Gang, nodes: Sequence[int]) -> Flags:
        """Nodes that can take one more container of a gang with containers on ``nodes``."""
        return site.candidates(gang, nodes)

    def extend(
        self, site: NodeResources, gang: Gang, placed: Sequence[int], rng: np.random.Generator
    ) -> list[int]:
        """Nodes of the placed containers, then of the containers that fit now.

        ``site`` allocates the containers that fit now.
        """
        nodes = list(placed)
        while len(nodes) < gang.size and (candidates := self.candidates(site, gang, nodes)).any():
            rank = np.where(candidates, self.rank(site), np.inf)
            nodes.append(int(rng.choice(np.flatnonzero(rank <= rank.min() + TIE))))
            site.allocate(nodes[-1:], gang)
        return nodes

    def plan(self, site: NodeResources, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Plan of a job, container by container. None if a container fits no node."""
        nodes = self.extend(site, gang, (), rng)
        site.free(nodes, gang)
        return tuple(nodes) if len(nodes) == gang.size else None


@register("liquid-random")
@dataclass(frozen=True)
class AnyNode(ByLoad):
    """Place every container on a node sampled uniformly from those it fits."""

    def rank(self, site: NodeResources) -> Floats:
        """Equal rank of all nodes."""
        return np.zeros(len(site.idle))


@register("liquid-even")
@dataclass(frozen=True)
class Even(ByLoad):
    """Place every container on the node with the largest share of idle GPUs."""

    def rank(self, site: NodeResources) -> Floats:
        """Share of idle GPUs of each node, with the sign reversed."""
        return np.asarray(-site.idle / site.total)


@register("liquid-pack")
@dataclass(frozen=True)
class Pack(ByLoad):
    """Place every container on the node with the smallest share of idle GPUs."""

    baseline: ClassVar[Baseline | None] = None

    def rank(self, site: NodeResources) -> Floats:
        """Share of idle GPUs of each node."""
        return np.asarray(site.idle / site.total)
