"""Themis: GPUs to the job whose finish time suffers most, on leases or by shares of time."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from repro.core.decision import Decision, Run, RunSet
from repro.core.elastic import Elastic, total_gpus
from repro.core.policy import register
from repro.core.view import View
from repro.errors import ParamError
from repro.perf.speedup import SpeedUp
from repro.policies.pcs._themis_shares import FairShares

LEASES, SHARES = FORMS = ("leases", "shares")


@register("themis")
@dataclass(frozen=True)
class Themis(Elastic):
    """The job whose finish time suffers most first; truthful jobs, no auction.

    Form ``leases`` (as PCS runs it): largest finish-time fairness rho = (time in system + work left
    / GPUs offered) / (work / min(G / N, D)) first, with N the mean number of jobs in the system
    over the events of the job's life.

    Form ``shares`` (as Muri's public simulator runs it): at every event, shares of time x in [0, 1]
    that minimise the largest (time in system + time left / x) / (time so far and time left in a
    cluster of one's own), where that cluster has ceil(G / N) GPUs for N jobs now. Jobs run, with
    the GPUs they ask for or not at all, in order of x / time run.

    Parameters
    ----------
    form : {"leases", "shares"}, optional
        Which of the two.
    lease : float
        Leases: seconds after the last event at which GPUs are handed out anew.
    speedup : SpeedUp
        Leases: curves that turn work at D GPUs into work on one GPU.
    iterations_in_denominator : bool, optional
        Shares: count the denominator in iterations while the numerator is in seconds, as the public
        simulator does by mistake, so that jobs of slow iterations go first.
    initial_service : float
        Shares: seconds a new job is taken to have run already; with 0, the public simulator's, jobs
        that never ran go before all others.

    Reference: Themis, NSDI 2020; PCS, arXiv 2401.10354, section 5.1; Muri's public simulator.
    """

    form: str | None = None
    lease: float = 600.0
    speedup: SpeedUp = field(default_factory=SpeedUp)
    iterations_in_denominator: bool | None = None
    initial_service: float = 0.0

    time_fields = ("lease", "initial_service")
    rule_values: ClassVar = {
        "paper": {"form": LEASES, "iterations_in_denominator": False},
        "muri": {"form": SHARES, "iterations_in_denominator": True},
    }

    needs = frozenset({"duration"})

    def __post_init__(self) -> None:
        # the forms differ in what they read, and form ``shares`` keeps gangs whole; an instance is
        # frozen, and the class's values are those of leases without curves
        if self.form == SHARES:
            object.__setattr__(self, "elastic", False)
            object.__setattr__(self, "needs", self.needs | {"iteration_time"})
        elif self.speedup.curves:
            object.__setattr__(self, "needs", self.needs | {"model"})

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        if self.form not in FORMS:
            raise ParamError(f"themis: form is {self.form!r}; accepted: {', '.join(FORMS)}")
        if self.form == LEASES and not self.lease > 0:
            raise ParamError(f"themis: lease is {self.lease}; give a positive number of seconds")
        if self.form == SHARES and not 0 <= self.initial_service < math.inf:
            raise ParamError(
                f"themis: initial_service is {self.initial_service}; give seconds, 0 or more"
            )
        if self.form == SHARES:
            return FairShares(view, bool(self.iterations_in_denominator), self.initial_service)
        return _Leases(self, view)


class _Leases:
    """One run of `Themis`: how many jobs each job has seen, and when the lease ends."""

    def __init__(self, policy: Themis, view: View) -> None:
        self.lease, self.speedup = policy.lease, policy.speedup
        #: model of each job; None where there are no curves
        self.models = view.column("model", "").tolist() if policy.speedup.curves else None
        #: sum and number of the counts each unfinished job has seen
        self.seen: dict[int, list[float]] = {}
        self.ends = math.inf

    def __call__(self, view: View) -> RunSet:
        """Count the events of this instant, then offer GPUs to the worst-off job first."""
        jobs = view.jobs
        self._count(jobs, view.now)
        self.ends = view.now + self.lease
        return RunSet(list(self._offers(view, jobs)), "exact", wake=self.ends)

    def _count(self, jobs: list[int], now: float) -> None:
        """Every event shows every present job the number of jobs just before it."""
        unfinished = set(jobs)
        gone = [job for job in self.seen if job not in unfinished]
        for job in gone:
            self._show(len(self.seen))
            del self.seen[job]
        # a completion restarts the lease, so that it does not end at the same instant
        if not gone and now >= self.ends:
            self._show(len(self.seen))
        for job in jobs:
            if job not in self.seen:
                self._show(len(self.seen))
                self.seen[job] = [len(self.seen) + 1.0, 1.0]

    def _show(self, count: int) -> None:
        """Show every present job a number of jobs."""
        for entry in self.seen.values():
            entry[0] += count
            entry[1] += 1

    def _offers(self, view: View, jobs: list[int]) -> Iterator[Run]:
        """Offer the GPUs left to the job of largest rho until none is left."""
        total = left = total_gpus(view)
        asked = np.array([view.gpus(job) for job in jobs], dtype=float)
        # work on one GPU per unit of work at the GPUs asked for
        scale = asked
        if self.models is not None:
            speed, models = self.speedup.speed, self.models
            scale = np.array([speed(str(models[job]), view.gpus(job)) for job in jobs])
        waited = view.now - np.array([view.submit(job) for job in jobs])
        work = scale * np.array([view.remaining(job) for job in jobs])
        mean = np.array([self.seen[job][0] / self.seen[job][1] for job in jobs])
        ideal = scale * np.array([view.duration(job) for job in jobs])
        ideal /= np.minimum(total / mean, asked)
        waiting = np.ones(len(jobs), dtype=bool)
        while left and waiting.any():
            rho = np.where(waiting, (waited + work / np.minimum(left, asked)) / ideal, -np.inf)
            row = int(rho.argmax())
            gpus = int(min(left, asked[row]))
            yield Run((jobs[row],), gpus)
            waiting[row] = False
            left -= gpus
