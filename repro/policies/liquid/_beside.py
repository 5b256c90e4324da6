"""Jobs of one container beside one other on its GPU: sharing, launching ahead of time (Liquid)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.base.errors import PolicyError
from repro.model.decision import Run, RunSet
from repro.model.performance import Overhead, Performance
from repro.model.rules import Completions
from repro.model.settings import Above, Between
from repro.model.view import View
from repro.perf.overhead import Phases
from repro.placement.network import Gang, Site
from repro.policies.liquid._containers import PACK, Chooser, Containers
from repro.policies.liquid.side_by_side import ByUtilisation

#: Trace columns with estimates of a job alone: mean utilisation (%); run time, and of it before
#: and after training (s).
_SHARES = ("gpu_util",)
_TIMES = ("total_s", "pre_s", "post_s")
_ROUNDING_S = 1e-9


@dataclass(frozen=True)
class Beside(Containers):
    """Containers, with the system's optimisations of Liquid: all off unless set.

    Parameters
    ----------
    share : float, optional
        Jobs of one container share a GPU while their predicted utilisations (column ``gpu_util``,
        %) add up to less than 100 times this, and their memory fits. The public scheduler has 1.3.
    load : float
        Part of all GPUs in use from which jobs share.
    ahead_s : float, optional
        A job of one container launches beside the job that holds the GPU, if none is vacant, this
        many seconds before it would have to for its launch to end with the other's training. Both
        follow from columns ``total_s``, ``pre_s`` and ``post_s``: the estimated run time, and what
        of it comes before and after training. The public scheduler has 15.
    heartbeat_s : float, optional
        Nodes report every so many seconds, and completions are noticed then; else at once.

    Reference: Liquid, TPDS 2022, sections 6.1 to 6.3.
    """

    share: Annotated[float, Above(0)] | None = None
    load: Annotated[float, Between(0, 1)] = 0.75
    ahead_s: float | None = None
    heartbeat_s: Annotated[float, Above(0, "seconds")] | None = None

    needs: ClassVar[frozenset[str]] = Containers.needs | {*_SHARES, *_TIMES}
    baseline = PACK.also("share", "ahead_s", "heartbeat_s")
    time_fields: ClassVar[tuple[str, ...]] = ("ahead_s", "heartbeat_s")

    @property
    def interval(self) -> float | None:
        """Decisions follow the reports."""
        return self.heartbeat_s

    def completions(self) -> Completions:
        """Completions wait for the next report."""
        return Completions(poll_s=0.0 if self.heartbeat_s is None else math.inf)

    def performance(self) -> Performance | None:
        """Return the model of run times, or of how fast jobs share."""
        return super().performance() or (None if self.share is None else ByUtilisation())

    def overhead(self) -> Overhead | None:
        """Return phases of no length: who gets company goes on, who launches ahead waits."""
        return None if self.share is None and self.ahead_s is None else Phases({}, {})

    def chooser(self, view: View) -> Chooser:
        """Return what decides one run."""
        wanted = _SHARES * (self.share is not None) + _TIMES * (self.ahead_s is not None)
        given = {name for name in (*_SHARES, *_TIMES) if view.has_column(name)}
        if lacks := [name for name in wanted if name not in given]:
            raise PolicyError(
                f"policy {self.name!r} needs trace column {', '.join(lacks)}, predicted of a job "
                f"alone (%, s); give it, or leave share and ahead_s off"
            )
        return _Neighbours(self, view).choose if wanted else super().chooser(view)


class _Neighbours:
    """One run of `Beside`."""

    def __init__(self, policy: Beside, view: View) -> None:
        self.policy = policy
        unknown = np.full(len(view.widths), math.nan)
        self.util = self.total = self.pre = self.post = unknown
        if policy.share is not None:
            (self.util,) = map(view.column, _SHARES)
        if policy.ahead_s is not None:
            self.total, self.pre, self.post = map(view.column, _TIMES)
        #: of running jobs: when their run began, as if they had launched on a GPU of their own
        self.since: dict[int, float] = {}

    def choose(
        self, view: View, site: Site, gang: Callable[[int], Gang], rng: np.random.Generator
    ) -> RunSet:
        """Return what starts, first in, first out, and who goes on without company."""
        policy = self.policy
        now = view.now
        starts = dict[int, Run]()
        alone = dict[int, Run]()
        wake = math.inf
        held = {job: run for job in view.running if (run := view.run(job)) is not None}
        hosts = {host for run in held.values() for host in run.hosts}
        for job, run in held.items():
            if any(other != job and other in held for other in (*run.jobs, *run.hosts)):
                continue
            if run.hosts:
                self.since[job] = now - self.pre[job]
                site.hold(run.tasks, gang(job))
            if run.hosts or len(run.jobs) > 1:
                starts[job] = run = Run((job,), 1, tasks=run.tasks)
            if run.gpus == 1 and job not in hosts:
                alone[job] = run
        for job in view.jobs:
            if job in held:
                continue
            one = gang(job)
            near = [
                other
                for other, run in (alone if one.size == 1 else {}).items()
                # the GPU has memory for both
                if one.gpu_mem_mb + gang(other).gpu_mem_mb < site.gpu_mem_mb[run.tasks[0]]
            ]
            partner = self._partner(job, near, site)
            plan = None if partner is not None else policy.plan(site, one, rng)
            if plan is None and not held and not starts:
                plan = policy.in_one_domain(view, job, site, one, rng)
            if partner is not None:
                run = Run((partner, job), 1, tasks=alone.pop(partner).tasks)
                starts.pop(partner, None)
            elif plan is not None:
                site.hold(plan, one)
                run = Run((job,), len(plan), tasks=plan)
                if one.size == 1:
                    alone[job] = run
            else:
                host, due = self._host(job, near, site)
                if host is None or due > now + _ROUNDING_S:
                    wake = due
                    break
                run = Run((job,), 1, tasks=alone.pop(host).tasks, hosts=(host,), shared=1)
            self.since[job] = now
            starts[run.jobs[0]] = run
        return RunSet([*starts.values()], wake=wake, keep=True)

    def _partner(self, job: int, near: list[int], site: Site) -> int | None:
        """Return the running job that the job shares with, the one of least utilisation."""
        limit = self.policy.share
        load = site.used.sum() / site.total.sum()
        if limit is None or load < self.policy.load:
            return None
        util = self.util
        fitting = [other for other in near if util[job] + util[other] < 100 * limit]
        return min(fitting, key=util.__getitem__, default=None)

    def _host(self, job: int, near: list[int], site: Site) -> tuple[int | None, float]:
        """Return the running job that the job launches beside, and when it may at the earliest."""
        ahead = self.policy.ahead_s
        if ahead is None or site.idle.any():
            return None, math.inf
        due = {
            other: self.since[other] + self.total[other] - self.post[other] - self.pre[job] - ahead
            for other in near
        }
        host = min(due, key=due.__getitem__, default=None)
        return host, math.inf if host is None else float(due[host])
