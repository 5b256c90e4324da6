"""Themis: GPUs to the job whose finish time suffers most, on leases or by shares of time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from repro.base.assign import assign
from repro.base.compiled import njit
from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.engine.elastic import ruled
from repro.model.decision import Decision
from repro.model.elastic import EVENTS, HOLDERS, NOW, SHOWN, Elastic, Jobs, Rule, State, give
from repro.model.policy import register
from repro.model.view import View
from repro.policies.pcs._themis_shares import FairShares

LEASES, SHARES = FORMS = ("leases", "shares")
#: Rows of own memory. By place in the list of those present: their rows in the trace; places of the
#: worst off, best last; places of those who ask for more than one GPU; whether an offer was made;
#: places that got one, in order. Then places of `State.holders`; entry 0: how many are present.
_LIST, _WORST, _WIDE, _TAKEN, _PICKED, _HOLD, _NUMBER = range(7)
#: By place, so that loops run through neighbours: work left and work (s on one GPU), submission,
#: GPUs asked for, what `State.seen` says, rho if offered the GPUs left, and the finish time in a
#: fair share of the cluster (s).
_LEFT, _WORK, _SUBMIT, _ASKED, _SHOWN, _BORN, _RHO, _FAIR = range(8)


@njit()
def _admit(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job at the end of the list."""
    place = s.whole[_NUMBER, 0]
    own = s.real
    s.whole[_LIST, place] = job
    own[_LEFT, place] = s.left[job] * jobs.error[job]
    own[_WORK, place] = jobs.work[job]
    own[_SUBMIT, place] = jobs.submit[job]
    own[_ASKED, place] = jobs.asked[job]
    own[_SHOWN, place] = s.seen[0, job] - s.seen[2, job]
    own[_BORN, place] = 1 - s.seen[1, job]
    s.whole[_NUMBER, 0] += 1


