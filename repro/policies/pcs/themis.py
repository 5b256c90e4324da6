"""Themis: GPUs to the job whose finish time suffers most, on leases or by shares of time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from repro.compiled import njit
from repro.core.decision import Decision
from repro.core.elastic import HOLDERS, NOW, Elastic, Jobs, Rule, State, give, mean_jobs
from repro.core.policy import register
from repro.core.view import View
from repro.errors import ParamError
from repro.policies.pcs._themis_shares import FairShares
from repro.sim.elastic import clock
from repro.typing import Floats, Ints

LEASES, SHARES = FORMS = ("leases", "shares")
#: Rows of own memory: who is present, in order of arrival; places in this list of the worst off,
#: and of those who ask for more than one GPU; whether the job at a place got an offer; those who
#: did, in order; what each job is offered; entry 0: how many are present.
_LIST, _BEST, _WIDE, _TAKEN, _PICKED, _OFFER, _NUMBER = range(7)
#: By place: rho if offered the GPUs left, and the finish time in a fair share of the cluster (s).
_RHO, _FAIR = range(2)


@njit()
def _admit(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job at the end of the list."""
    s.whole[_LIST, s.whole[_NUMBER, 0]] = job
    s.whole[_NUMBER, 0] += 1


@njit()
def _retire(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Take a job out of the list."""
    number, place, row = s.whole[_NUMBER, 0], 0, s.whole[_LIST]
    while row[place] != job:
        place += 1
    row[place : number - 1] = row[place + 1 : number]
    s.whole[_NUMBER, 0] -= 1


@njit(error_model="numpy")
def _rho(jobs: Jobs, s: State, job: int, place: int, gpus: int) -> float:
    """Return the finish-time fairness of a job that is offered so many GPUs."""
    waited = (s.clock[NOW] - jobs.submit[job]) / jobs.per_second
    work = s.left[job] * jobs.error[job]
    return float((waited + work / min(gpus, jobs.asked[job])) / s.real[_FAIR, place])


@njit()
def _worse(rho: float, place: int, other: float, other_place: int) -> bool:
    """Tell whether a job is worse off than another; of equals the earlier arrival is."""
    return rho > other or (rho == other and place < other_place)


@njit()
def _keep(best: Ints, rho: Floats, count: int, room: int, place: int) -> int:
    """Keep a place among the ``room`` worst off, a heap with the best off on top; return count."""
    if count < room:
        at = count
        while at > 0:
            parent = (at - 1) // 2
            if _worse(rho[place], place, rho[best[parent]], best[parent]):
                break
            best[at] = best[parent]
            at = parent
        best[at] = place
        return count + 1
    if _worse(rho[place], place, rho[best[0]], best[0]):
        _sink(best, rho, count, place)
    return count


@njit()
def _sink(best: Ints, rho: Floats, count: int, place: int) -> None:
    """Replace the top of a heap of `_keep`."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _worse(
            rho[best[child]], best[child], rho[best[child + 1]], best[child + 1]
        ):
            child += 1
        if _worse(rho[best[child]], best[child], rho[place], place):
            break
        best[at] = best[child]
        at = child
    best[at] = place


@njit()
def _worst(jobs: Jobs, s: State, gpus: int) -> int:
    """List the worst off who got no offer and ask for no more GPUs than are left; return count."""
    best, rho, taken, count = s.whole[_BEST], s.real[_RHO], s.whole[_TAKEN], 0
    for place in range(s.whole[_NUMBER, 0]):
        if taken[place] == 0 and jobs.asked[s.whole[_LIST, place]] <= gpus:
            count = _keep(best, rho, count, gpus, place)
    for last in range(count - 1, 0, -1):
        top = best[0]
        _sink(best, rho, last, best[last])
        best[last] = top
    return count


@njit(error_model="numpy")
def _share(jobs: Jobs, how: int, s: State) -> None:
    """Offer the GPUs left to the job of largest rho, again and again.

    While the GPUs left are no fewer than a job asks for, its rho stands still: of these the worst
    off are sorted once. Those that ask for more are looked at anew for every offer.
    """
    number, jobs_at, wide = s.whole[_NUMBER, 0], s.whole[_LIST], s.whole[_WIDE]
    best, taken, rho, fair = s.whole[_BEST], s.whole[_TAKEN], s.real[_RHO], s.real[_FAIR]
    left, count, wides, widest = jobs.gpus, 0, 0, 0
    for place in range(number):
        job = jobs_at[place]
        asked = jobs.asked[job]
        fair[place] = jobs.work[job] / min(jobs.gpus / mean_jobs(s, job), float(asked))
        rho[place] = _rho(jobs, s, job, place, left)
        taken[place] = 0
        if asked > 1:
            wide[wides] = place
            wides += 1
            widest = max(widest, asked)
    picked, offer = s.whole[_PICKED], s.whole[_OFFER]
    listed, following = _worst(jobs, s, left), 0
    while left > 0 and count < number:
        while following < listed and jobs.asked[jobs_at[best[following]]] > left:
            following += 1
        if following == listed and listed > 0:
            listed, following = _worst(jobs, s, left), 0
        chosen = best[following] if following < listed else -1
        if left < widest:
            for place in wide[:wides]:
                job = jobs_at[place]
                if taken[place] == 0 and jobs.asked[job] > left:
                    rho[place] = _rho(jobs, s, job, place, left)
                    if chosen < 0 or _worse(rho[place], place, rho[chosen], chosen):
                        chosen = place
        following += following < listed and chosen == best[following]
        taken[chosen] = 1
        job = jobs_at[chosen]
        picked[count], offer[job] = job, min(left, jobs.asked[job])
        left -= offer[job]
        count += 1
    for job in s.holders[: s.tally[HOLDERS]]:
        if offer[job] == 0:
            s.gpus[job] = 0.0
    for place in range(count):
        job = s.holders[place] = picked[place]
        give(jobs, s, job, float(offer[job]))
        offer[job] = 0
    s.tally[HOLDERS] = count


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
    iterations_in_denominator: bool | None = None
    initial_service: float = 0.0

    time_fields = ("lease", "initial_service")
    rule_values: ClassVar = {
        "paper": {"form": LEASES, "iterations_in_denominator": False},
        "muri": {"form": SHARES, "iterations_in_denominator": True},
    }

    needs = frozenset({"duration"})
    leases: ClassVar[Any] = Rule(clock(_admit, _retire, _share), _admit, _retire, _share, 2, 7)

    def __post_init__(self) -> None:
        # form ``shares`` keeps gangs whole and reads more; the class's values are those of leases
        if self.form == SHARES:
            object.__setattr__(self, "elastic", False)
            object.__setattr__(self, "needs", self.needs | {"iteration_time"})
        elif self.form == LEASES:
            object.__setattr__(self, "rule", self.leases)

    @property
    def lease_s(self) -> float:
        """Seconds after the last event at which GPUs are handed out anew."""
        return self.lease

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
        return super().session(view)
