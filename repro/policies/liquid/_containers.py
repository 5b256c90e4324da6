"""Base of Liquid's policies: jobs in order of arrival, one node for each container.

Liquid, TPDS 2022, section 5. Job i has num_ps parameter servers and num_w workers. A plan k names
the node of each container, parameter servers first. Containers hold one GPU each. All containers of
a job start at once (gang).

Ties: jobs that arrive together go in the order of the trace.
"""

import zlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from repro.base.errors import PolicyError, refuse_unknown
from repro.model.baseline import Baseline
from repro.model.decision import Run, RunSet
from repro.model.performance import Performance
from repro.model.policy import Policy
from repro.model.view import View
from repro.perf.parameter_server import RUN_TIME_MODELS, default_num_ps, named
from repro.placement.network import DEFAULT_BANDWIDTH_MB_S, DEFAULT_GPU_MEM_MB, Gang, NodeResources

#: Node of each container of a job, parameter servers first.
Plan = tuple[int, ...]
#: Job -> its gang.
GangOf = Callable[[int], Gang]
#: (view, idle resources of the nodes, gang of each job, random generator) -> decision.
Chooser = Callable[[View, NodeResources, GangOf, np.random.Generator], RunSet]

#: Without run times of plans, completion times do not depend on the plans if every container fits
#: every node, all nodes are in one domain, and no node fails. They are then those of liquid-pack.
PACK = Baseline(
    "liquid-pack",
    "without run times of plans a job takes as long on any nodes; give --set times=t4 (or "
    "measured, k80), or the columns gpu_mem_mb and bandwidth_mb_s, which limit where jobs fit",
    parameters=("times",),
    columns=("gpu_mem_mb", "bandwidth_mb_s"),
    model=True,
    domains=True,
    failures=True,
)