@njit()
def _retire(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Take a job out of the list; those behind it move up."""
    number = s.whole[_NUMBER, 0]
    place = 0
    hold = s.whole[_HOLD]
    while s.whole[_LIST, place] != job:
        place += 1
    assign(s.whole[_LIST, place : number - 1], s.whole[_LIST, place + 1 :])
    for row in range(_RHO):
        assign(s.real[row, place : number - 1], s.real[row, place + 1 :])
    for at in range(s.tally[HOLDERS]):
        hold[at] = -1 if hold[at] == place else hold[at] - (hold[at] > place)
    s.whole[_NUMBER, 0] -= 1


@njit(error_model="numpy")
def _rate(jobs: Jobs, s: State, number: int) -> None:
    """Compute rho of everyone who is offered all GPUs, or what it asks for."""
    for at in range(s.tally[HOLDERS]):
        if s.whole[_HOLD, at] >= 0:
            job = s.holders[at]
            s.real[_LEFT, s.whole[_HOLD, at]] = s.left[job] * jobs.error[job]
    # two loops over few rows each: the compiler takes several jobs at once through them
    gpus = float(jobs.gpus)
    events = float(s.tally[EVENTS])
    shown = float(s.tally[SHOWN])
    seen = s.real[_SHOWN]
    born = s.real[_BORN]
    work = s.real[_WORK]
    asked = s.real[_ASKED]
    fair = s.real[_FAIR]
    rho = s.real[_RHO]
    for place in range(number):
        share = gpus / ((seen[place] + shown) / (born[place] + events))
        fair[place] = work[place] / min(share, asked[place])
    now = s.clock[NOW]
    parts = jobs.per_second
    left = s.real[_LEFT]
    submit = s.real[_SUBMIT]
    for place in range(number):
        waited = (now - submit[place]) / parts
        rho[place] = (waited + left[place] / min(gpus, asked[place])) / fair[place]


@njit()
def _worse(rho: Floats, place: int, other: int) -> bool:
    """Tell whether a job is worse off than another; of equals the earlier arrival is."""
    return bool(rho[place] > rho[other] or (rho[place] == rho[other] and place < other))


@njit()
def _sink(worst: Ints, rho: Floats, count: int, place: int) -> None:
    """Put a place instead of that on top into a heap with the best off on top."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _worse(rho, worst[child], worst[child + 1]):
            child += 1
        if _worse(rho, worst[child], place):
            break
        worst[at] = worst[child]
        at = child
    worst[at] = place


@njit()
def _list_worst(s: State, number: int, gpus: int) -> int:
    """List the worst off who got no offer and ask for no more GPUs than are left; return count.

    Each takes a GPU or more, so that as many as there are GPUs will do.
    """
    worst = s.whole[_WORST]
    rho = s.real[_RHO]
    taken = s.whole[_TAKEN]
    asked = s.real[_ASKED]
    count = 0
    for place in range(number):
        if taken[place] == 1 or asked[place] > gpus:
            continue
        if count == gpus:
            if rho[place] > rho[worst[0]]:
                _sink(worst, rho, count, place)
            continue
        at = count
        while at > 0 and _worse(rho, worst[(at - 1) // 2], place):
            worst[at] = worst[(at - 1) // 2]
            at = (at - 1) // 2
        worst[at] = place
        count += 1
    for last in range(count - 1, 0, -1):
        top = worst[0]
        _sink(worst, rho, last, worst[last])
        worst[last] = top
    return count


@njit(error_model="numpy")
def _share(jobs: Jobs, how: int, s: State) -> None:
    """Offer the GPUs left to the job of largest rho, again and again.

    While the GPUs left are no fewer than a job asks for, its rho stands still: of these the worst
    off are sorted once. Those that ask for more are looked at anew for every offer.
    """
    number = s.whole[_NUMBER, 0]
    asked = s.real[_ASKED]
    rho = s.real[_RHO]
    worst = s.whole[_WORST]
    wide = s.whole[_WIDE]
    taken = s.whole[_TAKEN]
    picked = s.whole[_PICKED]
    _rate(jobs, s, number)
    taken[:number] = 0
    wides = 0
    widest = 1.0
    for place in range(number):
        if asked[place] > 1.0:
            wide[wides] = place
            wides += 1
            widest = max(widest, asked[place])
    left = jobs.gpus
    count = 0
    following = 0
    listed = _list_worst(s, number, left)
    while left > 0 and count < number:
        while following < listed and asked[worst[following]] > left:
            following += 1
        if following == listed and listed > 0:
            listed = _list_worst(s, number, left)
            following = 0
        chosen = worst[following] if following < listed else -1
        if left < widest:
            for place in wide[:wides]:
                if taken[place] == 0 and asked[place] > left:
                    waited = (s.clock[NOW] - s.real[_SUBMIT, place]) / jobs.per_second
                    rho[place] = (waited + s.real[_LEFT, place] / left) / s.real[_FAIR, place]
                    if chosen < 0 or _worse(rho, place, chosen):
                        chosen = place
        following += following < listed and chosen == worst[following]
        taken[chosen] = 1
        picked[count] = chosen
        left -= min(left, int(asked[chosen]))
        count += 1
    for at in range(s.tally[HOLDERS]):
        if s.whole[_HOLD, at] >= 0 and taken[s.whole[_HOLD, at]] == 0:
            s.gpus[s.holders[at]] = 0.0
    left = jobs.gpus
    for at in range(count):
        job = s.whole[_LIST, picked[at]]
        s.holders[at] = job
        s.whole[_HOLD, at] = picked[at]
        give(jobs, s, job, float(min(left, jobs.asked[job])))
        left -= min(left, jobs.asked[job])
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

    families = ("ftf",)

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
    leases: ClassVar[Any] = ruled(_admit, _retire, _share, 8, 7)

    def __post_init__(self) -> None:
        # form ``shares`` keeps gangs whole and reads more; the class's values are those of leases
        if self.form == SHARES:
            object.__setattr__(self, "elastic", False)
            object.__setattr__(self, "needs", self.needs | {"iteration_time"})

    @property
    def rule(self) -> Rule | None:  # type: ignore[override]
        """The compiled rule; form ``shares`` has none."""
        return self.leases if self.form == LEASES else None

    @property
    def lease_s(self) -> float:
        """Seconds after the last event at which GPUs are handed out anew."""
        return self.lease

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        if self.form not in FORMS:
            raise ParamError(f"themis: form is {self.form!r}; accepted: {', '.join(FORMS)}")
        lease = self.lease
        start = self.initial_service
        if self.form == LEASES:
            if not lease > 0:
                raise ParamError(f"themis: lease is {lease}; give a positive number of seconds")
            return super().session(view)
        if not 0 <= start < math.inf:
            raise ParamError(f"themis: initial_service is {start}; give seconds, 0 or more")
        return FairShares(view, bool(self.iterations_in_denominator), start)
