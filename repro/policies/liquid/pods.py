"""Schedulers that know pods and no gangs: Kubernetes, Kubeflow, HiveD."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.decision import Run, RunSet
from repro.model.policy import register
from repro.model.view import View
from repro.placement.network import Gang, Site
from repro.policies.liquid._containers import PACK, Plan
from repro.policies.liquid.by_load import ByLoad, Pack


@dataclass(frozen=True)
class Pods(ByLoad):
    """Pods one by one in order of arrival; a job starts when its last pod has a GPU.

    Until then its pods hold theirs. A pod that finds no room tries again at the next event, after
    those before it. Liquid, TPDS 2022, section 7.1; the schedulers' defaults are public.
    """

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Return the containers of a job in the order in which their pods are created."""
        return range(gang.size)

    def _plan(self, gang: Gang, nodes: Sequence[int], rng: np.random.Generator) -> Plan | None:
        """Return the nodes of a whole job, parameter servers first; None: a pod has none."""
        if len(nodes) < gang.size:
            return None
        by_container = dict(zip(self.order(gang, rng), nodes, strict=True))
        return tuple(by_container[container] for container in range(gang.size))

    def place(
        self, site: Site, gangs: Sequence[Gang], rng: np.random.Generator
    ) -> list[Plan | None]:
        """Return the nodes of each job that is placed as a whole; the others hold what they got."""
        return [self._plan(gang, self.extend(site, gang, (), rng), rng) for gang in gangs]

    def choose(
        self, view: View, site: Site, gang: Callable[[int], Gang], rng: np.random.Generator
    ) -> RunSet:
        """Return the jobs that start, and those that hold more GPUs while they wait."""
        changes = list[Run]()
        for job in view.jobs:
            run = view.run(job)
            if run is not None and not run.waits:
                continue
            placed = () if run is None else run.tasks
            nodes = self.extend(site, gang(job), placed, rng)
            if plan := self._plan(gang(job), nodes, rng):
                changes.append(Run((job,), len(plan), tasks=plan))
            elif len(nodes) > len(placed):
                changes.append(Run((job,), len(nodes), tasks=tuple(nodes), waits=True))
        return RunSet(changes, keep=True)


@register("kubernetes")
@dataclass(frozen=True)
class Kubernetes(Pods):
    """Place every pod on the node with the fewest pods, drawn among equals."""

    def load(self, site: Site) -> Floats:
        """Return the pods of each node, one for each GPU in use."""
        return site.used


@register("kubeflow")
@dataclass(frozen=True)
class Kubeflow(Kubernetes):
    """Place pods as Kubernetes does: no gang scheduler is configured; only the draws differ."""


@register("hived")
@dataclass(frozen=True)
class HiveD(Pods, Pack):
    """Place every pod on the node with the most GPUs in use, in the order of the job's template.

    Parameters
    ----------
    hived_order : {"template", "random"}
        Workers before parameter servers, or any order: pods are created concurrently.
    """

    hived_order: Literal["template", "random"] = "template"

    baseline: ClassVar[Baseline | None] = PACK

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Return workers, then parameter servers, or a drawn order."""
        if self.hived_order == "random":
            return [int(container) for container in rng.permutation(gang.size)]
        return [*range(gang.num_ps, gang.size), *range(gang.num_ps)]