@dataclass(frozen=True)
class Containers(Policy):
    """Jobs in order of arrival; the first job without a plan blocks all jobs behind it.

    Parameters
    ----------
    times : str, optional
        Run times of plans: ``measured``, ``k80`` or ``t4`` (`repro.perf.parameter_server`). By
        default a job takes its duration under any plan. Trace column ``iterations`` is N of Eq 1.
        With column ``iteration_time`` a job takes its duration on one node, and longer elsewhere.

    Notes
    -----
    Optional trace columns are ``num_ps`` (default: one if the job has more than one GPU), and the
    needs of a container, ``gpu_mem_mb`` (default 8192) and ``bandwidth_mb_s`` (default 100).
    """

    times: str | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"num_ps", "gpu_mem_mb", "bandwidth_mb_s"})
    placement: ClassVar[str] = "wished"
    names_types: ClassVar[bool] = False
    baseline: ClassVar[Baseline | None] = PACK
    #: whether plans depend on the seed
    is_random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times is not None:
            refuse_unknown(f"policy {self.name!r}: times cannot be", [self.times], RUN_TIME_MODELS)

    def performance(self) -> Performance | None:
        """Model of run times, if the policy names one."""
        return named(self.times, relatives=True) if self.times else None

    @abstractmethod
    def plan(self, site: NodeResources, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Plan of one job. None: it has to wait."""

    def place(
        self, site: NodeResources, gangs: Sequence[Gang], rng: np.random.Generator
    ) -> list[Plan | None]:
        """Plan of each job, in order, up to the first that has to wait, allocated on ``site``."""
        plans: list[Plan | None] = [None] * len(gangs)
        for number, gang in enumerate(gangs):
            plan = self.plan(site, gang, rng)
            if plan is None:
                break
            plans[number] = plan
            site.allocate(plan, gang)
        return plans

    def per_node(self) -> float:
        """Largest number of containers of a job that the policy puts on one node."""
        return np.inf

    def generator(self, seed: int) -> np.random.Generator:
        """Random generator of one simulation."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode())])

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Decision function of one simulation."""
        rng = self.generator(view.seed if self.is_random else 0)
        gang_of = _GangsOfTrace(view)
        choose = self.chooser(view)
        return lambda view: choose(view, _idle_resources(view, gang_of), gang_of, rng)

    def never_runs(self, view: View) -> Callable[[int], str]:
        """Reason why a job fits no domain of the empty cluster."""
        gang_of = _GangsOfTrace(view)
        site = NodeResources(view.cluster)

        def reason(job: int) -> str:
            gang = gang_of(job)
            capacity = site.capacity(gang, self.per_node())
            if gang.size <= capacity:
                return ""
            return f"can never be placed by {self.name!r}: {_too_large(gang, capacity)}"

        return reason

    def chooser(self, view: View) -> Chooser:
        """Function that chooses the starts of a decision, by default `choose`.

        It is made once per simulation.
        """
        return self.choose

    def choose(
        self, view: View, site: NodeResources, gang_of: GangOf, rng: np.random.Generator
    ) -> RunSet:
        """Start the waiting jobs that get a plan on the idle resources."""
        waiting = [job for job in view.jobs if not view.is_running(job)]
        gangs = [gang_of(job) for job in waiting]
        plans = self.place(site, gangs, rng)
        if waiting and plans[0] is None and not view.running:
            # No job will end, so waiting changes nothing.
            plans[0] = self.in_one_domain(view, waiting[0], site, gangs[0], rng)
        starts = [
            Run((job,), len(plan), tasks=plan)
            for job, plan in zip(waiting, plans, strict=True)
            if plan is not None
        ]
        return RunSet(starts, keep=True)

    def in_one_domain(
        self, view: View, job: int, site: NodeResources, gang: Gang, rng: np.random.Generator
    ) -> Plan:
        """Plan of a job within the first domain where it fits, on an empty cluster.

        A policy that fills nodes of several domains may miss this plan. PolicyError if the
        job fits no domain.
        """
        for domain in np.unique(site.domain):
            idle_in_domain = np.where(site.domain == domain, site.idle, 0).tolist()
            plan = self.plan(NodeResources(view.cluster, idle_in_domain), gang, rng)
            if plan is not None:
                return plan
        raise PolicyError(
            f"job {view.job_id(job)!r} can never be placed by {self.name!r}: "
            f"{_too_large(gang, site.capacity(gang, self.per_node()))}"
        )


def _too_large(gang: Gang, capacity: int) -> str:
    """Why a gang fits no domain that takes ``capacity`` of its containers."""
    return (
        f"{gang.size} containers of {gang.gpu_mem_mb:g} MB of GPU memory and "
        f"{gang.bandwidth_mb_s:g} MB/s; the nodes of one domain take at most {capacity}"
    )


class _GangsOfTrace:
    """Gang of each job by the columns of the trace."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._widths = [int(width) for width in view.widths]
        self._num_ps = view.column("num_ps", -1)
        self._gpu_mem_mb = view.column("gpu_mem_mb", DEFAULT_GPU_MEM_MB)
        self._bandwidth_mb_s = view.column("bandwidth_mb_s", DEFAULT_BANDWIDTH_MB_S)

    def __call__(self, job: int) -> Gang:
        width = self._widths[job]
        num_ps = int(self._num_ps[job])
        if num_ps < 0:
            num_ps = default_num_ps(width)
        if num_ps > width:
            raise PolicyError(
                f"job {self._view.job_id(job)!r}: num_ps is {num_ps}, but it asks for {width} "
                f"GPUs; give at most one parameter server per GPU"
            )
        memory = float(self._gpu_mem_mb[job])
        return Gang(num_ps, width - num_ps, memory, float(self._bandwidth_mb_s[job]))


def _idle_resources(view: View, gang_of: GangOf) -> NodeResources:
    """Nodes with the resources that the running jobs leave idle."""
    site = NodeResources(view.cluster)
    # The members of a group have one run, and its GPU counts once.
    runs = {id(run): run for job in view.running if (run := view.run(job)) is not None}
    for run in runs.values():
        # A job with hosts uses the GPU of its hosts, which is allocated already.
        if not run.hosts:
            site.allocate(run.tasks, gang_of(run.jobs[0]))
    return site
