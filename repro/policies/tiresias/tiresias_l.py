"""Tiresias-L: K queues of Discretised 2DAS (Tiresias, section 3.2.3), demotion, promotion.

A job leaves queue k when W_J t_J reaches Q_k. Key: queue, then first start, then submission.
Ties: order in the trace. With ``history_ties`` a queue is a list that keeps its own order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Annotated, ClassVar

from repro.base.errors import ParamError
from repro.engine.select.resort import Resort
from repro.model.policy import Key, Order, Ordering, Steady, register
from repro.model.rules import Completions
from repro.model.settings import Above
from repro.model.view import View
from repro.policies.tiresias._gittins import Index

_SIMULATOR = {
    "thresholds": (3250.0, 7200.0),
    "exact_demotion": False,
    "history_ties": True,
    "cumulative_waiting": True,
}


@register("tiresias-l")
@dataclass(frozen=True)
class TiresiasL(Order):
    """Discretised 2D-LAS: K queues of attained GPU-time, FIFO by first start inside a queue.

    Parameters
    ----------
    thresholds : tuple of float, optional
        Upper limits of queues 1..K-1 in GPU-seconds, ascending. None: 3200 (section 5.2), under
        rules ``tiresias`` the shipped 3250, 7200.
    promote_knob : float
        A job that has waited this many times the time it has run goes back to queue 1 with its
        clocks at zero; infinity = off.
    exact_demotion : bool, optional
        Demote at the instant W*t crosses the limit. False: at the first event at or after it; the
        simulator's own wake-up is floor((limit - t) / W) seconds ahead.
    whole_second_limits : bool, optional
        With ``exact_demotion`` off, the wake-up is when t reaches limit / W rounded up.
    history_ties : bool, optional
        Keep each queue as a list (demoted jobs to the tail, running ones ahead of waiting ones)
        instead of FIFO by first start.
    cumulative_waiting : bool, optional
        The waiting clock goes on across resumptions, is cleared by promotion only, and only jobs
        below queue 1 are promoted. False: it is the time since the job last ran.

    Reference: Tiresias, NSDI 2019, sections 3.2.3 and 3.4, Pseudocodes 1 and 2.

    Examples
    --------
    >>> TiresiasL(thresholds=(3250, 7200)).limits()
    (3250, 7200, inf)
    """

    families = ("las",)

    thresholds: tuple[Annotated[float, Above(0, "GPU-seconds")], ...] | None = None
    promote_knob: Annotated[float, Above(0)] = math.inf
    exact_demotion: bool | None = None
    whole_second_limits: bool | None = None
    history_ties: bool | None = None
    cumulative_waiting: bool | None = None

    time_fields: ClassVar[tuple[str, ...]] = ("thresholds",)
    rule_values: ClassVar = {
        "paper": {
            "thresholds": (3200.0,),
            "exact_demotion": True,
            "whole_second_limits": False,
            "history_ties": False,
            "cumulative_waiting": False,
        },
        "tiresias": {**_SIMULATOR, "whole_second_limits": False},
        "muri": {**_SIMULATOR, "whole_second_limits": True},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limits()

    def completions(self) -> Completions:
        """Only equal completion times are one event."""
        return Completions(tie_rel=0.0)

    def indices(self) -> Sequence[Index | None] | None:
        """Return what ranks the jobs of each queue, None for FIFO; None: all queues are FIFO."""
        return None

    def limits(self) -> tuple[float, ...]:
        """Thresholds (GPU-seconds) followed by infinity."""
        raw = self.thresholds if self.thresholds is not None else (3200.0,)
        values = (raw,) if isinstance(raw, (int, float)) else tuple(raw)
        if not all(a < b for a, b in pairwise(values)):
            raise ParamError(
                f"policy {self.name!r}: thresholds are {values}; give GPU-seconds in ascending "
                f"order"
            )
        return (*values, math.inf)

    def steady(self, view: View) -> Steady | None:
        """Return the limits, unless something else than service moves jobs between queues."""
        plain = self.promote_knob == math.inf and self.indices() is None
        return Steady(limits=self.limits()) if plain else None

    def ordering(self, view: View) -> Ordering:
        """Return the queues of one run."""
        return (_AtEvents if self.exact_demotion is False else _Queues)(self, view)


@dataclass(slots=True)
class _Clock:
    """The queue of a job, and how long it has run and waited."""

    #: instant the present wait began
    left: float
    queue: int = 0
    #: priority clock (s) up to the present hold, and when that hold began; None while waiting
    ran: float = 0.0
    since: float | None = None
    #: first start
    first: float = math.inf
    #: waiting clock (s) up to `left`
    waited: float = 0.0
    #: entries of the calendar with another stamp are void
    stamp: int = 0

    def executed(self, now: float) -> float:
        """Return the priority clock t_J (s)."""
        return self.ran + (now - self.since if self.since is not None else 0.0)


class _Queues(Ordering):
    """One run of a `TiresiasL` policy: clocks, and a calendar of what moves a job."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        self.limits = policy.limits()
        self.indices = policy.indices()
        self.knob = policy.promote_knob
        self.rounds_up = bool(policy.whole_second_limits)
        self.cumulative = bool(policy.cumulative_waiting)
        self.as_list = bool(policy.history_ties)
        self.clocks: dict[int, _Clock] = {}
        #: (instant, job, stamp) of demotions and promotions to come
        self._due: list[tuple[float, int, int]] = []
        #: overdue promotions, applied at the next event (they schedule no wake-up)
        self._overdue: list[tuple[int, int]] = []
        if self.as_list or self.indices is not None or policy.exact_demotion is False:
            self.selection = partial(
                Resort,
                partition=self.as_list,
                history_ties=self.as_list,
                always_sorts=self.as_list and self.indices is not None,
                drifts=self._drifts,
            )

    def _drifts(self, job: int) -> bool:
        """Tell whether the key of a running job changes with time."""
        return self.indices is not None and self.indices[self.clocks[job].queue] is not None

    def key(self, job: int, now: float) -> Key:
        """Return the queue, then its index (largest first) or first start, then submission.

        Without an index a list keeps the order of the jobs of a queue itself.
        """
        clock = self.clocks[job]
        if self.as_list and self.indices is None:
            return (clock.queue,)
        index = self.indices[clock.queue] if self.indices is not None else None
        rank = clock.first if index is None else -index(clock.executed(now) * self.view.gpus(job))
        return clock.queue, rank, self.view.submit(job)

    def arrive(self, job: int, now: float) -> None:
        """Enter queue 1 (index 0)."""
        self.clocks[job] = _Clock(left=now)

    def start(self, job: int, now: float) -> None:
        """Start the priority clock."""
        clock = self.clocks[job]
        clock.first = min(clock.first, now)
        clock.since = now
        if not self.cumulative:
            clock.waited = 0.0
        elif clock.ran > 0:
            clock.waited += now - clock.left
        self._schedule(job, clock, now)

    def stop(self, job: int, now: float) -> None:
        """Stop the priority clock, start the waiting clock."""
        clock = self.clocks[job]
        clock.ran = clock.executed(now)
        clock.since = None
        clock.left = now
        self._schedule(job, clock, now)

    def finish(self, job: int, now: float) -> None:
        del self.clocks[job]

    def _schedule(self, job: int, clock: _Clock, now: float) -> None:
        """Void what the calendar says of a job; plan its demotion or promotion."""
        clock.stamp += 1
        if clock.since is not None:
            if self.limits[clock.queue] < math.inf:
                self._await_demotion(job, clock, clock.since)
            return
        started = clock.ran > 0 and (not self.cumulative or clock.queue > 0)
        if not started or self.knob == math.inf:
            return
        need = self.knob * clock.ran
        due = clock.left + (math.floor(need) if self.cumulative else need) - clock.waited
        if due > now:
            heappush(self._due, (due, job, clock.stamp))
        else:
            self._overdue.append((job, clock.stamp))

    def _await_demotion(self, job: int, clock: _Clock, since: float) -> None:
        """Plan the demotion of a job at the instant its attained service crosses the limit."""
        left = self.limits[clock.queue] / self.view.gpus(job) - clock.ran
        heappush(self._due, (since + left, job, clock.stamp))

    def moves(self, now: float) -> list[int]:
        """Demote and promote what is due; in order of arrival."""
        moved: set[int] = set()
        due = self._overdue
        self._overdue = []
        while self._due and self._due[0][0] <= now:
            due.append(heappop(self._due)[1:])
        for job, stamp in due:
            clock = self.clocks.get(job)
            if clock is None or clock.stamp != stamp:
                continue
            moved.add(job)
            if clock.since is None:
                self.clocks[job] = _Clock(left=now, first=clock.first, stamp=stamp + 1)
                self.view.note_promotion(job)
            else:
                clock.queue += 1
                self._schedule(job, clock, now)
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Return the next instant of the calendar."""
        while self._due:
            due, job, stamp = self._due[0]
            clock = self.clocks.get(job)
            if clock is not None and clock.stamp == stamp:
                return due
            heappop(self._due)
        return math.inf


class _AtEvents(_Queues):
    """Jobs are demoted, by one queue, at the first event at or after they reach the limit."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        #: running jobs above the last queue
        self._watched: dict[int, _Clock] = {}

    def finish(self, job: int, now: float) -> None:
        super().finish(job, now)
        self._watched.pop(job, None)

    def _schedule(self, job: int, clock: _Clock, now: float) -> None:
        """Void what the calendar says of a job; watch it or plan its promotion."""
        self._watched.pop(job, None)
        super()._schedule(job, clock, now)

    def _await_demotion(self, job: int, clock: _Clock, since: float) -> None:
        """Watch a job that runs."""
        self._watched[job] = clock

    def moves(self, now: float) -> list[int]:
        """Promote what is due, then demote whoever is found at or beyond its limit."""
        moved = set(super().moves(now))
        for job, clock in list(self._watched.items()):
            assert clock.since is not None
            executed = clock.ran + now - clock.since
            limit = self.limits[clock.queue]
            gpus = self.view.gpus(job)
            due = executed * gpus >= limit
            if self.rounds_up:
                # adding event by event may stop a rounding short of the limit, for ever
                due = due or math.ceil(limit / gpus) - executed + now <= now
                clock.ran = executed
                clock.since = now
            if due:
                clock.queue += 1
                moved.add(job)
                if self.limits[clock.queue] == math.inf:
                    del self._watched[job]
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Return the next promotion, or the simulator's own wake-up for a demotion."""
        wake = super().wake(now)
        for job, clock in self._watched.items():
            executed = clock.executed(now)
            limit = self.limits[clock.queue]
            gpus = self.view.gpus(job)
            if self.rounds_up:
                wake = min(wake, math.ceil(limit / gpus) - executed + now)
            else:
                wake = min(wake, now + max(1, (limit - executed) // gpus))
        return wake
