"""Shortest remaining time first."""

from __future__ import annotations

from dataclasses import dataclass

from repro.core.policy import register
from repro.core.view import View
from repro.policies.baselines._known_durations import KnownDuration


@register("srtf")
@dataclass(frozen=True)
class SRTF(KnownDuration):
    """Preemptive smallest remaining time (Tiresias section 5.1); durations are known.

    Examples
    --------
    >>> SRTF()
    SRTF(history_ties=None, refill=None)
    """

    def key(self, view: View, job: int) -> float:
        """Return the remaining time (s)."""
        return view.remaining(job)

    def slope(self, view: View, job: int) -> float:
        """Return minus the rate: what a second of running takes off."""
        return -view.rate(job)
