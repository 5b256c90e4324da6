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
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.engine.select.resort import Resort
from repro.model.policy import FromSettings, Key, LinearKey, Order, Ordering, register
from repro.model.rules import Completions
from repro.model.settings import Above
from repro.model.view import View
from repro.policies.tiresias._gittins import Index
from repro.policies.tiresias._queue_state import QueueState, demote, next_demotion

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
    rounds_times: ClassVar[Any] = FromSettings(False, lambda policy: policy.cuts_to_seconds())
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

    def cuts_to_seconds(self) -> bool:
        """Whether demotions or promotions depend on times cut to whole seconds."""
        cuts_promotions = bool(self.cumulative_waiting) and self.promote_knob < math.inf
        return cuts_promotions or self.exact_demotion is False

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
        self.state = QueueState.of(view)
        # entries of memory views are Python numbers, read three times as fast as those of arrays
        arrays: tuple[Any, ...] = self.state
        columns: list[Any] = [memoryview(array) for array in arrays]
        self.queue, self.runs, self.since, self.executed = columns[:4]
        self.waited, self.first_start, self.stamp, self.gpus = columns[4:]
        #: heap of (instant, job, stamp): coming demotions and promotions
        self._calendar: list[tuple[float, int, int]] = []
        #: overdue promotions as (job, stamp), which cause no wake-up and apply at the next event
        self._overdue: list[tuple[int, int]] = []
        if self.history_ties or self.indices is not None or policy.exact_demotion is False:
            self.selection = partial(
                Resort,
                running_first=self.history_ties,
                history_ties=self.history_ties,
                always_sorts=self.history_ties and self.indices is not None,
                drifts=self._drifts,
            )

    def _drifts(self, job: int) -> bool:
        """Whether the key of a running job changes with time."""
        return self.indices is not None and self.indices[self.queue[job]] is not None

    def key(self, job: int, now: float) -> Key:
        """Queue, then Gittins index (largest first) or first start, then submission.

        A queue without an index goes by first start. With ``history_ties`` and no index at all, the
        key is the queue alone, as the list of the queue keeps the order of its jobs.
        """
        queue = self.queue[job]
        if self.history_ties and self.indices is None:
            return (queue,)
        index = self.indices[queue] if self.indices is not None else None
        if index is None:
            rank = self.first_start[job]
        else:
            rank = -index(self._executed(job, now) * self.gpus[job])
        return queue, rank, self.view.submit(job)

    def keys(self, jobs: Ints, now: float) -> Floats:
        """Keys of jobs that drift, (jobs, 3): they run in queues with an index."""
        queues = self.state.queue[jobs]
        services = self.state.services(jobs, now)
        keys = np.empty((len(jobs), 3))
        keys[:, 0] = queues
        keys[:, 2] = self._submits[jobs]
        for index, has_index in self._queues_by_index:
            inside = has_index[queues]
            keys[inside, 1] = -index.of(services[inside])
        return keys

    @cached_property
    def _queues_by_index(self) -> list[tuple[Index, Flags]]:
        """Each index, and whether each queue goes by it, (queues,)."""
        indices = self.indices or ()
        distinct = {id(index): index for index in indices if index is not None}
        return [
            (index, np.array([other is index for other in indices])) for index in distinct.values()
        ]

    @cached_property
    def _submits(self) -> Floats:
        """Submission of each job (s), (jobs,)."""
        return self.view.submits

    def _executed(self, job: int, now: float) -> float:
        """Time t_J that a job has executed (s)."""
        executed: float = self.executed[job]
        return executed + (now - self.since[job]) if self.runs[job] else executed

    def arrive(self, job: int, now: float) -> None:
        """Enter queue 1 (number 0)."""
        self.since[job] = now

    def start(self, job: int, now: float) -> None:
        """Count executed time from now on."""
        self.first_start[job] = min(self.first_start[job], now)
        if not self.cumulative:
            self.waited[job] = 0.0
        elif self.executed[job] > 0:
            self.waited[job] += now - self.since[job]
        self.runs[job] = True
        self.since[job] = now
        self._schedule(job, now)

    def stop(self, job: int, now: float) -> None:
        """Count waiting time from now on."""
        self.executed[job] = self._executed(job, now)
        self.runs[job] = False
        self.since[job] = now
        self._schedule(job, now)

    def finish(self, job: int, now: float) -> None:
        """Void the entry of a job in the calendar."""
        self.stamp[job] += 1

    def _schedule(self, job: int, now: float) -> None:
        """Void the entry of a job in the calendar, and enter its demotion or promotion."""
        self.stamp[job] += 1
        if not self.runs[job]:
            self._schedule_promotion(job, now)
        elif self.limits[self.queue[job]] < math.inf:
            self._schedule_demotion(job)

    def _schedule_promotion(self, job: int, now: float) -> None:
        """Enter the promotion of a waiting job that has run before."""
        promotable = self.executed[job] > 0 and (not self.cumulative or self.queue[job] > 0)
        if not promotable or self.knob == math.inf:
            return
        limit = self.knob * self.executed[job]
        if self.cumulative:
            limit = math.floor(limit)
        instant = self.since[job] + limit - self.waited[job]
        if instant > now:
            heappush(self._calendar, (instant, job, self.stamp[job]))
        else:
            self._overdue.append((job, self.stamp[job]))

    def _schedule_demotion(self, job: int) -> None:
        """Enter the demotion of a running job, when its attained service reaches the limit."""
        seconds = self.limits[self.queue[job]] / self.gpus[job] - self.executed[job]
        heappush(self._calendar, (self.since[job] + seconds, job, self.stamp[job]))

    def moves(self, now: float) -> list[int]:
        """Demote and promote the jobs that are due, and list them in order of arrival."""
        moved: set[int] = set()
        entries = self._overdue
        self._overdue = []
        while self._calendar and self._calendar[0][0] <= now:
            entries.append(heappop(self._calendar)[1:])
        for job, stamp in entries:
            if self.stamp[job] != stamp:
                continue
            moved.add(job)
            if self.runs[job]:
                self.queue[job] += 1
                self._schedule(job, now)
            else:
                self._promote(job, now)
        return sorted(moved)

    def _promote(self, job: int, now: float) -> None:
        """Move a waiting job to queue 1 (number 0), and set its times to 0."""
        self.queue[job] = 0
        self.executed[job] = 0.0
        self.waited[job] = 0.0
        self.since[job] = now
        self.stamp[job] += 1
        self.view.note_promotion(job)

    def wake(self, now: float) -> float:
        """Next instant of the calendar."""
        while self._calendar:
            instant, job, stamp = self._calendar[0]
            if self.stamp[job] == stamp:
                return instant
            heappop(self._calendar)
        return math.inf


