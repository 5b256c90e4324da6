"""The K queues of Discretised 2DAS (Tiresias 3.2.3): clocks, demotion, promotion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar

from repro.core.policy import Order, Ordering, Select
from repro.core.view import View
from repro.errors import ParamError
from repro.sim.select.resort import Resort


@dataclass(frozen=True)
class Discretised(Order):
    """Base of Tiresias-L and Tiresias-G.

    Parameters
    ----------
    thresholds : tuple of float, optional
        Upper limits of queues 1..K-1 in GPU-seconds, ascending. None: 3200 (section 5.2), under
        rules ``tiresias`` the shipped 3250, 7200.
    promote_knob : float
        PROMOTEKNOB: a job that has waited this many times the time it has run goes back to queue 1
        with its clocks at zero; infinity = off.
    exact_demotion : bool, optional
        Demote at the instant W*t crosses the limit. False: at the first event at or after it, where
        the simulator's own wake-up is floor((limit - t) / W) seconds ahead.
    whole_second_limits : bool, optional
        With ``exact_demotion`` off, the wake-up is when t reaches limit / W rounded up.
    history_ties : bool, optional
        Keep each queue as a list (demoted jobs to the tail, running ones ahead of waiting ones)
        instead of FIFO by first start.
    cumulative_waiting : bool, optional
        The waiting clock goes on across resumptions, is cleared by promotion only, and only jobs
        below queue 1 are promoted. False: it is the time since the job last ran.

    References
    ----------
    Tiresias, NSDI 2019, sections 3.2.3 and 3.4, Pseudocode 2.
    """

    thresholds: tuple[float, ...] | None = None
    promote_knob: float = math.inf
    exact_demotion: bool | None = None
    whole_second_limits: bool | None = None
    history_ties: bool | None = None
    cumulative_waiting: bool | None = None

    time_fields: ClassVar[tuple[str, ...]] = ("thresholds",)
    exact_ties: ClassVar[bool] = True
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "thresholds": (3200.0,),
            "exact_demotion": True,
            "whole_second_limits": False,
            "history_ties": False,
            "cumulative_waiting": False,
        },
        "tiresias": {
            "thresholds": (3250.0, 7200.0),
            "exact_demotion": False,
            "whole_second_limits": False,
            "history_ties": True,
            "cumulative_waiting": True,
        },
        "muri": {
            "thresholds": (3250.0, 7200.0),
            "exact_demotion": False,
            "whole_second_limits": True,
            "history_ties": True,
            "cumulative_waiting": True,
        },
    }

    def limits(self) -> tuple[float, ...]:
        """Return the checked thresholds (GPU-seconds) followed by infinity."""
        raw = self.thresholds if self.thresholds is not None else (3200.0,)
        values = (raw,) if isinstance(raw, (int, float)) else tuple(raw)
        rising = all(a < b for a, b in pairwise(values))
        if not rising or any(not v > 0 for v in values):
            raise ParamError(
                f"{self.name}: thresholds are {values}; give ascending positive GPU-seconds"
            )
        if not self.promote_knob > 0:
            raise ParamError(
                f"{self.name}: promote_knob is {self.promote_knob}; give a positive number or inf"
            )
        return (*values, math.inf)


class QueueOrdering(Ordering):
    """One run of a `Discretised` policy: which queue each job is in, and since when.

    Parameters
    ----------
    policy : Discretised
        With every rule resolved.
    view : View
        The run.
    """

    policy: Discretised

    def __init__(self, policy: Discretised, view: View) -> None:
        super().__init__(policy, view)
        self.limits = policy.limits()
        self.knob = policy.promote_knob
        self.exact = policy.exact_demotion is not False
        self.rounds_up = bool(policy.whole_second_limits)
        self.cumulative = bool(policy.cumulative_waiting)
        self.partition = bool(policy.history_ties)
        if self.partition or not self.exact:
            self.selection = self.one_list()
        #: queue, priority clock (s) up to the present hold, start of that hold (None = waiting)
        self.queue: dict[int, int] = {}
        self.clock: dict[int, float] = {}
        self.since: dict[int, float | None] = {}
        self.started: dict[int, float] = {}
        #: waiting clock (s) up to `left_at`, the instant the present wait began
        self.waited: dict[int, float] = {}
        self.left_at: dict[int, float] = {}
        self._due: list[tuple[float, int, int]] = []
        #: running jobs above the last queue and the start of their hold (late demotion only)
        self._watched: dict[int, float] = {}
        #: promotions due at the next event, which they do not bring about themselves
        self._overdue: list[tuple[int, int]] = []
        self._stamp: dict[int, int] = {}

    def one_list(self, *, always_sorts: bool = False) -> Select:
        """Return the selection by one sorted list, under the tie rules of the policy."""
        return partial(
            Resort,
            partition=self.partition,
            history_ties=self.partition,
            always_sorts=always_sorts,
            drifts=self.drifts,
        )

    def drifts(self, job: int) -> bool:
        """Tell whether the key of a running job changes with time."""
        return False

    def executed(self, job: int, now: float) -> float:
        """Return the priority clock t_J (s)."""
        since = self.since[job]
        return self.clock[job] + (now - since if since is not None else 0.0)

    def arrive(self, job: int, now: float) -> None:
        """Enter queue 1 (index 0)."""
        self.queue[job], self.clock[job], self.since[job] = 0, 0.0, None
        self.waited[job], self.left_at[job] = 0.0, now
        self._stamp[job] = 0

    def start(self, job: int, now: float) -> None:
        """Start the priority clock."""
        self.started.setdefault(job, now)
        self.since[job] = now
        if self.cumulative:
            if self.clock[job] > 0:
                self.waited[job] += now - self.left_at[job]
        else:
            self.waited[job] = 0.0
        self._schedule(job, now)

    def stop(self, job: int, now: float) -> None:
        """Stop the priority clock, start the waiting clock."""
        self.clock[job] = self.executed(job, now)
        self.since[job] = None
        self.left_at[job] = now
        self._schedule(job, now)

    def finish(self, job: int, now: float) -> None:
        """Forget the job."""
        for column in (self.queue, self.clock, self.since, self.waited, self.left_at, self._stamp):
            del column[job]
        self.started.pop(job, None)
        self._watched.pop(job, None)

    def _schedule(self, job: int, now: float) -> None:
        """Put the next exact demotion or promotion of a job on the calendar."""
        stamp = self._stamp[job] = self._stamp[job] + 1
        since = self.since[job]
        if not self.exact:
            self._watched.pop(job, None)
            if since is not None and self.limits[self.queue[job]] < math.inf:
                self._watched[job] = since
        if since is None:
            if self.knob < math.inf and self._promotable(job):
                need = self.knob * self.clock[job]
                if self.cumulative:
                    need = math.floor(need)
                due = self.left_at[job] + need - self.waited[job]
                if due > now:
                    heappush(self._due, (due, job, stamp))
                else:
                    self._overdue.append((job, stamp))
        elif self.exact and self.limits[self.queue[job]] < math.inf:
            left = self.limits[self.queue[job]] / self.view.gpus(job) - self.clock[job]
            heappush(self._due, (since + left, job, stamp))

    def _promotable(self, job: int) -> bool:
        return self.clock[job] > 0 and (not self.cumulative or self.queue[job] > 0)

    def moves(self, now: float) -> list[int]:
        """Demote and promote what is due; in order of arrival."""
        moved: set[int] = set()
        due, self._overdue = self._overdue, []
        while self._due and self._due[0][0] <= now:
            due.append(heappop(self._due)[1:])
        for job, stamp in due:
            if self._stamp.get(job) != stamp:
                continue
            moved.add(job)
            if self.since[job] is None:
                self._promote(job, now)
            else:
                self.queue[job] += 1
                self._schedule(job, now)
        if not self.exact:
            self._demote_late(now, moved)
        return sorted(moved)

    def _promote(self, job: int, now: float) -> None:
        self.queue[job], self.clock[job] = 0, 0.0
        self.waited[job], self.left_at[job] = 0.0, now
        self.view.note_promotion(job)
        self._stamp[job] += 1

    def _demote_late(self, now: float, moved: set[int]) -> None:
        """Demote by one queue every running job found at or beyond its limit at this event."""
        limits, gpus = self.limits, self.view.gpus
        for job, since in list(self._watched.items()):
            executed = self.clock[job] + now - since
            limit = limits[self.queue[job]]
            due = executed * gpus(job) >= limit
            if self.rounds_up:
                # adding event by event may stop a rounding short of the limit, for ever
                due = due or math.ceil(limit / gpus(job)) - executed + now <= now
                self.clock[job], self.since[job], self._watched[job] = executed, now, now
            if due:
                self.queue[job] += 1
                moved.add(job)
                if limits[self.queue[job]] == math.inf:
                    del self._watched[job]

    def wake(self, now: float) -> float:
        """Return the next demotion or promotion."""
        while self._due and self._stamp.get(self._due[0][1]) != self._due[0][2]:
            heappop(self._due)
        wake = self._due[0][0] if self._due else math.inf
        if self.exact:
            return wake
        limits, gpus = self.limits, self.view.gpus
        for job, since in self._watched.items():
            executed, limit = self.clock[job] + (now - since), limits[self.queue[job]]
            if self.rounds_up:
                wake = min(wake, math.ceil(limit / gpus(job)) - executed + now)
            else:
                wake = min(wake, now + max(1, (limit - executed) // gpus(job)))
        return wake
