"""Tiresias-L: Discretised 2D-LAS (Tiresias, section 3.2.3), K queues with demotion and promotion.

Job J with demand W_J has run for t_J and waited for delta_J (s) on its clocks. With limits
Q_1 < ... < Q_K = infinity (GPU-seconds):

    demotion    from queue k to k + 1 when W_J t_J >= Q_k
    promotion   of a waiting job to queue 1 when delta_J >= PROMOTEKNOB t_J; then t_J = delta_J = 0

Jobs run in order of queue, then first start, then submission.

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
from repro.model.policy import Key, LinearKey, Order, Ordering, register
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
    """Discretised 2D-LAS: K queues by attained GPU-time, FIFO by first start inside a queue.

    Parameters
    ----------
    thresholds : tuple of float, optional
        Upper limits Q_1, ..., Q_(K-1) in GPU-seconds, ascending. None: 3200 (section 5.2), under
        rules ``tiresias`` the shipped 3250, 7200.
    promote_knob : float
        PROMOTEKNOB: a job that has waited this many times the time it has run is promoted to queue
        1, with its clocks at zero. Infinity turns promotion off.
    exact_demotion : bool, optional
        Demote at the instant W t reaches the limit. False: at the first event at or after it, with
        a wake-up of the simulator floor((limit - t) / W) seconds ahead.
    whole_second_limits : bool, optional
        With ``exact_demotion`` off, the wake-up is when t reaches limit / W rounded up.
    history_ties : bool, optional
        Keep each queue as a list instead of FIFO by first start. Demoted jobs go to the tail, and
        running jobs move ahead of waiting jobs.
    cumulative_waiting : bool, optional
        The waiting clock goes on across resumptions, only promotion clears it, and only jobs below
        queue 1 are promoted. False: the clock is the time since the job last ran.

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
        """Index of each queue, None for a FIFO queue; None: all queues are FIFO."""
        return None

    def limits(self) -> tuple[float, ...]:
        """Upper limits of all queues (GPU-seconds): the thresholds, then infinity."""
        raw = self.thresholds if self.thresholds is not None else (3200.0,)
        thresholds = (raw,) if isinstance(raw, (int, float)) else tuple(raw)
        if not all(lower < upper for lower, upper in pairwise(thresholds)):
            raise ParamError(
                f"policy {self.name!r}: thresholds are {thresholds}; give GPU-seconds in ascending "
                f"order"
            )
        return (*thresholds, math.inf)

    def linear_key(self, view: View) -> LinearKey | None:
        """Limits of the queues, if only attained service moves jobs between queues."""
        only_service = self.promote_knob == math.inf and self.indices() is None
        return LinearKey(limits=self.limits()) if only_service else None

    def ordering(self, view: View) -> Ordering:
        """Queues of one run."""
        if self.exact_demotion is False:
            return _DemotionAtEvents(self, view)
        return _Queues(self, view)


@dataclass(slots=True)
class _Clocks:
    """Queue of a job, and its priority clocks."""

    #: start of the present wait, or of the last one
    wait_since: float
    queue: int = 0
    #: priority clock t_J (s) at the start of the present run, or at the end of the last one
    executed_before: float = 0.0
    #: start of the present run; None while the job waits
    run_since: float | None = None
    first_start: float = math.inf
    #: waiting clock (s) at ``wait_since``
    waited_before: float = 0.0
    #: version of the calendar's entry of the job; entries of other versions are void
    stamp: int = 0

    def executed(self, now: float) -> float:
        """Priority clock t_J (s)."""
        if self.run_since is None:
            return self.executed_before
        return self.executed_before + (now - self.run_since)


