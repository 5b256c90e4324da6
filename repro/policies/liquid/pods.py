"""Schedulers that know pods and no gangs: Kubernetes, Kubeflow, HiveD."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Run, RunSet
from repro.core.policy import register
from repro.core.view import View
from repro.placement.network import TIE, Gang, Site
from repro.policies.liquid._containers import Containers, Plan
from repro.typing import Floats, Ints


@dataclass(frozen=True)
class Pods(Containers):
    """Pods one by one in order of arrival; a job starts when its last pod has a GPU.

    Until then its pods hold theirs. A pod that finds no room tries again at the next event, after
    those before it. Liquid, TPDS 2022, section 7.1; the schedulers' defaults are public.
    """

    draws: ClassVar[bool] = True

    @abstractmethod
    def load(self, site: Site, pods: Ints) -> Floats:
        """Return what is least at the node wanted; ``pods`` are those placed on each node."""

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Return the containers of a job in the order in which their pods are created."""
        return range(gang.size)

    def _extend(
        self, site: Site, gang: Gang, placed: list[int], pods: Ints, rng: np.random.Generator
    ) -> list[int]:
        """Return the nodes of the pods placed so far and of those that find room now."""
        nodes = list(placed)
        while len(nodes) < gang.size:
            opened = site.open(gang)
            if nodes:
                opened &= site.domain == site.domain[nodes[0]]
            if not opened.any():
                break
            load = np.where(opened, self.load(site, pods), np.inf)
            nodes.append(int(rng.choice(np.flatnonzero(load <= load.min() + TIE))))
            site.hold(nodes[-1:], gang)
            pods[nodes[-1]] += 1
        return nodes

    def _plan(self, gang: Gang, nodes: Sequence[int], rng: np.random.Generator) -> Plan:
        """Return the nodes of a whole job, parameter servers first."""
        by_container = dict(zip(self.order(gang, rng), nodes, strict=True))
        return tuple(by_container[container] for container in range(gang.size))

    def place(
        self, site: Site, gangs: Sequence[Gang], rng: np.random.Generator
    ) -> list[Plan | None]:
        """Return the nodes of each job that is placed as a whole; the others hold what they got."""
        pods, plans = site.used.astype(np.int64), list[Plan | None]()
        for gang in gangs:
            nodes = self._extend(site, gang, [], pods, rng)
            plans.append(self._plan(gang, nodes, rng) if len(nodes) == gang.size else None)
        return plans

    def choose(
        self, view: View, site: Site, gang: Callable[[int], Gang], rng: np.random.Generator
    ) -> RunSet:
        """Return the jobs that start, and those that hold more GPUs while they wait."""
        pods, changes = site.used.astype(np.int64), list[Run]()
        for job in view.jobs:
            run = view.run(job)
            if run is not None and not run.waits:
                continue
            placed = list(run.tasks) if run is not None else []
            one = gang(job)
            nodes = self._extend(site, one, placed, pods, rng)
            if len(nodes) == one.size:
                plan = self._plan(one, nodes, rng)
                changes.append(Run((job,), len(plan), tasks=plan))
            elif len(nodes) > len(placed):
                changes.append(Run((job,), len(nodes), tasks=tuple(nodes), waits=True))
        return RunSet(changes, keep=True)


@register("kubernetes")
@dataclass(frozen=True)
class Kubernetes(Pods):
    """Place every pod on the node with the fewest pods, drawn among equals."""

    def load(self, site: Site, pods: Ints) -> Floats:
        """Return the pods of each node."""
        return pods.astype(float)


@register("kubeflow")
@dataclass(frozen=True)
class Kubeflow(Kubernetes):
    """Place pods as Kubernetes does: no gang scheduler is configured; only the draws differ."""


@register("hived")
@dataclass(frozen=True)
class HiveD(Pods):
    """Place every pod on the node with the most GPUs in use, in the order of the job's template.

    Parameters
    ----------
    hived_order : {"template", "random"}
        Workers before parameter servers, or any order: pods are created concurrently.
    """

    hived_order: Literal["template", "random"] = "template"

    def load(self, site: Site, pods: Ints) -> Floats:
        """Return the share of idle GPUs."""
        return np.asarray(site.idle / site.total)

    def order(self, gang: Gang, rng: np.random.Generator) -> Sequence[int]:
        """Return workers, then parameter servers, or a drawn order."""
        if self.hived_order == "random":
            return [int(container) for container in rng.permutation(gang.size)]
        return [*range(gang.num_ps, gang.size), *range(gang.num_ps)]
