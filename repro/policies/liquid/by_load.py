"""Placements that Liquid is compared with: any node, the emptiest, the fullest."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.policy import register
from repro.placement.network import TIE, Gang, Site
from repro.policies.liquid._containers import Containers, Plan


@dataclass(frozen=True)
class ByLoad(Containers):
    """Container by container to the node of the least load, drawn among equals."""

    draws: ClassVar[bool] = True

    @abstractmethod
    def load(self, site: Site) -> Floats:
        """Return what is least at the node wanted."""

    def extend(
        self, site: Site, gang: Gang, placed: Sequence[int], rng: np.random.Generator
    ) -> list[int]:
        """Return the nodes of the containers placed so far and of those that find room now."""
        nodes = list(placed)
        while len(nodes) < gang.size and (opened := site.open(gang, nodes)).any():
            load = np.where(opened, self.load(site), np.inf)
            nodes.append(int(rng.choice(np.flatnonzero(load <= load.min() + TIE))))
            site.hold(nodes[-1:], gang)
        return nodes

    def plan(self, site: Site, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Return the nodes one after another; None if a container finds no room."""
        nodes = self.extend(site, gang, (), rng)
        site.hold(nodes, gang, -1)
        return tuple(nodes) if len(nodes) == gang.size else None


@register("liquid-random")
@dataclass(frozen=True)
class AnyNode(ByLoad):
    """Place every container on any node with room, all equally likely."""

    def load(self, site: Site) -> Floats:
        """Return the same for all nodes."""
        return np.zeros(len(site.idle))


@register("liquid-even")
@dataclass(frozen=True)
class Even(ByLoad):
    """Place every container on the node with the largest share of idle GPUs."""

    def load(self, site: Site) -> Floats:
        """Return the share of GPUs in use."""
        return np.asarray(-site.idle / site.total)


@register("liquid-pack")
@dataclass(frozen=True)
class Pack(ByLoad):
    """Place every container on the node with the smallest share of idle GPUs."""

    baseline: ClassVar[Baseline | None] = None

    def load(self, site: Site) -> Floats:
        """Return the share of idle GPUs."""
        return np.asarray(site.idle / site.total)
