"""Shortest remaining service first."""

from __future__ import annotations

from dataclasses import dataclass

from repro.core.policy import register
from repro.core.view import View
from repro.policies.baselines._known_durations import KnownDuration


@register("srsf")
@dataclass(frozen=True)
class SRSF(KnownDuration):
    """Preemptive smallest remaining GPU-time, W_J times remaining time (Tiresias section 3.2.1).

    Examples
    --------
    >>> SRSF()
    SRSF(history_ties=None, refill=None)
    """

    def key(self, view: View, job: int) -> float:
        """Return the remaining service (GPU-seconds)."""
        return view.gpus(job) * view.remaining(job)

    def slope(self, view: View, job: int) -> float:
        """Return minus gang size times rate: the service a second of running takes off."""
        return -view.gpus(job) * view.rate(job)
