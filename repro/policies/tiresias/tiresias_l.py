"""Tiresias-L: Discretised 2D-LAS (Tiresias, section 3.2.3), K queues with demotion and promotion.

Job J has demand W_J, executed time t_J and waiting time delta_J (s). With limits
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
        Upper limits Q_1, ..., Q_(K-1) in GPU-seconds, ascending. None: 3200 (section 5.2). Under
        rules ``tiresias`` and ``muri``: 3250 and 7200, as in the public simulators.
    promote_knob : float
        PROMOTEKNOB: a job that has waited this many times its executed time is promoted to queue
        1, and both times are set to 0. Infinity turns promotion off.
    exact_demotion : bool, optional
        Demote at the instant at which W t reaches the limit. False: at the first event at or after
        it. The next wake-up is then floor((limit - t) / W) s ahead, at least 1 s. This is the rule
        of the public simulator, although the limit is in GPU-seconds and t in seconds.
    whole_second_limits : bool, optional
        With ``exact_demotion`` off, the wake-up is when t reaches limit / W rounded up.
    skip_queues : bool
        With ``exact_demotion`` off, a job that has reached several limits moves past all of them at
        one event, as on the testbed of Muri. False: by one queue.
    history_ties : bool, optional
        Keep each queue as a list instead of FIFO by first start. Demoted jobs go to the tail, and
        running jobs move ahead of waiting jobs.
    cumulative_waiting : bool, optional
        The waiting time adds up over all waits until a promotion. Its limit is cut to whole
        seconds, and only jobs outside queue 1 are promoted. False: the waiting time is the time
        since the job last ran.

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
    skip_queues: bool = False
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
        """Index function of each queue (None: FIFO). The result is None if all queues are FIFO."""
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
        """Queues of one simulation."""
        if self.exact_demotion is False:
            return _DemotionAtEvents(self, view)
        return _Queues(self, view)


@dataclass(slots=True)
class _JobState:
    """Queue, executed time and waiting time of a job."""

    #: start of the present wait, or of the last one
    wait_since: float
    queue: int = 0
    #: executed time t_J (s) until the present start, or until now if the job waits
    executed_before: float = 0.0
    #: present start; None while the job waits
    run_since: float | None = None
    first_start: float = math.inf
    #: waiting time (s) before ``wait_since``
    waited_before: float = 0.0
    #: version of the job's entry in the calendar; entries of other versions are void
    stamp: int = 0

    def executed(self, now: float) -> float:
        """Time t_J that the job has executed (s)."""
        if self.run_since is None:
            return self.executed_before
        return self.executed_before + (now - self.run_since)


class _Queues(Ordering):
    """Queues of a `TiresiasL` policy, with a calendar of demotions and promotions."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        self.limits = policy.limits()
        self.indices = policy.indices()
        self.knob = policy.promote_knob
        self.rounds_up = bool(policy.whole_second_limits)
        self.skip_queues = policy.skip_queues
        self.cumulative = bool(policy.cumulative_waiting)
        self.history_ties = bool(policy.history_ties)
        self.states: dict[int, _JobState] = {}
        #: heap of (instant, job, stamp): coming demotions and promotions
        self._calendar: list[tuple[float, int, int]] = []
        #: overdue promotions as (job, stamp), which cause no wake-up and apply at the next event
        self._overdue: list[tuple[int, int]] = []
        if self.history_ties or self.indices is not None or policy.exact_demotion is False:
            self.selection = partial(
                Resort,
                partition=self.history_ties,
                history_ties=self.history_ties,
                always_sorts=self.history_ties and self.indices is not None,
                drifts=self._drifts,
            )

    def _drifts(self, job: int) -> bool:
        """Whether the key of a running job changes with time."""
        return self.indices is not None and self.indices[self.states[job].queue] is not None

    def key(self, job: int, now: float) -> Key:
        """Queue, then Gittins index (largest first) or first start, then submission.

        A queue without an index goes by first start. With ``history_ties`` and no index at all, the
        key is the queue alone, as the list of the queue keeps the order of its jobs.
        """
        state = self.states[job]
        if self.history_ties and self.indices is None:
            return (state.queue,)
        index = self.indices[state.queue] if self.indices is not None else None
        if index is None:
            rank = state.first_start
        else:
            rank = -index(state.executed(now) * self.view.gpus(job))
        return state.queue, rank, self.view.submit(job)

    def arrive(self, job: int, now: float) -> None:
        """Enter queue 1 (number 0)."""
        self.states[job] = _JobState(wait_since=now)

    def start(self, job: int, now: float) -> None:
        """Count executed time from now on."""
        state = self.states[job]
        state.first_start = min(state.first_start, now)
        state.run_since = now
        if not self.cumulative:
            state.waited_before = 0.0
        elif state.executed_before > 0:
            state.waited_before += now - state.wait_since
        self._schedule(job, state, now)

    def stop(self, job: int, now: float) -> None:
        """Count waiting time from now on."""
        state = self.states[job]
        state.executed_before = state.executed(now)
        state.run_since = None
        state.wait_since = now
        self._schedule(job, state, now)

    def finish(self, job: int, now: float) -> None:
        del self.states[job]

    def _schedule(self, job: int, state: _JobState, now: float) -> None:
        """Void the entry of a job in the calendar, and enter its demotion or promotion."""
        state.stamp += 1
        if state.run_since is None:
            self._schedule_promotion(job, state, now)
        elif self.limits[state.queue] < math.inf:
            self._schedule_demotion(job, state, state.run_since)

    def _schedule_promotion(self, job: int, state: _JobState, now: float) -> None:
        """Enter the promotion of a waiting job that has run before."""
        promotable = state.executed_before > 0 and (not self.cumulative or state.queue > 0)
        if not promotable or self.knob == math.inf:
            return
        limit = self.knob * state.executed_before
        if self.cumulative:
            limit = math.floor(limit)
        instant = state.wait_since + limit - state.waited_before
        if instant > now:
            heappush(self._calendar, (instant, job, state.stamp))
        else:
            self._overdue.append((job, state.stamp))

    def _schedule_demotion(self, job: int, state: _JobState, run_since: float) -> None:
        """Enter the demotion of a running job, when its attained service reaches the limit."""
        seconds = self.limits[state.queue] / self.view.gpus(job) - state.executed_before
        heappush(self._calendar, (run_since + seconds, job, state.stamp))

    def moves(self, now: float) -> list[int]:
        """Demote and promote the jobs that are due, and list them in order of arrival."""
        moved: set[int] = set()
        entries = self._overdue
        self._overdue = []
        while self._calendar and self._calendar[0][0] <= now:
            entries.append(heappop(self._calendar)[1:])
        for job, stamp in entries:
            state = self.states.get(job)
            if state is None or state.stamp != stamp:
                continue
            moved.add(job)
            if state.run_since is None:
                self.states[job] = _JobState(
                    wait_since=now, first_start=state.first_start, stamp=stamp + 1
                )
                self.view.note_promotion(job)
            else:
                state.queue += 1
                self._schedule(job, state, now)
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Next instant of the calendar."""
        while self._calendar:
            instant, job, stamp = self._calendar[0]
            state = self.states.get(job)
            if state is not None and state.stamp == stamp:
                return instant
            heappop(self._calendar)
        return math.inf


class _DemotionAtEvents(_Queues):
    """Jobs are demoted at the first event at or after they reach the limit."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        #: running jobs in any queue but the last
        self._demotable: dict[int, _JobState] = {}

    def finish(self, job: int, now: float) -> None:
        super().finish(job, now)
        self._demotable.pop(job, None)

    def _schedule(self, job: int, state: _JobState, now: float) -> None:
        """Void the entry of a job in the calendar. Enter its promotion, or list it as demotable."""
        self._demotable.pop(job, None)
        super()._schedule(job, state, now)

    def _schedule_demotion(self, job: int, state: _JobState, run_since: float) -> None:
        """List a running job as demotable. Every event compares it with its limit."""
        self._demotable[job] = state

    def moves(self, now: float) -> list[int]:
        """Promote the jobs that are due, then demote the jobs at or beyond their limits."""
        moved = set(super().moves(now))
        for job, state in list(self._demotable.items()):
            assert state.run_since is not None
            executed = state.executed_before + now - state.run_since
            limit = self.limits[state.queue]
            gpus = self.view.gpus(job)
            is_due = executed * gpus >= limit
            if self.rounds_up:
                # Summed times may stay a rounding error short of the limit for ever. So a demotion
                # is also due once its instant in `wake` has come.
                is_due = is_due or math.ceil(limit / gpus) - executed + now <= now
                state.executed_before = executed
                state.run_since = now
            if is_due:
                state.queue += 1
                while self.skip_queues and executed * gpus >= self.limits[state.queue]:
                    state.queue += 1
                moved.add(job)
                if self.limits[state.queue] == math.inf:
                    del self._demotable[job]
        return sorted(moved)

    def wake(self, now: float) -> float:
        """Next promotion, or the simulator's own wake-up for a demotion."""
        wake = super().wake(now)
        for job, state in self._demotable.items():
            executed = state.executed(now)
            limit = self.limits[state.queue]
            gpus = self.view.gpus(job)
            if self.rounds_up:
                seconds = math.ceil(limit / gpus) - executed
                wake = min(wake, seconds + now)
            else:
                wake = min(wake, now + max(1, (limit - executed) // gpus))
        return wake
