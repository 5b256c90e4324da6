"""Schedulers of single pods, without gangs: Kubernetes, Kubeflow, HiveD.

Liquid, TPDS 2022, section 7.1, with the public defaults of the schedulers. Each container is a pod.
Pods go one by one, in order of arrival of their jobs, to a node n among those with an idle GPU:

    kubernetes, kubeflow: argmin GPUs in use on n
    hived:                argmin idle GPUs of n / GPUs of n

The first pod of a job goes to a domain that has room for the whole job if all its GPUs are idle.
The other pods stay in this domain. A job starts when its last pod has a GPU. Until then its other
pods hold their GPUs.

Ties: the node is sampled among equal nodes, with the generator of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.base.typing import Flags, Floats
from repro.model.baseline import Baseline
from repro.model.decision import Run, RunSet
from repro.model.policy import register
from repro.model.view import View
from repro.placement.network import Gang, NodeResources
from repro.policies.liquid._containers import PACK, GangOf, Plan
from repro.policies.liquid.by_load import ByLoad, Pack


@dataclass(frozen=True)
class Pods(ByLoad):
    """Pods one by one in order of arrival; a job starts when its last pod has a GPU.

    A pod that fits no node tries again at the next event, after the pods before it.

    Reference: Liquid, TPDS 2022, section 7.1 (the schedulers it is compared with).
    """

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Containers of a job in the order in which their pods are created."""
        return range(gang.size)

    def candidates(self, site: NodeResources, gang: Gang, nodes: Sequence[int]) -> Flags:
        """Nodes that can take one more pod; the first pod needs a domain with room for its job."""
        candidates = super().candidates(site, gang, nodes)
        return candidates if len(nodes) else candidates & site.in_large_domain(gang)

    def _complete_plan(
        self, gang: Gang, nodes: Sequence[int], rng: np.random.Generator
    ) -> Plan | None:
        """Plan of a job whose pods are on ``nodes``; None while pods are missing."""
        if len(nodes) < gang.size:
            return None
        node_of = dict(zip(self.order(gang, rng), nodes, strict=True))
        return tuple(node_of[container] for container in range(gang.size))

    def place(
        self, site: NodeResources, gangs: Sequence[Gang], rng: np.random.Generator
    ) -> list[Plan | None]:
        """Plan of each job whose pods all fit. ``site`` also allocates the pods of other jobs."""
        return [self._complete_plan(gang, self.extend(site, gang, (), rng), rng) for gang in gangs]

    def choose(
        self, view: View, site: NodeResources, gang_of: GangOf, rng: np.random.Generator
    ) -> RunSet:
        """Start jobs whose last pod fits; waiting jobs hold the GPUs of the pods that fit."""
        changes: list[Run] = []
        for job in view.jobs:
            run = view.run(job)
            if run is not None and not run.waits:
                continue
            placed = () if run is None else run.tasks
            gang = gang_of(job)
            nodes = self.extend(site, gang, placed, rng)
            if plan := self._complete_plan(gang, nodes, rng):
                changes.append(Run((job,), len(plan), tasks=plan))
            elif len(nodes) > len(placed):
                changes.append(Run((job,), len(nodes), tasks=tuple(nodes), waits=True))
        return RunSet(changes, keep=True)


@register("kubernetes")
@dataclass(frozen=True)
class Kubernetes(Pods):
    """Place every pod on the node with the fewest pods, sampled among equal nodes."""

    def rank(self, site: NodeResources) -> Floats:
        """Pods of each node, one for each GPU in use."""
        return site.used


@register("kubeflow")
@dataclass(frozen=True)
class Kubeflow(Kubernetes):
    """Place pods as Kubernetes does, without a gang scheduler; only the random samples differ."""


@register("hived")
@dataclass(frozen=True)
class HiveD(Pods, Pack):
    """Place every pod on the fullest node with an idle GPU, in the order of the job's template.

    Parameters
    ----------
    hived_order : {"template", "random"}
        Order of the pods of a job. ``template``: workers before parameter servers. ``random``: a
        random order, as pods are created concurrently.
    """

    hived_order: Literal["template", "random"] = "template"

    baseline: ClassVar[Baseline | None] = PACK

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Workers, then parameter servers, or all containers in random order."""
        if self.hived_order == "random":
            return [int(container) for container in rng.permutation(gang.size)]
        return [*range(gang.num_ps, gang.size), *range(gang.num_ps)]
