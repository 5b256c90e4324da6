"""Dominant Resource Fairness over GPUs, CPU cores and memory (Ghodsi et al., NSDI'11, Algorithm 1).

R_r is the capacity of the cluster for resource r, and U_ur the amount of it that the running jobs
of user u hold:

    dominant share of u = max over r of U_ur / R_r

At each event, the next job of the user with the least dominant share starts, if all its resources
are free. Then the dominant shares are computed again, until no waiting job fits. Running jobs keep
their resources, as in Algorithm 1, in Mesos and in YARN. The rule differs from Algorithm 1 in two
points: a job (a gang) takes the place of a task, and a job that does not fit is skipped, so that it
does not block smaller jobs.

The trace columns ``num_cpus`` (cores) and ``memory_mib`` (MiB) have the demands of the whole job,
the column ``user`` its user. Without users each job is a user of its own. All resources are
counted over the whole cluster. Only GPUs are placed on nodes. So a job may start on nodes that lack
its CPU cores or memory.

Ties: the user whose next job arrived first. The jobs of a user start in order of arrival.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats
from repro.model.baseline import Baseline
from repro.model.decision import RunSet
from repro.model.policy import Policy, register
from repro.model.settings import Above
from repro.model.view import View

#: The paper of the policy, which is none of the five.
PAPER = "Ghodsi et al., NSDI'11"

#: Relative excess of a sum of demands over the capacity that counts as rounding error.
ROUNDING = 1e-9


class _Resource(NamedTuple):
    """A resource besides GPUs."""

    #: trace column with the demands of the jobs
    column: str
    #: parameter of the policy with the capacity per GPU of the cluster
    parameter: str
    #: attribute of `Node` with the capacity
    of_node: str
    unit: str


_RESOURCES = (
    _Resource("num_cpus", "cpus_per_gpu", "cpus", "CPU cores"),
    _Resource("memory_mib", "memory_per_gpu", "memory_mib", "MiB of memory"),
)


@register("drf")
@dataclass(frozen=True)
class DRF(Policy):
    """Non-preemptive Dominant Resource Fairness of users over GPUs, CPU cores and memory.

    Parameters
    ----------
    cpus_per_gpu : float, optional
        CPU cores of the cluster per GPU. By default the cores of the nodes in the cluster file.
    memory_per_gpu : float, optional
        Memory of the cluster per GPU (MiB). By default the memory of the nodes in the cluster file.

    Reference: Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource
    Types", NSDI 2011, section 4.1, Algorithm 1.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.testing import small_trace
    >>> jobs = small_trace().assign(num_cpus=8.0, user=["a", "a", "a", "b", "b", "b"])
    >>> simulate(jobs, "1x4", DRF(cpus_per_gpu=4.0)).jobs["start_time"].tolist()
    [0.0, 1.0, 16.0, 5.0, 9.0, 41.0]
    """

    cpus_per_gpu: Annotated[float, Above(0, "CPU cores", finite=True)] | None = None
    memory_per_gpu: Annotated[float, Above(0, "MiB", finite=True)] | None = None

    needs = frozenset({"user", "num_cpus", "memory_mib"})
    requires = (("num_cpus", "memory_mib"),)
    pools_types = True
    baseline = Baseline(
        None,
        "without users each job is a user of its own, and all waiting jobs have share 0, so they "
        "start in order of arrival; give the column user",
        columns=("user",),
    )

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Decision function of one run.

        Raises
        ------
        TraceError
            If the trace has no resource besides GPUs, or a job demands more than the cluster has.
        ParamError
            If the capacity of a resource is unknown or 0, or a parameter has no effect.
        """
        return _Sharing(self, view).decide


