"""Liquid's system optimisations: GPU sharing, pre-scheduling and event-driven reports.

Liquid, TPDS 2022, sections 6.1 to 6.3, with the rules of the public scheduler. A waiting job j of
one container may use the GPU of a running job i of one container that has its GPU alone. The memory
of the GPU has to exceed the needs of both. Trace columns estimate both jobs alone. The first rule
that applies decides:

1. Sharing: if used GPUs / all GPUs >= load and u_i + u_j < 100 share, with u the mean utilisation
   (%), the two jobs form a group. Job i is the candidate of least u_i.
2. Vacant GPU: j starts on its own.
3. Pre-scheduling: if no GPU is idle, j launches at

       t = start_i + total_i - post_i - pre_j - ahead_s

   with total the run time and pre and post its parts before and after training (s). Job i is the
   candidate of least t. Job j trains once i has ended.

If no rule applies, j and all jobs behind it wait. With ``heartbeat_s``, nodes report every
``heartbeat_s`` seconds, and all decisions follow the reports.

Ties: equal u_i and equal t go to the job that arrived first.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.model.decision import Run, RunSet
from repro.model.performance import Overhead, Performance
from repro.model.rules import Completions
from repro.model.settings import Above, Between, InUnit
from repro.model.view import View
from repro.perf.overhead import Phases
from repro.placement.network import Gang, NodeResources
from repro.policies.liquid._containers import PACK, Chooser, Containers, GangOf, Plan
from repro.policies.liquid.gpu_sharing import ByUtilisation

#: Trace column with the mean utilisation of a job alone (%).
_UTILISATION = "gpu_util"
#: Trace columns with the run time of a job alone, and its parts before and after training (s).
_TIMES = ("total_s", "pre_s", "post_s")
#: Rounding error of a launch time (s).
_ROUNDING_S = 1e-9


@dataclass(frozen=True)
class OptimisedContainers(Containers):
    """Containers with the system optimisations of Liquid, each off unless set.

    Parameters
    ----------
    share : float, optional
        Jobs of one container share a GPU while their estimated utilisations (column ``gpu_util``,
        %) sum to less than 100 times this value, and their memory fits. The public scheduler has
        1.3.
    load : float
        Fraction of all GPUs in use at or above which jobs share a GPU.
    ahead_s : float, optional
        Without an idle GPU, a job of one container launches on the GPU of a running job. The launch
        ends ``ahead_s`` seconds before the training of the running job ends. The times follow from
        columns ``total_s``, ``pre_s`` and ``post_s``: run time, and its parts before and after
        training. The public scheduler has 15. An early launch saves time only if launches take
        time (`repro.perf.overhead.Phases`, in Python).
    heartbeat_s : float, optional
        Seconds between reports of the nodes, at which completions are noticed. By default they are
        noticed at once.

    Reference: Liquid, TPDS 2022, sections 6.1 to 6.3.
    """

    share: Annotated[float, Above(0)] | None = None
    load: Annotated[float, Between(0, 1)] = 0.75
    ahead_s: Annotated[float, InUnit("seconds")] | None = None
    heartbeat_s: Annotated[float, Above(0, "seconds")] | None = None

    needs: ClassVar[frozenset[str]] = Containers.needs | {_UTILISATION, *_TIMES}
    baseline = PACK.also("share", "ahead_s", "heartbeat_s")
    time_fields: ClassVar[tuple[str, ...]] = ("ahead_s", "heartbeat_s")

    @property
    def interval(self) -> float | None:
        """Seconds between decisions, which follow the reports."""
        return self.heartbeat_s

    def completions(self) -> Completions:
        """Completions are noticed at the next report."""
        # infinity: at decisions only, and these follow the reports
        return Completions(poll_s=0.0 if self.heartbeat_s is None else math.inf)

    def performance(self) -> Performance | None:
        """Model of run times, or of the speed of jobs that share a GPU."""
        model = super().performance()
        if model is None and self.share is not None:
            return ByUtilisation()
        return model

    def overhead(self) -> Overhead | None:
        """Phases of length 0.

        With them a job runs on when its group changes, and trains once its hosts have ended.
        """
        return None if self.share is None and self.ahead_s is None else Phases({}, {})

    def chooser(self, view: View) -> Chooser:
        """Decision function of one simulation."""
        # Every simulation looks up all columns, as a policy must read what its `needs` declares.
        present = {name for name in (_UTILISATION, *_TIMES) if view.has_column(name)}
        required: list[str] = []
        if self.share is not None:
            required.append(_UTILISATION)
        if self.ahead_s is not None:
            required += _TIMES
        if missing := [name for name in required if name not in present]:
            raise PolicyError(
                f"policy {self.name!r} needs trace column {', '.join(missing)} (estimate for the "
                f"job alone, in % or s); add it, or leave share and ahead_s out"
            )
        if not required:
            return super().chooser(view)
        return _Session(self, view).choose


class _Session:
    """State of one simulation: estimates of all jobs, starts of running jobs."""

    def __init__(self, policy: OptimisedContainers, view: View) -> None:
        self.policy = policy
        unknown = np.full(len(view.widths), math.nan)
        #: mean utilisation of each job alone (%), (jobs,)
        self.util: Floats = unknown
        #: run time of each job alone, and its parts before and after training (s), (jobs,)
        self.total: Floats = unknown
        self.pre: Floats = unknown
        self.post: Floats = unknown
        if policy.share is not None:
            self.util = view.column(_UTILISATION)
        if policy.ahead_s is not None:
            self.total, self.pre, self.post = map(view.column, _TIMES)
        #: start of each running job (s). When the host of a job ends, the start becomes this
        #: instant minus the job's time before training
        self.start: dict[int, float] = {}

    def choose(
        self, view: View, site: NodeResources, gang_of: GangOf, rng: np.random.Generator
    ) -> RunSet:
        """Start waiting jobs in order of arrival, until one has to wait."""
        decision = _Decision(self, view, site, gang_of, rng)
        decision.continue_alone()
        wake = math.inf
        for job in view.jobs:
            if job in decision.running:
                continue
            launch = decision.try_start(job)
            if launch > view.now + _ROUNDING_S:
                wake = launch
                break
            self.start[job] = view.now
        return RunSet([*decision.runs.values()], wake=wake, keep=True)


class _Decision:
    """One decision: the runs that start or change, and the jobs that have their GPU alone."""

    def __init__(
        self,
        session: _Session,
        view: View,
        site: NodeResources,
        gang_of: GangOf,
        rng: np.random.Generator,
    ) -> None:
        self._session = session
        self._policy = session.policy
        self._view = view
        self._site = site
        self._gang_of = gang_of
        self._rng = rng
        self.running = {job: run for job in view.running if (run := view.run(job)) is not None}
        #: first member -> run that starts or changes
        self.runs: dict[int, Run] = {}
        #: job of one container, alone on its GPU -> its run
        self._alone: dict[int, Run] = {}

    def continue_alone(self) -> None:
        """Continue running jobs alone once their partner or host has ended.

        The method also lists the jobs of one container that have their GPU alone.
        """
        hosts = {host for run in self.running.values() for host in run.hosts}
        for job, run in self.running.items():
            companions = {*run.jobs, *run.hosts} - {job}
            if companions & self.running.keys():
                continue
            if run.hosts:
                self._session.start[job] = self._view.now - self._session.pre[job]
                self._site.allocate(run.tasks, self._gang_of(job))
            if companions:
                run = Run((job,), 1, tasks=run.tasks)
                self.runs[job] = run
            if run.gpus == 1 and job not in hosts:
                self._alone[job] = run

    def try_start(self, job: int) -> float:
        """Start a waiting job if it can start, and return the time of its start (s).

        The time is later than now if the job waits, and infinite if it is not known.
        """
        gang = self._gang_of(job)
        candidates = self._with_memory_for(gang)
        partner = self._partner(job, candidates)
        if partner is not None:
            run = Run((partner, job), 1, tasks=self._alone.pop(partner).tasks)
            # moves the partner to the end of the decision
            self.runs.pop(partner, None)
            self.runs[partner] = run
            return self._view.now
        plan = self._plan(job, gang)
        if plan is not None:
            self._site.allocate(plan, gang)
            run = Run((job,), len(plan), tasks=plan)
            self.runs[job] = run
            if gang.size == 1:
                self._alone[job] = run
            return self._view.now
        host, launch = self._host(job, candidates)
        if host is not None and launch <= self._view.now + _ROUNDING_S:
            tasks = self._alone.pop(host).tasks
            self.runs[job] = Run((job,), 1, tasks=tasks, hosts=(host,), shared=1)
        return launch

    def _with_memory_for(self, gang: Gang) -> list[int]:
        """Jobs alone on a GPU that also has the memory for a gang of one container.

        There are none for a gang of several containers.
        """
        if gang.size > 1:
            return []
        memory = self._site.gpu_mem_mb
        return [
            other
            for other, run in self._alone.items()
            if gang.gpu_mem_mb + self._gang_of(other).gpu_mem_mb < memory[run.tasks[0]]
        ]

    def _partner(self, job: int, candidates: list[int]) -> int | None:
        """Candidate of least utilisation with which the job may share a GPU."""
        limit = self._policy.share
        load = self._site.used.sum() / self._site.total.sum()
        if limit is None or load < self._policy.load:
            return None
        util = self._session.util
        # the quotient, not 100 * limit, whose rounding lets 110 % pass for a limit of 1.1
        below_limit = [other for other in candidates if (util[job] + util[other]) / 100 < limit]
        return min(below_limit, key=util.__getitem__, default=None)

    def _plan(self, job: int, gang: Gang) -> Plan | None:
        """Plan of a job on idle GPUs."""
        plan = self._policy.plan(self._site, gang, self._rng)
        if plan is None and not self.running and not self.runs:
            return self._policy.in_one_domain(self._view, job, self._site, gang, self._rng)
        return plan

    def _host(self, job: int, candidates: list[int]) -> tuple[int | None, float]:
        """Candidate on whose GPU the job can launch first, and the launch time (s).

        None and infinity if the job cannot launch on a GPU in use.
        """
        ahead = self._policy.ahead_s
        if ahead is None or self._site.idle.any():
            return None, math.inf
        session = self._session
        launch = {
            other: session.start[other]
            + session.total[other]
            - session.post[other]
            - session.pre[job]
            - ahead
            for other in candidates
        }
        host = min(launch, key=launch.__getitem__, default=None)
        return host, math.inf if host is None else float(launch[host])
