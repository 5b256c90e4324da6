"""Smallest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from repro.policies._known import KnownDuration
from repro.policies.base import register
from repro.sim.view import View


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