class _Sharing:
    """Demands, capacities and users of one run."""

    def __init__(self, policy: DRF, view: View) -> None:
        used = [resource for resource in _RESOURCES if view.has_column(resource.column)]
        for resource in _RESOURCES:
            if resource not in used and getattr(policy, resource.parameter) is not None:
                raise ParamError(
                    f"policy {policy.name!r}: {resource.parameter} has no effect, as "
                    f"{view.source} has no column {resource.column}; leave it out"
                )
        if not used:
            raise TraceError(
                f"{view.source}: policy {policy.name!r} needs the column num_cpus (cores) or "
                "memory_mib (MiB); over GPUs alone, DRF is max-min fairness of the GPUs held: take "
                "max-min"
            )
        demands = [view.widths]
        capacities = [float(view.cluster.num_gpus)]
        for resource in used:
            demands.append(np.asarray(view.column(resource.column), dtype=float))
            capacities.append(_capacity(policy, resource, view))
            _refuse_too_large(resource, demands[-1], capacities[-1], view)
        num_jobs = len(view.widths)
        #: demands of each job: GPUs, then the resources of the trace
        self._demands: list[tuple[float, ...]] = list(zip(*np.array(demands).tolist(), strict=True))
        self._capacities = capacities
        users = view.column("user") if view.has_column("user") else np.arange(num_jobs)
        #: user of each job, as a number
        self._user: list[int] = pd.factorize(users)[0].tolist()

    def decide(self, view: View) -> RunSet:
        """Keep all running jobs, and start waiting jobs of the users with the least shares."""
        running = view.running
        held: dict[int, list[float]] = {}
        free = list(self._capacities)
        for job in running:
            self._give(job, held, free)
        waiting: dict[int, list[int]] = {}
        for job in view.jobs:
            if not view.is_running(job):
                waiting.setdefault(self._user[job], []).append(job)
        # the first job of a user is the last of the list
        for jobs in waiting.values():
            jobs.reverse()
        heap = [(self._share(held, user), jobs.pop(), user) for user, jobs in waiting.items()]
        heapify(heap)
        starts: list[int] = []
        # every job demands a GPU or more
        while heap and free[0] >= 1.0:
            _, job, user = heappop(heap)
            if self._fits(job, free):
                self._give(job, held, free)
                starts.append(job)
            if waiting[user]:
                heappush(heap, (self._share(held, user), waiting[user].pop(), user))
        return RunSet([*running, *starts])

    def _share(self, held: dict[int, list[float]], user: int) -> float:
        """Dominant share of a user."""
        amounts = held.get(user)
        if amounts is None:
            return 0.0
        return max(
            amount / capacity for amount, capacity in zip(amounts, self._capacities, strict=True)
        )

    def _fits(self, job: int, free: list[float]) -> bool:
        """Whether all resources that the job demands are free."""
        return all(
            demand <= amount + ROUNDING * capacity
            for demand, amount, capacity in zip(
                self._demands[job], free, self._capacities, strict=True
            )
        )

    def _give(self, job: int, held: dict[int, list[float]], free: list[float]) -> None:
        """Move the resources of a job from the free resources to its user."""
        amounts = held.setdefault(self._user[job], [0.0] * len(free))
        for number, demand in enumerate(self._demands[job]):
            amounts[number] += demand
            free[number] -= demand


def _capacity(policy: DRF, resource: _Resource, view: View) -> float:
    """Capacity of the cluster for a resource: the parameter of the policy, or the sum of nodes."""
    cluster = view.cluster
    per_gpu = getattr(policy, resource.parameter)
    if per_gpu is not None:
        return float(per_gpu) * cluster.num_gpus
    # no job gets onto a node whose GPUs other work holds
    nodes = [node for node in cluster.nodes if node.gpus]
    capacity = math.fsum(getattr(node, resource.of_node) for node in nodes)
    if capacity == 0:
        raise ParamError(
            f"policy {policy.name!r}: {cluster} has no {resource.unit}; give "
            f"{resource.parameter} (--set {resource.parameter}=…), or nodes with {resource.of_node}"
        )
    if math.isinf(capacity):
        raise ParamError(
            f"policy {policy.name!r}: the {resource.unit} of {cluster} are unknown; give "
            f"{resource.parameter} (--set {resource.parameter}=…), or a cluster file in which "
            f"every node has {resource.of_node}"
        )
    return capacity


def _refuse_too_large(resource: _Resource, demands: Floats, capacity: float, view: View) -> None:
    """Raise TraceError for the first job that demands more of a resource than the cluster has."""
    too_large = np.flatnonzero(demands > capacity * (1 + ROUNDING))
    if too_large.size:
        job = int(too_large[0])
        raise TraceError(
            f"{view.source}: {view.row(job)} demands {demands[job]:g} {resource.unit} and can "
            f"never run on {view.cluster}, which has {capacity:g}; use a larger cluster or drop "
            "the job"
        )
