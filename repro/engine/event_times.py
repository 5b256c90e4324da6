"""Instants of events: simultaneous events, polled completions, decisions on a grid."""

from __future__ import annotations

import math
from typing import NamedTuple

from repro.engine.run_settings import RunSettings
from repro.model.elastic import SAME_INSTANT
from repro.model.policy import Policy

#: Distance of a quotient from a whole number that is put down to rounding.
ROUNDING = 1e-9


class EventTimes(NamedTuple):
    """Which events are simultaneous, and when completions and decisions may happen.

    Examples
    --------
    >>> times = EventTimes(interval=10.0)
    >>> times.decides_at(20.0), times.decides_at(21.0), times.next_on_grid(21.0)
    (True, False, 30.0)
    """

    #: seconds between decisions; None: a decision at every event
    interval: float | None = None
    #: seconds between polls of completions; 0: they are noticed at once; infinity: at decisions
    poll_s: float = 0.0
    #: a completion this near an arrival is one event with it (s)
    tie_s: float = 0.0
    #: completions within this relative distance are one event
    tie_rel: float = 0.0
    #: arrivals up to this multiple of an instant are at that instant
    arrival_factor: float = 1.0
    #: completions up to this multiple of an instant are at that instant
    completion_factor: float = 1.0

    @classmethod
    def of(cls, policy: Policy, settings: RunSettings) -> EventTimes:
        """Event times of a policy under the rules of a run."""
        noticed = policy.completions()
        rules_rel = settings.rules.tie_rel
        return cls(
            interval=settings.interval,
            poll_s=noticed.poll_s,
            tie_s=noticed.tie_s,
            tie_rel=rules_rel if noticed.tie_rel is None else noticed.tie_rel,
            arrival_factor=1.0 + rules_rel,
            completion_factor=SAME_INSTANT if policy.elastic else 1.0,
        )

    def noticed(self, end: float, now: float) -> float:
        """Instant (s) at which a completion predicted for ``end`` is noticed."""
        if self.poll_s == math.inf:
            return math.inf
        if not self.poll_s or end == math.inf:
            return end
        poll = now + self.poll_s
        while poll < end:
            poll += self.poll_s
        return poll

    def joined_s(self, end: float) -> float:
        """Seconds around a completion within which an arrival is one event with it."""
        if self.poll_s or not self.tie_s or end == math.inf:
            return 0.0
        return max(self.tie_s, self.tie_rel * end)

    def decides_at(self, now: float) -> bool:
        """Whether a decision is possible at an event."""
        interval = self.interval
        return interval is None or abs(now / interval - round(now / interval)) < ROUNDING

    def next_on_grid(self, now: float) -> float:
        """Next multiple of the interval (s)."""
        assert self.interval is not None, "decisions have a grid"
        return (math.floor(now / self.interval + ROUNDING) + 1) * self.interval