class _DemotionAtEvents(_Queues):
    """Jobs are demoted at the first event at or after they reach the limit."""

    def __init__(self, policy: TiresiasL, view: View) -> None:
        super().__init__(policy, view)
        self._limits = np.array(self.limits, dtype=float)
        #: running jobs in any queue but the last, as keys
        self._demotable: dict[int, None] = {}
        #: the same jobs as an array; None after a change
        self._demotable_jobs: Ints | None = None
        #: space for the jobs that one event demotes
        self._demoted = np.zeros(len(self.gpus), np.int64)

    def finish(self, job: int, now: float) -> None:
        super().finish(job, now)
        self._unlist(job)

    def _schedule(self, job: int, now: float) -> None:
        """Void the entry of a job in the calendar. Enter its promotion, or list it as demotable."""
        self._unlist(job)
        super()._schedule(job, now)

    def _schedule_demotion(self, job: int) -> None:
        """List a running job as demotable. Every event compares it with its limit."""
        self._demotable[job] = None
        self._demotable_jobs = None

    def _unlist(self, job: int) -> None:
        """Take a job off the list of demotable jobs."""
        if job in self._demotable:
            del self._demotable[job]
            self._demotable_jobs = None

    def _demotable_array(self) -> Ints:
        """Demotable jobs, (jobs,)."""
        if self._demotable_jobs is None:
            self._demotable_jobs = np.fromiter(self._demotable, np.int64, len(self._demotable))
        return self._demotable_jobs

    def moves(self, now: float) -> list[int]:
        """Promote the jobs that are due, then demote the jobs at or beyond their limits."""
        moved = super().moves(now)
        if not self._demotable:
            return moved
        num_demoted = demote(
            self.state,
            self._demotable_array(),
            self._limits,
            now,
            self.rounds_up,
            self.skip_queues,
            self._demoted,
        )
        demoted = self._demoted[:num_demoted].tolist()
        for job in demoted:
            if self.limits[self.queue[job]] == math.inf:
                self._unlist(job)
        return sorted(moved + demoted)

    def wake(self, now: float) -> float:
        """Next promotion, or the simulator's own wake-up for a demotion."""
        wake = super().wake(now)
        if self._demotable:
            demotion = next_demotion(
                self.state, self._demotable_array(), self._limits, now, self.rounds_up
            )
            wake = min(wake, demotion)
        return wake
