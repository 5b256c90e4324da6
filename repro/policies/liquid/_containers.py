"""What the policies of Liquid share: first in, first out, a node for each container of a job."""

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
from repro.perf.parameter_server import TIMES, named, num_servers
from repro.placement.network import DEFAULT_BANDWIDTH_MB_S, DEFAULT_GPU_MEM_MB, Gang, Site

Plan = tuple[int, ...]
#: (view, what is left of the nodes, gang of a job, random numbers) -> what starts
Chooser = Callable[[View, Site, Callable[[int], Gang], np.random.Generator], RunSet]

#: Where every container fits everywhere, a place makes no difference unless run times tell.
PACK = Baseline(
    "liquid-pack",
    "without run times of plans a job takes as long wherever it sits; give --set times=t4 (or "
    "measured, k80), or the columns gpu_mem_mb and bandwidth_mb_s, which limit where jobs fit",
    parameters=("times",),
    columns=("gpu_mem_mb", "bandwidth_mb_s"),
    model=True,
)


@dataclass(frozen=True)
class Containers(Policy):
    """Jobs in order of arrival; the first that cannot be placed blocks all behind it.

    Parameters
    ----------
    times : str, optional
        How long a plan takes: ``measured``, ``k80`` or ``t4`` (`repro.perf.parameter_server`); by
        default a job takes its duration wherever it sits. Trace column ``iterations`` is N of Eq 1.

    Notes
    -----
    Trace columns ``num_ps`` (one, if the job is wider than one GPU), ``gpu_mem_mb`` and
    ``bandwidth_mb_s`` of a container (8192 and 100) say what is to be placed.
    """

    times: str | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"num_ps", "gpu_mem_mb", "bandwidth_mb_s"})
    placement: ClassVar[str] = "wished"
    baseline: ClassVar[Baseline | None] = PACK
    #: places depend on the seed
    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times is not None:
            refuse_unknown(f"policy {self.name!r}: times cannot be", [self.times], TIMES)

    def performance(self) -> Performance | None:
        """Return the model of run times, if one is named."""
        return named(self.times) if self.times else None

    @abstractmethod
    def plan(self, site: Site, gang: Gang, rng: np.random.Generator) -> Plan | None:
        """Return the nodes of one job, parameter servers first; None: it has to wait."""

    def place(
        self, site: Site, gangs: Sequence[Gang], rng: np.random.Generator
    ) -> list[Plan | None]:
        """Return the nodes of each job, in order; ``site`` then holds them."""
        plans: list[Plan | None] = [None] * len(gangs)
        for number, gang in enumerate(gangs):
            plans[number] = plan = self.plan(site, gang, rng)
            if plan is None:
                break
            site.hold(plan, gang)
        return plans

    def per_node(self) -> float:
        """Return how many containers of a job a node may take, room aside."""
        return np.inf

    def generator(self, seed: int) -> np.random.Generator:
        """Return the random numbers of one run."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode())])

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the decision function of one run."""
        rng = self.generator(view.seed if self.draws else 0)
        widths = [int(width) for width in view.widths]
        servers = view.column("num_ps", -1)
        memory = view.column("gpu_mem_mb", DEFAULT_GPU_MEM_MB)
        links = view.column("bandwidth_mb_s", DEFAULT_BANDWIDTH_MB_S)

        def gang(job: int) -> Gang:
            width = widths[job]
            num_ps = int(servers[job])
            num_ps = num_servers(width) if num_ps < 0 else num_ps
            if num_ps > width:
                raise PolicyError(
                    f"job {view.job_id(job)!r}: num_ps is {num_ps}, but it asks for {width} GPUs; "
                    f"one for each container"
                )
            return Gang(num_ps, width - num_ps, float(memory[job]), float(links[job]))

        def site_of(view: View) -> Site:
            site = Site(view.cluster)
            runs = {id(run): run for job in view.running if (run := view.run(job)) is not None}
            for run in runs.values():
                if not run.hosts:
                    site.hold(run.tasks, gang(run.jobs[0]))
            return site

        choose = self.chooser(view)
        return lambda view: choose(view, site_of(view), gang, rng)

    def chooser(self, view: View) -> Chooser:
        """Return `choose`, or what decides one run in its place."""
        return self.choose

    def choose(
        self, view: View, site: Site, gang: Callable[[int], Gang], rng: np.random.Generator
    ) -> RunSet:
        """Return what starts now on what is left of the nodes."""
        waiting = [job for job in view.jobs if not view.is_running(job)]
        gangs = [gang(job) for job in waiting]
        plans = self.place(site, gangs, rng)
        if waiting and plans[0] is None and not view.running:
            # waiting changes nothing: perhaps one domain alone has the room
            plans[0] = self.in_one_domain(view, waiting[0], site, gangs[0], rng)
        starts = [
            Run((job,), len(plan), tasks=plan)
            for job, plan in zip(waiting, plans, strict=True)
            if plan is not None
        ]
        return RunSet(starts, keep=True)

    def in_one_domain(
        self, view: View, job: int, site: Site, gang: Gang, rng: np.random.Generator
    ) -> Plan:
        """Return the plan of a job that fits into one domain alone, on an empty cluster."""
        for domain in np.unique(site.domain):
            part = Site(view.cluster, np.where(site.domain == domain, site.idle, 0).tolist())
            plan = self.plan(part, gang, rng)
            if plan is not None:
                return plan
        raise PolicyError(
            f"job {view.job_id(job)!r} can never be placed by {self.name!r}: {gang.size} "
            f"containers of {gang.gpu_mem_mb:g} MB of GPU memory and {gang.bandwidth_mb_s:g} MB/s; "
            f"its candidates have room for {site.capacity(gang, self.per_node())}"
        )
