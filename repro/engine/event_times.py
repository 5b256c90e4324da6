"""Instants of events: simultaneous events, polled completions, decisions at an interval."""

from __future__ import annotations

import math
from typing import NamedTuple

from repro.engine.multiples import first_multiple, is_multiple, next_multiple
from repro.engine.run_settings import RunSettings
from repro.model.elastic import SAME_INSTANT
from repro.model.policy import Policy


class EventTimes(NamedTuple):
    """Which events are simultaneous, and when completions and decisions may happen.

    Examples
    --------
    >>> times = EventTimes(interval=10.0)
    >>> times.decides_at(20.0), times.decides_at(21.0), times.next_decision(21.0)
    (True, False, 30.0)
    """

    #: seconds between decisions; None: a decision at every event
    interval: float | None = None
    #: seconds between polls that notice completions; 0: at once; infinity: only at decisions
    poll_s: float = 0.0
    #: a completion and an arrival within this time (s) form one event; 0: only at equal instants.
    #: If it is above 0, the time is the larger of ``tie_s`` and ``tie_rel`` times the instant of
    #: the completion
    tie_s: float = 0.0
    #: largest relative distance between completions that form one event
    tie_rel: float = 0.0
    #: an arrival at up to ``arrival_factor`` * now counts as now
    arrival_factor: float = 1.0
    #: a completion at up to ``completion_factor`` * now counts as now
    completion_factor: float = 1.0

    @classmethod
    def of(cls, policy: Policy, settings: RunSettings) -> EventTimes:
        """Event times of a policy under the rules of a simulation."""
        completions = policy.completions()
        rules_rel = settings.rules.tie_rel
        return cls(
            interval=settings.interval,
            poll_s=completions.poll_s,
            tie_s=completions.tie_s,
            tie_rel=rules_rel if completions.tie_rel is None else completions.tie_rel,
            arrival_factor=1.0 + rules_rel,
            completion_factor=SAME_INSTANT if policy.elastic else 1.0,
        )

    def noticed_at(self, end: float, now: float) -> float:
        """Instant (s) at which a completion predicted for ``end`` is noticed."""
        if self.poll_s == math.inf:
            return math.inf
        if not self.poll_s or end == math.inf:
            return end
        poll = now + self.poll_s
        while poll < end:
            poll += self.poll_s
        return poll

    def tie_window_s(self, end: float) -> float:
        """Seconds before and after a completion in which an arrival forms one event with it."""
        if self.poll_s or not self.tie_s or end == math.inf:
            return 0.0
        return max(self.tie_s, self.tie_rel * end)

    def decides_at(self, now: float) -> bool:
        """Whether a decision is possible at an event."""
        return self.interval is None or is_multiple(now, self.interval)

    def first_decision(self, instant: float) -> float:
        """First multiple of the interval at or after an instant (s); infinity stays infinity."""
        assert self.interval is not None, "decisions are made at an interval"
        if instant == math.inf:
            return instant
        return first_multiple(instant, self.interval)

    def next_decision(self, now: float) -> float:
        """Next multiple of the interval (s)."""
        assert self.interval is not None, "decisions are made at an interval"
        return next_multiple(now, self.interval)
