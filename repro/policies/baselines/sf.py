"""Smallest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.core.policy import register
from repro.core.view import View
from repro.policies.baselines._known_durations import KnownDuration


@register("sf")
@dataclass(frozen=True)
class SF(KnownDuration):
    """Preemptive smallest gang first (Tiresias section 3.2.1, Table 1).

    Examples
    --------
    >>> SF()
    SF(history_ties=None, refill=None)
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    def key(self, view: View, job: int) -> float:
        """Return the gang size (GPUs)."""
        return view.gpus(job)