class _Queues(Ordering):
    """One run of a `TiresiasL` policy: clocks, and a calendar of demotions and promotions."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        self.limits = policy.limits()
        self.indices = policy.indices()
        self.knob = policy.promote_knob
        self.rounds_up = bool(policy.whole_second_limits)
        self.cumulative = bool(policy.cumulative_waiting)
        self.as_list = bool(policy.history_ties)
        self.clocks: dict[int, _Clocks] = {}
        #: heap of (instant, job, stamp): coming demotions and promotions
        self._calendar: list[tuple[float, int, int]] = []
        #: overdue promotions as (job, stamp), applied at the next event without a wake-up
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
        """Whether the key of a running job changes with time."""
        return self.indices is not None and self.indices[self.clocks[job].queue] is not None

    def key(self, job: int, now: float) -> Key:
        """Queue, then its index (largest first) or first start, then submission.

        If queues are lists without an index, a list itself keeps the order of its jobs.
        """
        clocks = self.clocks[job]
        if self.as_list and self.indices is None:
            return (clocks.queue,)
        index = self.indices[clocks.queue] if self.indices is not None else None
        if index is None:
            rank = clocks.first_start
        else:
            rank = -index(clocks.executed(now) * self.view.gpus(job))
        return clocks.queue, rank, self.view.submit(job)

    def arrive(self, job: int, now: float) -> None:
        """Enter queue 1 (number 0)."""
        self.clocks[job] = _Clocks(wait_since=now)

    def start(self, job: int, now: float) -> None:
        """Start the priority clock."""
        clocks = self.clocks[job]
        clocks.first_start = min(clocks.first_start, now)
        clocks.run_since = now
        if not self.cumulative:
            clocks.waited_before = 0.0
        elif clocks.executed_before > 0:
            clocks.waited_before += now - clocks.wait_since
        self._schedule(job, clocks, now)

    def stop(self, job: int, now: float) -> None:
        """Stop the priority clock, start the waiting clock."""
        clocks = self.clocks[job]
        clocks.executed_before = clocks.executed(now)
        clocks.run_since = None
        clocks.wait_since = now
        self._schedule(job, clocks, now)

    def finish(self, job: int, now: float) -> None:
        del self.clocks[job]

    def _schedule(self, job: int, clocks: _Clocks, now: float) -> None:
        """Void the calendar's entry of a job, and enter its demotion or promotion."""
        clocks.stamp += 1
        if clocks.run_since is None:
            self._schedule_promotion(job, clocks, now)
        elif self.limits[clocks.queue] < math.inf:
            self._schedule_demotion(job, clocks, clocks.run_since)

    def _schedule_promotion(self, job: int, clocks: _Clocks, now: float) -> None:
        """Enter the promotion of a waiting job that has run before."""
        promotable = clocks.executed_before > 0 and (not self.cumulative or clocks.queue > 0)
        if not promotable or self.knob == math.inf:
            return
        limit = self.knob * clocks.executed_before
        if self.cumulative:
            limit = math.floor(limit)
        instant = clocks.wait_since + limit - clocks.waited_before
        if instant > now:
            heappush(self._calendar, (instant, job, clocks.stamp))
        else:
            self._overdue.append((job, clocks.stamp))

    def _schedule_demotion(self, job: int, clocks: _Clocks, run_since: float) -> None:
        """Enter the demotion of a running job, when its attained service reaches the limit."""
        seconds = self.limits[clocks.queue] / self.view.gpus(job) - clocks.executed_before
        heappush(self._calendar, (run_since + seconds, job, clocks.stamp))

    def moves(self, now: float) -> list[int]:
        """Demote and promote the jobs that are due; return them in order of arrival."""
        moved: set[int] = set()
        entries = self._overdue
        self._overdue = []
        while self._calendar and self._calendar[0][0] <= now:
            entries.append(heappop(self._calendar)[1:])
        for job, stamp in entries:
            clocks = self.clocks.get(job)
            if clocks is None or clocks.stamp != stamp:
                continue
            moved.add(job)
            if clocks.run_since is None:
                self.clocks[job] = _Clocks(
                    wait_since=now, first_start=clocks.first_start, stamp=stamp + 1
                )
                self.view.note_promotion(job)
            else:
                clocks.queue += 1
                self._schedule(job, clocks, now)
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Next instant of the calendar."""
        while self._calendar:
            instant, job, stamp = self._calendar[0]
            clocks = self.clocks.get(job)
            if clocks is not None and clocks.stamp == stamp:
                return instant
            heappop(self._calendar)
        return math.inf


class _DemotionAtEvents(_Queues):
    """Jobs are demoted by one queue at the first event at or after they reach the limit."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        #: running jobs above the last queue
        self._demotable: dict[int, _Clocks] = {}

    def finish(self, job: int, now: float) -> None:
        super().finish(job, now)
        self._demotable.pop(job, None)

    def _schedule(self, job: int, clocks: _Clocks, now: float) -> None:
        """Void the calendar's entry of a job, and enter its promotion or watch it."""
        self._demotable.pop(job, None)
        super()._schedule(job, clocks, now)

    def _schedule_demotion(self, job: int, clocks: _Clocks, run_since: float) -> None:
        """Watch a running job; every event compares it with its limit."""
        self._demotable[job] = clocks

    def moves(self, now: float) -> list[int]:
        """Promote the jobs that are due, then demote the jobs at or beyond their limits."""
        moved = set(super().moves(now))
        for job, clocks in list(self._demotable.items()):
            assert clocks.run_since is not None
            executed = clocks.executed_before + now - clocks.run_since
            limit = self.limits[clocks.queue]
            gpus = self.view.gpus(job)
            is_due = executed * gpus >= limit
            if self.rounds_up:
                # sums from event to event may stay a rounding error short of the limit for ever
                is_due = is_due or math.ceil(limit / gpus) - executed + now <= now
                clocks.executed_before = executed
                clocks.run_since = now
            if is_due:
                clocks.queue += 1
                moved.add(job)
                if self.limits[clocks.queue] == math.inf:
                    del self._demotable[job]
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Next promotion, or the simulator's own wake-up for a demotion."""
        wake = super().wake(now)
        for job, clocks in self._demotable.items():
            executed = clocks.executed(now)
            limit = self.limits[clocks.queue]
            gpus = self.view.gpus(job)
            if self.rounds_up:
                seconds = math.ceil(limit / gpus) - executed
                wake = min(wake, seconds + now)
            else:
                wake = min(wake, now + max(1, (limit - executed) // gpus))
        return wake
